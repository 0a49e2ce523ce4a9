"""Recordings of what passes between a central and glasses: docs/recording.md."""
