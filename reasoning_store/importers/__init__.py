"""Conversations that other programs kept, read as conversations of this store.

A file goes through these modules, from the first to the last:

- ``formats`` finds the format by its marks and names its reader: ``openai``, ``anthropic``
  and ``llm`` here, the others in ``programs`` and ``frameworks``.
- ``documents`` reads JSON value by value, ``source_messages`` finds the messages of each
  conversation, and ``conversation_readers`` gives them to the format, from a list or a tree.
- ``conversation_builder`` makes one conversation of what the format adds: the messages of a
  protocol's request, which ``formats`` of the package reads, or the parts of a reply
  (``reply_parts``), which ``reply_forms`` reads like a reply that arrives now.
- ``values`` counts them. ``store.import_conversations`` writes the new part of a conversation.

Words of a user or a tool are stored unchanged. A reader must not know a store, its settings or
policy. Only ``llm`` opens a database, another program's, and only to read. The adapters of
``integrations`` read messages with the same functions.
"""
