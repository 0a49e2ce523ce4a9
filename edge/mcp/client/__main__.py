"""The child: `python -m edge.mcp.client`. Started by `UpstreamClient` alone; its stdin and stdout
carry frames.
"""

from edge.mcp.client.child import main

main()
