"""The mock peripheral: the same codec in the other role, on a real Bluetooth host stack."""
