"""Reminders: moments in words, repeats, and being told of them."""
