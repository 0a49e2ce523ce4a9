"""Commands that need no glasses: demo, simulator, small cloud."""
