"""What tools keep on disk: tables and files of packages and users, the knowledge base."""
