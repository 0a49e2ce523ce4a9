"""The client of other MCP servers: one child process holds every connection, and the daemon holds
a handle to it.

`models`, `frames`, `client`, `manager`, `state`, `results` and `cache` run in the daemon, without
the SDK and pydantic; everything else runs in the child (`python -m edge.mcp.client`).
"""
