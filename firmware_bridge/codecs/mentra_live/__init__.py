"""Mentra Live: JSON messages in the frames of its Bluetooth chip, photos as file packets."""
