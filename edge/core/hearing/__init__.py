"""Rules for what was heard: what may be said now, what it means, how sure that is."""
