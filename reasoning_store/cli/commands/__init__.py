"""The commands: one module for each, or for a few on one subject."""
