"""What several commands need: the console, the daemon's client, pairing, extras."""
