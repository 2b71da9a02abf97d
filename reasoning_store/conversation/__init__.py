"""Values: what a conversation consists of. Imports nothing of ours and does no I/O."""
