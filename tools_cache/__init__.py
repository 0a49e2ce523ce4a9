"""What can be called: tool definitions, calls, results, names, and the registry they are built
into.
"""
