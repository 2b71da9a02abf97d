"""Conversations that other programs kept, read as conversations of this store.

``formats`` tells the formats apart and names each one's reader: ``openai``, ``anthropic``,
``llm``. ``documents`` reads JSON and JSON lines piece by piece, ``gathering`` makes one
conversation and counts what became of it, ``values`` is what comes out. What a model said
goes through ingress like a reply that arrives now; what a user or a tool said is kept as it
stands.

The room reads. It knows codec, wire and ingress; it must not know a store, its SQL, settings
or policy. Only ``llm_file`` opens a database, another program's, and only to read.
"""
