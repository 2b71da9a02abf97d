"""How much a verb reads: the statements that it runs, and the rows that each one returns.

Counted where every statement of the ledger goes by, so that none is missed. That a
statement looks at no more rows than it returns is another test's (no plan has a scan).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reasoning_store.ledger.database.statement import STREAMS, Statement


@contextmanager
def watched() -> Iterator[list[int]]:
    """Give a list of how many rows each statement returned, in the order they ran in."""
    work: list[int] = []
    rows, pages, streamed = Statement.rows, Statement.pages, Statement.streamed

    def counting(self: Statement, connection: Any, params: Any) -> list[tuple[Any, ...]]:
        found = rows(self, connection, params)
        work.append(len(found))
        return found

    @contextmanager
    def counting_pages(self: Statement, connection: Any, params: Any, size: int) -> Iterator[Any]:
        with pages(self, connection, params, size) as each:
            found = list(each)
            work.append(sum(map(len, found)))
            yield iter(found)

    @contextmanager
    def counting_streams(self: Statement, connection: Any, params: Any, size: int) -> Iterator[Any]:
        with streamed(self, connection, params, size) as stream:
            if not connection.get_execution_options().get(STREAMS):
                yield stream  # by pages, which are counted
                return
            found = list(stream)
            work.append(len(found))
            yield iter(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Statement, "rows", counting)
        patch.setattr(Statement, "pages", counting_pages)
        patch.setattr(Statement, "streamed", counting_streams)
        yield work
