"""What the daemon runs on: bus, clocks, deadlines, systemd, logs, paths."""
