"""The values of a conversation. This folder imports no other of ours and does no I/O."""
