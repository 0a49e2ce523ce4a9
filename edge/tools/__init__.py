"""The tools that can be called: registry, selection, local handlers, HTTP tools."""
