"""The control API: HTTP over a unix socket, contract §6."""
