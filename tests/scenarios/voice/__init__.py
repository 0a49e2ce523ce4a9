"""What the wearer hears."""
