"""The codec of our own open profile (PROFILE.md)."""
