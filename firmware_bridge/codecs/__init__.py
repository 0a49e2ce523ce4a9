"""Codecs, one per glasses family, in both roles; no I/O and no clock."""
