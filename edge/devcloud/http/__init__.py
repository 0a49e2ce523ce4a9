"""The HTTP side of the small cloud."""
