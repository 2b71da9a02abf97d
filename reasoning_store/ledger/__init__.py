"""The ledger: the only room with SQL; it knows no policy, no provider and no tokenizer.

A subject is a module: its statements, its functions over a transaction and its class, which opens
one. ``ledger.Ledger`` holds the classes over one database. Four subjects have their statements in
a module of their own (``appends``, ``stored_drafts``, ``stored_compactions``, ``removal``).
"""

from __future__ import annotations
