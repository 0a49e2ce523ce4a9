"""The child: `python -m edge.upstream`. Started by `UpstreamClient` alone; its stdin and stdout
carry frames.
"""

from edge.upstream.child import main

main()
