"""Strangers' judgement of our MCP surfaces: the official suite, the Inspector, and the fixtures
the suite asks for.
"""
