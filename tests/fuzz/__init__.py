"""Changed packets for every codec: `make fuzz`."""
