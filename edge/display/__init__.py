"""Shows results on the glasses: pages on the lens, and speech."""
