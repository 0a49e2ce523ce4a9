"""The simulated Mentra Display."""
