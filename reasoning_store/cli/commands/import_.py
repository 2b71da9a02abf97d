"""The command `import`: the lines of an export, or a history that another program kept."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.options import name_in_error
from reasoning_store.cli.output import Page, plural, print_answer, print_note, print_warnings
from reasoning_store.cli.progress import Progress
from reasoning_store.conversation import codec
from reasoning_store.conversation.errors import InvalidCall, NotFound
from reasoning_store.ledger.database import files

if TYPE_CHECKING:
    from reasoning_store.importers.into_store import ImportedHistory
    from reasoning_store.importers.values import Report
    from reasoning_store.ledger.transfer.lines import SessionLine
    from reasoning_store.ledger.transfer.transfer import OnConflict
    from reasoning_store.owner import Owner
    from reasoning_store.store import Store

T = TypeVar("T")
_Given: TypeAlias = Callable[[Iterable[bytes]], Iterable[bytes]]

_LINES = "lines"
_FORMATS = ("anthropic", _LINES, "llm", "openai")
_ALIKE = 10
"""How many warnings of one kind are shown."""
_COUNTS = {
    "reasoning_in": "thoughts in it",
    "reasoning_stored": "thinking blocks made of them",
    "copies": "thoughts that repeat another",
    "texts_unchanged": "texts as they were",
    "texts_cleaned": "texts with leaked delimiters taken out",
    "delimiters": "delimiters taken out",
    "kept_raw": "parts kept as they came",
}


@click.command(
    "import",
    cls=Command,
    examples=("import history.json --dry-run", "import export.jsonl"),
    answers="format dryRun sessions messages already skipped report conversations",
)
@click.argument("source", metavar="FILE", type=click.Path(allow_dash=True))
@click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    help="The format of FILE; by default it is recognised. `lines` are those of `export`.",
)
@click.option("--owner", help="The new owner; by default the owner that the lines name.")
@click.option("--provider", help="The provider, if the history does not name it.")
@click.option("--model", help="The model, if the history does not name it.")
@click.option(
    "--on-conflict",
    type=click.Choice(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="If a session here differs: refuse the import, or skip the session.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be imported, and write nothing.")
@click.pass_obj
def import_(
    call: Call,
    source: str,
    format_: str | None,
    owner: str | None,
    provider: str | None,
    model: str | None,
    on_conflict: OnConflict,
    dry_run: bool,
) -> None:
    """Import an export, or a history kept elsewhere.

    Messages of OpenAI or Anthropic as JSON or JSON lines, a logs database of llm, or the
    lines of an export; - is standard input. Messages that are there already are not written
    again, so you can run an interrupted import again. Reasoning is kept, delimiters that leaked
    into a text are removed, and both are counted. A missing database is created.

    Exits with 2 if FILE holds messages and none can be imported.
    """
    with _seekable_file(source, format_) as path:
        kind = format_ or _detect_format(path)
        call.if_interrupted = "run it again: imported messages are not written twice"
        if kind == _LINES:
            _import_lines(call, path, owner, on_conflict, dry_run)
            return
        named = {"provider": provider, "model": model}
        options: dict[str, Any] = {key: value for key, value in named.items() if value}
        if path != source:
            # The same again next time, unlike that of the file that was made of it.
            options["name"] = "stdin" if source == "-" else os.path.basename(source)
        with store_access.open_or_create(call, unless=dry_run) as store:
            done = _import_history(store.for_owner(owner or ""), path, kind, options, dry_run)
    _print_history(call, kind, done, on_conflict)


def _detect_format(path: str) -> str:
    from reasoning_store.importers import formats

    return formats.detect(path)


@contextmanager
def _seekable_file(source: str, format_: str | None) -> Iterator[str]:
    """Yield a file that can be read twice: a pipe is written to a temporary file first.

    Lines that are said to be lines are looked at once.
    """
    if source != "-":
        files.check_to_read(source, f"{source} cannot be read")
    if source != "-" and (format_ == _LINES or os.path.isfile(source)):
        yield source
        return
    with (
        tempfile.TemporaryDirectory(prefix="reasoning-store-") as folder,
        nullcontext(sys.stdin.buffer) if source == "-" else files.opened(source) as pipe,
    ):
        path = Path(folder) / "piped"
        with name_in_error(str(path)), path.open("wb") as file:
            shutil.copyfileobj(pipe, file)
        yield str(path)


# Lines of our own


def _import_lines(
    call: Call,
    path: str,
    owner: str | None,
    on_conflict: OnConflict,
    dry_run: bool,
) -> None:
    with (
        store_access.open_or_create(call, unless=dry_run) as store,
        _dry_run_store(store, owner) if dry_run else nullcontext((store, iter)) as (into, given),
        Progress("importing", os.path.getsize(path)) as progress,
        files.opened(path) as lines,
    ):
        of: Owner = into if owner is None else into.for_owner(owner)
        done = of.import_lines(given(_count_bytes(lines, progress)), on_conflict=on_conflict)

    def write_page(page: Page) -> None:
        came = "would be imported" if dry_run else "imported"
        page.line(f"{plural(done.sessions, 'session')}, {plural(done.messages, 'message')} {came}")
        if done.already:
            page.line(f"{plural(done.already, 'message')} were there already")

    print_answer(
        call,
        {
            "format": _LINES,
            "dryRun": dry_run,
            "sessions": done.sessions,
            "messages": done.messages,
            "already": done.already,
            "skipped": list(done.skipped),
            "report": None,
            "conversations": [],
        },
        write_page,
    )
    print_warnings(f"{name} differs here and was skipped" for name in done.skipped)


def _count_bytes(lines: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
    for line in lines:
        progress.advance(len(line))
        yield line


@contextmanager
def _dry_run_store(here: Store, owner: str | None) -> Iterator[tuple[Store, _Given]]:
    """Open a store that is thrown away, and lead lines there so that they find what is here.

    A session of ``here`` is copied when its line comes by: so the lines come in, are known
    or are refused as they would be.
    """
    from reasoning_store.store import Store

    with (
        tempfile.TemporaryDirectory(prefix="reasoning-store-") as folder,
        Store(f"sqlite:///{Path(folder) / 'dry-run.db'}") as store,
    ):
        copied: set[tuple[str, str]] = set()

        def given(texts: Iterable[bytes]) -> Iterator[bytes]:
            for text in texts:
                line = _session_line(text)
                if line is not None:
                    of = line.owner if owner is None else owner
                    if (of, line.id) not in copied:
                        copied.add((of, line.id))
                        _copy_session(here.for_owner(of), store, line.id)
                yield text

        yield store, given


def _session_line(text: bytes) -> SessionLine | None:
    """Return the line of a session; another, or one that cannot be read, is none here."""
    from reasoning_store.ledger.transfer import lines

    if not lines.may_be_session(text):
        return None
    try:
        line = lines.read(text)
    except InvalidCall:
        return None  # it has its number where it is taken in
    return line if isinstance(line, lines.SessionLine) else None


def _copy_session(here: Owner, into: Store, id: str) -> None:
    """Copy a session, if it is there."""
    with suppress(NotFound):
        into.import_lines(here.export_lines(id))


# Histories of other programs


def _import_history(
    owner: Owner, path: str, kind: str, options: dict[str, Any], dry_run: bool
) -> ImportedHistory:
    from reasoning_store.importers import formats
    from reasoning_store.importers.into_store import import_conversations

    with Progress("importing") as progress:
        found = formats.conversations(path, format=kind, **options)
        return import_conversations(owner, _count_conversations(found, progress), dry_run=dry_run)


def _count_conversations(items: Iterable[T], progress: Progress) -> Iterator[T]:
    for item in items:
        progress.advance()
        yield item


def _print_history(call: Call, kind: str, done: ImportedHistory, on_conflict: str) -> None:
    refused, skipped = done.refused, done.report.skipped
    none = bool(skipped) and not (done.new or done.known)
    if none:
        call.exit = Exit.USAGE
    if refused and on_conflict == "refuse":
        call.exit = Exit.CONFLICT

    def write_page(page: Page) -> None:
        if none:
            return
        came = "would be imported" if done.dry_run else "imported"
        conversations = plural(len(done.conversations) - len(refused), "conversation")
        page.line(f"{kind}: {conversations}, {plural(done.new, 'message')} {came}")
        if done.known:
            page.line(f"{plural(done.known, 'message')} were there already")
        counts = [(getattr(done.report, name), text) for name, text in _COUNTS.items()]
        if any(count for count, _ in counts):
            page.table(
                ("how many", "what"),
                [(str(count), text) for count, text in counts if count],
                right=("how many",),
            )

    print_answer(call, _history_data(kind, done), write_page)
    _warn_each("{} was left out: {}", ((one.place, one.reason) for one in skipped))
    times = done.report.unread_times
    _warn_each("{} has no time: {}", ((one.place, one.reason) for one in times))
    _warn_each("{} was left out: {}", ((one.id, one.refused or "") for one in refused))
    if none:
        print_note("nothing was imported: every message was left out")


def _warn_each(text: str, found: Iterable[tuple[str, str]]) -> None:
    """Warn of each place with its reason, and of no more than a few with the same reason."""
    by_reason: dict[str, list[str]] = {}
    for place, reason in found:
        by_reason.setdefault(reason, []).append(place)
    for reason, places in by_reason.items():
        print_warnings(text.format(place, reason) for place in places[:_ALIKE])
        if (more := len(places) - _ALIKE) > 0:
            print_warnings([f"... and {f'{more:,}'.replace(',', ' ')} more like this"])


def _history_data(kind: str, done: ImportedHistory) -> dict[str, Any]:
    return {
        "format": kind,
        "dryRun": done.dry_run,
        "sessions": len(done.conversations) - len(done.refused),
        "messages": done.new,
        "already": done.known,
        "skipped": [one.id for one in done.refused],
        "report": _report_data(done.report),
        "conversations": [
            {
                "id": one.id,
                "title": one.title,
                "messages": one.new,
                "already": one.known,
                "refused": one.refused,
                "report": _report_data(one.report),
            }
            for one in done.conversations
        ],
    }


def _report_data(report: Report) -> dict[str, Any]:
    return {codec.camel(name): value for name, value in asdict(report).items()}
