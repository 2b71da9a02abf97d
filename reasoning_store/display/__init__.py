"""Showing a message to a person: visible parts, and thinking rendered as text."""
