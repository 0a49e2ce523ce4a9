"""Brilliant Labs Frame: wire facts, program, codec of both roles."""
