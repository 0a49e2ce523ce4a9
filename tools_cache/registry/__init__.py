"""The registry document: read, checked, stored."""
