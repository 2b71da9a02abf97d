"""What runs in the processes that write at once."""
