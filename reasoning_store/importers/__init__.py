"""Conversations that other programs kept, read as conversations of this store.

``formats`` recognises a file and names its reader: ``openai``, ``anthropic`` and ``llm`` here,
those of other programs in ``programs``, those of frameworks in ``frameworks``. ``documents``
reads JSON and JSON lines piece by piece, ``conversation_builder`` makes one conversation and
counts what became of it, ``message_tree`` reads a tree as its branches, ``reply_parts`` reads a
reply in any form, ``values`` is what comes out, and ``into_store`` writes it. A model's words go
through ingress like a reply that arrives now; those of a user or a tool are stored unchanged.

A reader knows codec, wire and ingress; it must not know a store, its SQL, settings or policy.
Only ``llm_file`` opens a database, another program's, and only to read.
"""
