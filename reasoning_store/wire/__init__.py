"""What providers say: the only room that knows a provider's words.

One file a protocol, with both directions. A protocol reads and writes; it never decides
what is kept, sent or stored.
"""
