"""Talks to the glasses: radios, protocols of the glasses families, and simulated glasses."""
