"""How each provider of models is told of a tool. Computed when tools are built, never while the
daemon serves (S2-31).
"""
