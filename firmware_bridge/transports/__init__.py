"""Ways to move packets: BLE (bleak), in memory, recorded."""
