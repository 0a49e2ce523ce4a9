"""A small reference cloud for development, separate from the daemon; they talk only over MQTT and
HTTP.
"""
