"""Finding messages: the index of words, and thoughts across sessions."""
