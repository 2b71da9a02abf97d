"""What providers say: the only room that knows a provider's words.

A protocol is read by the module of its name and written by its ``*_requests``; what both need
of its words stands beside them. A protocol reads and writes; it must not decide what is kept,
sent or stored.
"""
