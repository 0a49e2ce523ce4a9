"""Bytes ↔ glasses. Knows radios and glasses; has never heard of tools, MQTT or the cloud."""
