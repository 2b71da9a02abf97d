"""The verbs over one database, all of them together.

Each verb is one short transaction that never waits for a caller's code, and returns whole
values: so the sync face calls it, the async face hands it to a thread, and neither can
hold the store open. Everything slow or able to fail in a caller's value is done before the
transaction starts. Ids and time come in here (``opened``) and nowhere below.

Knows which verbs there are. What they do is in ``verbs``, the SQL in the modules beside.
"""

from __future__ import annotations

from reasoning_store.ledger.verbs.branching import BranchVerbs
from reasoning_store.ledger.verbs.budgeting import BudgetVerbs
from reasoning_store.ledger.verbs.compacting import CompactionVerbs
from reasoning_store.ledger.verbs.exporting import ExportingVerbs
from reasoning_store.ledger.verbs.importing import ImportingVerbs
from reasoning_store.ledger.verbs.keeping import KeepingVerbs
from reasoning_store.ledger.verbs.profiles import ProfileVerbs
from reasoning_store.ledger.verbs.reading import ReadingVerbs
from reasoning_store.ledger.verbs.sessions import SessionVerbs
from reasoning_store.ledger.verbs.verifying import VerifyingVerbs


class Ledger(
    SessionVerbs,
    ImportingVerbs,
    BranchVerbs,
    ReadingVerbs,
    CompactionVerbs,
    VerifyingVerbs,
    KeepingVerbs,
    ExportingVerbs,
    ProfileVerbs,
    BudgetVerbs,
):
    """What happened, on one database: every verb, each one short transaction."""
