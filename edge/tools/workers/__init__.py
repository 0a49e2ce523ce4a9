"""The network part of tools, each in a process of its own that answers once and ends."""
