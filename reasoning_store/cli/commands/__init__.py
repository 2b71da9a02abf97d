"""The commands, one module each; those of one subject share a module."""
