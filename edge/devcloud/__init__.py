"""A small cloud to develop against; it stands outside and talks only over MQTT and HTTP."""
