"""The inspector: pages that show a conversation and its next request."""
