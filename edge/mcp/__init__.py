"""The Model Context Protocol: other servers' tools, our own server, providers' forms."""
