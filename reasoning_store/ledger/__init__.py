"""What happened: SQL and nothing but.

The ledger keeps every message with its thinking, in order, on SQLite or PostgreSQL, and
answers what a request needs to know from a constant number of rows. It imports blocks,
codec and errors; it must not know policy, a provider or a tokenizer: counts arrive as values.

``keys``, ``values`` and ``tables`` say what is kept. The modules named after what they keep hold
the statements, over a Connection; ``columns`` and ``rows`` turn values into them and back.
``engine`` and what it imports hold the database open. ``verbs`` is what can be done, each in one
short transaction, and ``ledger`` all of them together. docs/code-map.md has every module.
"""

from __future__ import annotations
