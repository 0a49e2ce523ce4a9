"""The uplink to the cloud over MQTT 5. docs/mqtt.md is its specification."""
