"""Our tools as an MCP server, in front of the daemon's control socket."""
