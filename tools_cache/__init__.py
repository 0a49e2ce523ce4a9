"""Tools: definitions, calls, results, names, and the registry built from the tool folders."""

import sys

from tools_cache.old_paths import OldPaths

sys.meta_path.append(OldPaths)
