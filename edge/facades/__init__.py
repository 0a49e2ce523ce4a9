"""The ways others reach our tools: an MCP server, the forms of model providers. Each runs
beside the daemon, none in it.
"""
