"""`glassd doctor`: numbered checks of this machine, each with the exact fix."""
