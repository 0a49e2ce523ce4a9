"""What survives a restart: SQLite behind one writer thread."""
