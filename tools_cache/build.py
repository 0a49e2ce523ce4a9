"""`python -m tools_cache.build`: compile the tool folders into `tool_registry.json`."""

import sys

from tools_cache.builder.compiler import main

if __name__ == "__main__":
    sys.exit(main())
