"""The simulated Even Realities G2."""
