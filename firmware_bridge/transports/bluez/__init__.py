"""BlueZ over D-Bus: pairing agent, probe, watch, recovery."""
