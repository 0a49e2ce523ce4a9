"""The client of other MCP servers: one child process holds every connection, the daemon holds a
handle to it.

`words`, `frames` and `client` are the daemon's side (no SDK, no pydantic); everything else runs in
the child (`python -m edge.mcp.client`). Refuses to know tools, scopes and envelopes: those are the
daemon's.
"""
