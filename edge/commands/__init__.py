"""The verbs of `glassd`, one module each, imported when asked for. They speak to the daemon
only through its socket.
"""
