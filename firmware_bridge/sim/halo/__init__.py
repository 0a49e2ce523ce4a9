"""The simulated Brilliant Labs Halo."""
