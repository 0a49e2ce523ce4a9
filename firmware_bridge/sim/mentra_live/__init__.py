"""The simulated Mentra Live."""
