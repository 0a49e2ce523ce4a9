"""Moments in words, and repeats."""
