"""How the wearer reads dates, numbers, data and failures; text that is what it looks like."""
