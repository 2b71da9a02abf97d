"""Showing a message to a person: visible parts, UI messages, and thinking rendered as text."""
