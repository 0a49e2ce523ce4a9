"""Stories of glasses families: simulated glasses and a daemon, each in a process of its own."""
