"""Tools: definitions, calls, results, names, and the registry built from the tool folders."""
