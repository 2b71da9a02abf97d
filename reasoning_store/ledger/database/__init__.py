"""One database: open, read, write, back up, migrate."""
