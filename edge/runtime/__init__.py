"""What every package may use: files that survive a power cut, and child processes."""
