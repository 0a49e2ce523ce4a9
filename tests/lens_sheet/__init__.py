"""`make lens-sheet`: what the wearer sees in 180 situations, from framebuffers only."""
