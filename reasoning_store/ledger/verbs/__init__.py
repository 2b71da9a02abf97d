"""The ledger's verbs, one concern a module.

Each class adds its verbs to ``Opened``; ``Ledger`` is all of them together. What holds for
every verb is said there.
"""

from __future__ import annotations
