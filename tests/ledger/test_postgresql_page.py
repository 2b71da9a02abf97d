"""docs/howto/postgresql.md: its roles are enough for the ledger.

Its statements for Citus are those of ``tests/cli/test_citus_page.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.store import Store
from tests import clusters
from tests.docs.pages import read

from .compacting import compact
from .histories import add_part, answered, new_session, part, said

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "postgresql.md"
ROLES, GRANTS, *_ = (block.text for block in read(PAGE) if block.language == "sql")


@pytest.fixture
def name(postgres_server: URL) -> Iterator[str]:
    """What stands for "chat" in the names of roles and databases, which a server has once."""
    made = f"rs_{os.getpid()}_page"
    yield made
    server = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {made} WITH (FORCE)")
        for role in ("owner", "app"):
            connection.exec_driver_sql(f"DROP ROLE IF EXISTS {made}_{role}")
    server.dispose()


def as_role(url: URL, role: str) -> URL:
    return url.update_query_dict({"options": f"-c role={role}"})


def test_the_roles_of_the_page_can_do_their_work_and_no_more(
    postgres_server: URL, name: str
) -> None:
    """The owner upgrades; a program writes, erases and moves lines, and changes no table."""
    clusters.run_each(postgres_server, ROLES.replace("chat", name))
    url = postgres_server.set(database=name)
    owner, app = as_role(url, f"{name}_owner"), as_role(url, f"{name}_app")
    clusters.run_each(owner, GRANTS.replace("chat", name))
    with pytest.raises(InvalidCall, match="role may not"):
        Store.upgrade(app.render_as_string(hide_password=False))
    Store.upgrade(owner.render_as_string(hide_password=False))

    with Ledger.open(app) as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said(), answered(), said(), answered()])
        draft = ledger.drafts.begin(session.key, 1)
        add_part(ledger, draft, 1, part("x"))
        ledger.drafts.drop(draft)
        compact(ledger, session.key, 1, 1, 2, said("summary"))
        ledger.profiles.set("u", "p", {})
        ledger.erasure.erase_message(session.key, 1, 4, only="reasoning")
        lines = list(ledger.transfer.export_lines())
        assert ledger.audit.verify().ok
        ledger.erasure.erase_session(session.key)
        assert ledger.transfer.import_lines(lines).messages == 4
        ledger.erasure.erase_owner("u")
        for forbidden in (
            "DROP TABLE reasoning_store.messages",
            "CREATE TABLE reasoning_store.more (x int)",
        ):
            with pytest.raises(InvalidCall, match="role may not"):
                ledger.database.write(lambda c, text=forbidden: driver(c).execute(text))  # type: ignore[misc]
