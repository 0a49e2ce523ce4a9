"""Compiles and checks tool folders."""
