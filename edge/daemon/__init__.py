"""Builds the daemon from its packages and runs it."""
