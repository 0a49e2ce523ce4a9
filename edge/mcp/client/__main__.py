"""The child process, started by `UpstreamClient`; its stdin and stdout carry frames."""

from edge.mcp.client.child import main

main()
