"""Conversations that another program kept, written into a store once.

``import_plan`` finds the new messages of each. A conversation that is refused is listed, and the
others are written. A dry run makes the same plan and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING

from reasoning_store.conversation import codec, validation
from reasoning_store.conversation.errors import Conflict, InvalidCall, NotFound
from reasoning_store.import_plan import Plan, Planned, make_plan
from reasoning_store.kept_histories import Conversation, ImportedConversation
from reasoning_store.ledger import encode
from reasoning_store.ledger.records import SessionRow
from reasoning_store.ledger.transfer import lines
from reasoning_store.ledger.transfer.lines import (
    BranchLine,
    EndLine,
    HeaderLine,
    MessageLine,
    SessionEndLine,
    SessionLine,
)
from reasoning_store.sessions.branch import SessionBranch
from reasoning_store.sessions.session import Session
from reasoning_store.store_state import StoreState
from reasoning_store.stored_values import microseconds

if TYPE_CHECKING:
    from reasoning_store.owner import Owner

_LONGEST_TITLE = 60


class HistoryImport:
    """An import under way, into the sessions of one owner. Made by ``Owner``."""

    def __init__(
        self, state: StoreState, owner: Owner, name: str, *, dry_run: bool, keep_ids: bool
    ) -> None:
        self._state = state
        self._owner = owner
        self._name = name
        self._dry_run = dry_run
        self._keep_ids = keep_ids
        self._ledger = state.ledger
        self._planned: dict[str, Planned] = {}
        """The messages that a dry run would have written into each session."""

    def import_one(self, one: Conversation) -> ImportedConversation:
        """Write the new messages of a conversation, or return why it is refused."""
        if not isinstance(one, Conversation):
            raise InvalidCall(
                f"a conversation of an importer, not {validation.type_name(one)}",
                hint="importers.formats.conversations(path) gives them",
            )
        row = self._find_session(one.id)
        plan = self._make_plan(row, one)
        new, refused = plan.new, plan.refused
        if new and not self._dry_run:
            try:
                self._write(row, one, plan)
            except Conflict:
                refused = "something else was written into the session meanwhile"
                new = self._make_plan(self._find_session(one.id), one).known - plan.known
        return ImportedConversation(
            id=one.id,
            title=self._session_title(one),
            new=new,
            known=plan.known,
            refused=refused,
            report=one.report,
        )

    def _session_title(self, one: Conversation) -> str | None:
        """Return the title, or else the beginning of the first user message; masked."""
        title = one.title or next(
            (item.message.text for item in one.items if item.message.role == "user"), None
        )
        if title is None:
            return None
        if self._state.masker is not None:
            title = self._state.masker.mask(title)
        title = title.replace("\0", "\ufffd")  # no text column of a server holds NUL
        return title if one.title else _first_words(title)

    def _find_session(self, id: str) -> SessionRow | None:
        try:
            return self._ledger.sessions.get(self._name, id)
        except NotFound:
            return None

    def _make_plan(self, row: SessionRow | None, one: Conversation) -> Plan:
        plan = make_plan(self._state, row, one, self._planned.get(one.id, Planned()))
        if self._dry_run:
            self._planned[one.id] = plan.planned
        return plan

    def _write(self, row: SessionRow | None, one: Conversation, plan: Plan) -> None:
        current = plan.branch_of(one.current)
        if row is None:
            self._owner.import_lines(self._export_lines(one, plan, current or 1))
            return
        session = self._owner.session(one.id)
        times, ids = one.message_times(), self._kept_ids(one)
        made: dict[int, int] = {}
        for run in plan.runs:
            here = session.branch(made.get(run.after.branch, run.after.branch))
            if run.is_fork:
                here = here.fork(at=run.after.position + 1)
                made[run.branch] = here.branch_id
            branch = SessionBranch(self._state, row, here.branch_id)
            for place, item in enumerate(run.items, run.after.position + 1):
                id = ids.get(item.key)
                if id is not None and _has_message(session, id):
                    id = None
                at = times[item.key]
                branch.append(item.message, id, item.key, place - 1, at, None, keeps_ids=True)
        if current is not None:
            session.activate(made.get(current, current))

    def _kept_ids(self, one: Conversation) -> dict[str, str]:
        """Return the ids that messages keep, by their keys.

        Of messages with one id the first keeps it. If one message of the source became several,
        it is the last of them: the answer, after the calls that led to it.
        """
        keys: dict[str, str] = {}
        for line in one.lines if self._keep_ids else ():
            for id, several in groupby(line.items, lambda item: item.id):
                *_, last = several
                with suppress(InvalidCall):  # an id that no message can have
                    keys.setdefault(encode.own_id(id or ""), last.key)
        return {key: id for id, key in keys.items()}

    def _export_lines(self, one: Conversation, plan: Plan, current: int) -> Iterator[str]:
        """Yield a new session as the lines of an export, which one step imports.

        It is as old as the conversation: a list of sessions is in the order of their times.
        """
        times, ids = one.message_times(), self._kept_ids(one)
        yield lines.to_text(HeaderLine(version=lines.VERSION))
        yield lines.to_text(
            SessionLine(
                owner=self._name,
                id=one.id,
                title=self._session_title(one),
                metadata=dict(one.metadata),
                encoding=self._state.encoding,
                archived=one.archived,
                current_branch=current,
                created_at=microseconds(one.began, "created_at"),
            )
        )
        for run in plan.runs:
            if run.is_fork:
                parent, first = run.after.branch, run.after.position + 1
                yield lines.to_text(BranchLine(number=run.branch, parent=parent, first=first))
            for item in run.items:
                yield lines.to_text(
                    MessageLine(
                        branch=run.branch,
                        id=ids.get(item.key),
                        message=codec.message_to_json(item.message),
                        created_at=microseconds(times[item.key], "created_at"),
                        repeat=encode.checked_key_digest(item.key),
                        batch=1,
                    )
                )
        yield lines.to_text(SessionEndLine(messages=plan.new))
        yield lines.to_text(EndLine(sessions=1))


def _has_message(session: Session, id: str) -> bool:
    with suppress(NotFound):
        session.get(id)
        return True
    return False


def _first_words(text: str) -> str | None:
    line = " ".join(text.split())
    return (line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 3] + "...") or None
