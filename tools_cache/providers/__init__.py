"""Tool definitions in the form of each model provider, computed when tools are built."""
