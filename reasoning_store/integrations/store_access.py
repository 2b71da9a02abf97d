"""The steps that adapters share: the store they are given, its sessions, and its policy.

A verb of the store runs in a thread; one that has begun runs to its end, also if it is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import reasoning_store as rs
from reasoning_store.results import Owner, Selection, Stored

P = ParamSpec("P")
T = TypeVar("T")
Settings: TypeAlias = rs.ReasoningSettings | Mapping[str, Any] | None
_PAGE = 200


_RECORDED: Final[ContextVar[tuple[Owner, str] | None]] = ContextVar("recorded", default=None)
"""The session in which an adapter stores the replies of this task or thread."""


def mark_recorded(owner: Owner, session_id: str) -> None:
    """Mark that an adapter stores the replies which are asked for here, until this task ends."""
    _RECORDED.set((owner, session_id))


@contextmanager
def recording_replies(owner: Owner, session_id: str) -> Iterator[None]:
    """Mark it for the calls of a model inside; after them the mark before it holds again."""
    before = _RECORDED.get()
    mark_recorded(owner, session_id)
    try:
        yield
    finally:
        _RECORDED.set(before)  # not by a token, which only its own context takes


def recorded_session(owner: Owner) -> tuple[Owner, str] | None:
    """Return the session in which an adapter stores the replies, if it is in the same store."""
    found = _RECORDED.get()
    return found if found is not None and found[0]._state is owner._state else None


def explain_import(error: ImportError, package: str, *, extra: str) -> Exception:
    """Return the error that names the extra; the same one where something else is missing.

    ``package`` is the framework's package of Python, which may be there in another version.
    """
    if (error.name or "").partition(".")[0] != package.partition(".")[0]:
        return error
    is_absent = isinstance(error, ModuleNotFoundError) and package.startswith(error.name or "")
    what = "is not installed" if is_absent else "is installed in a version that does not fit"
    return rs.MissingExtra(f"{package} {what}", extra=extra)


async def run_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a verb of a synchronous store to its end; then a cancellation goes on."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:
                continue
        if not running.cancelled():
            running.exception()  # read: the caller gets the cancellation
        raise


def check_owner(store: Any) -> Owner:
    """Return a store or an owner, and refuse anything else."""
    if not isinstance(store, Owner):
        raise rs.InvalidCall(
            f"a store or an owner, not {type(store).__name__}",
            hint='rs.Store("sqlite:///chat.db"), also for asynchronous clients and agents',
        )
    return store


def find_session(owner: Owner, id: str) -> rs.Session | None:
    """Return a session, if it is there."""
    try:
        return owner.session(id)
    except rs.NotFound:
        return None


def find_message(session: rs.Session, id: str) -> Stored | None:
    """Return the message of an id, if it is there."""
    try:
        return session.get(id)
    except rs.NotFound:
        return None


def all_sessions(owner: Owner) -> Iterator[rs.Session]:
    """Yield every session of an owner, archived ones too."""
    after = None
    while True:
        page = owner.sessions(limit=_PAGE, after=after, archived=None)
        yield from page.items
        after = page.next
        if after is None:
            return


def read_settings(settings: Settings) -> rs.ReasoningSettings:
    """Return settings that are given as an object or by their names."""
    if isinstance(settings, rs.ReasoningSettings):
        return settings
    return rs.ReasoningSettings.model_validate(dict(settings or {}))


def resolve_settings(
    holder: Owner | rs.Session | None, laid_over: rs.ReasoningSettings
) -> dict[str, Any]:
    """Return the settings of a session or an owner, with others laid over them."""
    kept = {} if holder is None else holder.settings.resolved()
    values = {key: found.value for key, found in kept.items()}
    return {**values, **laid_over.model_dump(by_alias=True, exclude_unset=True)}


def withheld_blocks(selection: Selection) -> dict[int, set[int]]:
    """Return the indexes of the thinking blocks that are not sent, by the index of the message."""
    withheld: dict[int, set[int]] = {}
    for verdict in selection.verdicts:
        if not verdict.kept:
            withheld.setdefault(verdict.message, set()).add(verdict.block)
    return withheld
