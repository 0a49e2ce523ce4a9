"""Simulated glasses: the codecs in the peripheral role, on a real Bluetooth host stack."""
