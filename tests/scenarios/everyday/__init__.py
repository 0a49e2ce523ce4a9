"""Stories of the everyday tools, with a cloud."""
