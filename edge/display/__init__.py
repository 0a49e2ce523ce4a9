"""Results onto the glasses: pages for the lens, speech for the ear."""
