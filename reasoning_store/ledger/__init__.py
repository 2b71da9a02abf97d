"""What happened: SQL and nothing but.

The ledger keeps every message with its thinking, in order, on SQLite or PostgreSQL, and
answers what a request needs to know from a constant number of rows. It imports blocks,
codec and errors; it knows no policy, no provider and no tokenizer: counts arrive as values.

    keys                the 63-bit key that every row starts with
    values, summaries   what the verbs take and give
    carried             how the state of a conversation grows, as arithmetic
    columns, rows       values to columns, columns to values; pure
    digests             what a message is compared by; pure
    tables              the schema
    sql                 a statement, compiled once a dialect
    sessions, branches, interning, appending, drafts, compactions, profiles, budget
    reading, views, paging
                        the SQL, over a Connection
    windows             which messages a window holds; pure
    lending, making, sqlite, postgres, engine
                        how a database is held
    migrate             how old a schema is, and how it becomes this version's
    faults              what a driver says, as an error of ours
    opened, verbs, ledger
                        what can be done, each in one short transaction
"""

from __future__ import annotations
