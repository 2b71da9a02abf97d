"""How Alembic reaches a database: over the connection it is given, or over a URL.

The package gives its own connection, inside its own transaction. From a checkout the command
takes ``-x db=URL``, ``REASONING_STORE_URL`` or ``sqlalchemy.url`` of ``alembic.ini``; it then uses
the package's engine, so that a migration is one transaction on SQLite too.
"""

from __future__ import annotations

import os
import re

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection

from reasoning_store.conversation.errors import ReasoningStoreError
from reasoning_store.ledger.database import opening
from reasoning_store.ledger.tables import metadata

SEARCH = re.compile("search_index.*|ix_search_entries_words")
"""What one engine alone has to find words."""


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_type=True,
        include_name=lambda name, *_: not SEARCH.fullmatch(name or ""),
        compare_server_default=True,
        # SQLite changes a table by rebuilding it.
        render_as_batch=connection.dialect.name == "sqlite",
        # Alembic thinks that SQLite cannot; with BEGIN said by us, it can.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    if context.is_offline_mode():
        raise CommandError("there is no offline mode: migrations look at what they change")
    given: Connection | None = context.config.attributes.get("connection")
    if given is not None:
        run(given)
        return
    url = (
        context.get_x_argument(as_dictionary=True).get("db")
        or os.environ.get("REASONING_STORE_URL")
        or context.config.get_main_option("sqlalchemy.url")
    )
    if not url:
        raise CommandError(
            "which database? Run: alembic -x db=sqlite:///chat.db upgrade head;"
            " or set REASONING_STORE_URL, or sqlalchemy.url in alembic.ini"
        )
    try:
        opening.run_schema_command(url, run)
    except ReasoningStoreError as error:
        raise CommandError(f"{error} ({error.hint})" if error.hint else str(error)) from error


main()
