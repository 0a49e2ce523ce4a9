"""The cloud: MQTT, enrolment, capability reports."""
