"""`make lens-sheet`: what the wearer sees in a hundred situations, from framebuffers only."""
