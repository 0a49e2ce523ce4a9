"""The simulated Even Realities G1."""
