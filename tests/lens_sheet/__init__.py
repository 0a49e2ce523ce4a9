"""`make lens-sheet`: what the wearer sees in more than 200 situations, from framebuffers only."""
