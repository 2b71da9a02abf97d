"""The asynchronous face: the verbs of the store, of owners and sessions, awaited."""
