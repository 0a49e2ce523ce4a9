"""The codec of the Even Realities G2."""
