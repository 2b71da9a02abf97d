"""The commands that find messages."""
