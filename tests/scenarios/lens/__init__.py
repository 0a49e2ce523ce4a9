"""Stories of what the wearer sees and hears on the glasses."""
