"""The SQLite database under the tables: opening, migrating, checking, rescuing."""
