"""A store of conversations at a database URL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from reasoning_store.conversation.validation import check_number, check_text, check_truth
from reasoning_store.ledger.database import opening, schema_version
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import BackedUp, Page, Verified
from reasoning_store.owner import Owner
from reasoning_store.recording.draft_writer import DraftWriter, check_intervals
from reasoning_store.store_state import StoreState
from reasoning_store.tokens import DEFAULT_ENCODING, ENCODINGS, counter
from reasoning_store.wire.contract_tables import OwnContracts, read_contracts

if TYPE_CHECKING:
    from reasoning_store.diagnosis import Finding
    from reasoning_store.ingress.masking import Masker

_OWNER = 'as in for_owner("user-7"); without one the owner is ""'


class Store(Owner):
    """A store at a database URL: ``sqlite:///chat.db``, ``postgresql+psycopg://...``.

    ``sqlite://`` is in memory. An SQLite file is created, and its schema upgraded, when it is
    opened; a PostgreSQL database is upgraded by command. ``masker`` masks every write.
    ``encoding`` counts new sessions. ``read_only`` opens a store that is there and writes
    nothing: also a file that cannot be written, or one in a folder that cannot. ``schema`` is
    the schema of the tables on a PostgreSQL server: where they are found, else
    ``reasoning_store``; ``?schema=`` in the URL does the same. ``contracts`` are hosts and models
    of your own, in a TOML file or a mapping; they hold for this store. Without it the file that
    ``REASONING_STORE_CONTRACTS`` names is read. A reply that arrives is written every
    ``draft_seconds`` (1), or every ``followed_seconds`` (0.2) while another process follows it.
    ``readers`` (8) is how many reads of an SQLite file run at once, and how many connections a
    store keeps to a server.

    ``session``, ``sessions``, ``search``, ``thoughts``, ``settings``, ``budget``, ``delete`` and
    ``erase`` are those of the owner ``""``, and ``for_owner`` gives another's. ``report``,
    ``export_lines``, ``import_lines`` and ``owners`` are about all owners.
    """

    def __init__(
        self,
        url: str,
        *,
        masker: Masker | None = None,
        encoding: str = DEFAULT_ENCODING,
        read_only: bool = False,
        schema: str | None = None,
        contracts: OwnContracts | None = None,
        draft_seconds: float | None = None,
        followed_seconds: float | None = None,
        readers: int = opening.CONNECTIONS,
    ) -> None:
        known = read_contracts(contracts)
        counter(encoding)  # refuses an unknown name now, and loads nothing yet
        if masker is not None:
            from reasoning_store.ingress.masking import check_masker

            check_masker(masker)
        check_truth("read_only", read_only)
        check_intervals(draft_seconds=draft_seconds, followed_seconds=followed_seconds)
        check_number("readers", readers, least=1, hint=f"as in readers={opening.CONNECTIONS}")
        where = opening.with_schema(url, schema)
        ledger = Ledger.open(where, connections=readers, read_only=read_only)
        draft_writer = DraftWriter(ledger, draft_seconds, followed_seconds)
        super().__init__(StoreState(ledger, masker, encoding, draft_writer, known), "")
        self._only = None
        self._place = opening.without_secrets(url)
        is_file = opening.parse_url(url).get_backend_name() == "sqlite"
        self._writers = 1 if is_file else readers
        """The number of writes that can run at once."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._place}>"

    def for_owner(self, owner: str) -> Owner:
        """Return the same verbs for this owner only. Without one the owner is ``""``."""
        return Owner(self._state, check_text("owner", owner, hint=_OWNER))

    def owners(self, *, limit: int = 50, after: str | None = None) -> Page[str]:
        """Return the owners who have sessions, in an order of no meaning."""
        return self._state.ledger.sessions.owners(limit=limit, after=after)

    def verify(self, *, progress: Callable[[float], None] | None = None) -> Verified:
        """Read all rows, and return those that are not as they were written.

        ``progress`` is called with about the share that is done, from 0 to 1.
        """
        return self._state.ledger.audit.verify(
            encodings=ENCODINGS, count=self._state.count, progress=progress
        )

    def backup(self, path: str | PathLike[str], *, overwrite: bool = False) -> BackedUp:
        """Write a copy of an embedded database while it is in use, and compare it.

        A file that is at ``path`` stays, unless ``overwrite``.
        """
        check_truth("overwrite", overwrite)
        return self._state.ledger.backup(path, overwrite=overwrite)

    def scrub(self) -> tuple[str, ...]:
        """Finish erasures that were interrupted; return the files that may still hold bytes.

        An erasure does this itself, and so does opening a file that an interrupted one left.
        """
        return self._state.ledger.database.scrub()

    @property
    def revision(self) -> str:
        """The revision of the database's schema."""
        return schema_version.REVISIONS[-1]

    def close(self) -> None:
        """Close every connection; store the parts of replies that are still recorded."""
        self._state.draft_writer.write_all()
        self._state.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The garbage collector may be ending a generator, in a thread that holds a lock: it closes
        # the store, too.
        if kind is not GeneratorExit:
            self.close()

    # Without opening a store

    @staticmethod
    def upgrade(url: str, *, schema: str | None = None) -> str:
        """Bring a database's schema up to date and return its revision.

        ``Store`` does this by itself for an embedded SQLite file; for PostgreSQL this is the
        one way. ``schema`` is that of ``Store``.
        """
        opening.upgrade(opening.with_schema(url, schema))
        return schema_version.REVISIONS[-1]

    @staticmethod
    def revision_of(url: str) -> str:
        """Return the revision of a database's schema, as it is; ``base`` is the one before any."""
        with closing(opening.open_any_version(url)) as database:
            return database.read(schema_version.current_revision) or schema_version.BASE

    @staticmethod
    def file_of(url: str) -> Path | None:
        """Return the file of an embedded database; ``None`` for a server or memory."""
        return opening.file_of(opening.parse_url(url))

    @staticmethod
    def diagnose(url: str) -> Iterator[Finding]:
        """Check the library, the environment and a database, and write nothing but what is due.

        An erasure that was interrupted is finished. No finding holds a text or a secret.
        """
        from reasoning_store.diagnosis import diagnose

        return diagnose(url)
