"""Replies that are recorded: the loop over a stream, its draft, its message at the end."""
