"""The link to the glasses: discovery, pairing, state, recovery."""
