"""Everyday tools on the lens: their services on this machine, and what the wearer asks them."""
