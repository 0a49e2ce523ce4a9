"""Rules: pure functions and tables. No await, no sockets, no clock that was not handed in."""
