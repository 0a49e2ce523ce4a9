"""Sounds and pictures of finished glasses, for tools."""
