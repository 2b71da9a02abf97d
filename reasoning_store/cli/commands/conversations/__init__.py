"""The commands that work on conversations."""
