"""The simulated Brilliant Labs Monocle."""
