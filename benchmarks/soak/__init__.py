"""`make soak`: an hour of mixed load on the real daemon, and a verdict on every number that
must not grow.
"""
