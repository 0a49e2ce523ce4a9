"""The simulated Brilliant Labs Frame."""
