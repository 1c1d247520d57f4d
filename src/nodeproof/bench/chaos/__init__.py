"""What badly behaved clients do to a server, and how long it takes to serve the others again."""
