"""The way to the cloud: MQTT 5, contract §4."""
