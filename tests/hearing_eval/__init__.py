"""Measures how well spoken sentences become calls. `make hear-sheet` runs it."""
