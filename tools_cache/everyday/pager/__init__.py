"""Virtual pagers: short signed messages between two edges, carried by a relay in the cloud."""
