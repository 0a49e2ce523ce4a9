"""The control API: HTTP over two unix sockets; `docs/control-api.md` is its contract."""
