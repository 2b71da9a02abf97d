"""The verbs of the reasoning budget: what was used, and which marks were told.

What a limit is, and when it is crossed, is the caller's.
"""

from __future__ import annotations

from reasoning_store.ledger import budget
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.values import BudgetRow


class BudgetVerbs(Opened):
    """What a session has thought."""

    def budget(self, session_key: int) -> BudgetRow:
        """Return the reasoning that a session has used, on all branches, and what was told."""
        return self._read(lambda connection: budget.get(connection, session_key), single=True)

    def remember_crossing(self, session_key: int, name: str) -> bool:
        """Remember that a mark was told; True for the first who does, of all processes."""
        return self._write(lambda connection: budget.remember(connection, session_key, name))
