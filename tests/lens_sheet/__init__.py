"""`make lens-sheet`: what the wearer sees in 220 situations, from framebuffers only."""
