"""The command `import`: the lines of an export, or a history that another program kept."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reasoning_store import NotFound
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.history_files import (
    LINES,
    HistoryFile,
    HistoryFiles,
    find_histories,
)
from reasoning_store.cli.options import name_in_error
from reasoning_store.cli.output import (
    Page,
    answer_fields,
    plural,
    print_answer,
    print_note,
    print_warnings,
)
from reasoning_store.cli.progress import Progress
from reasoning_store.ledger.database import files

if TYPE_CHECKING:
    from reasoning_store import Store
    from reasoning_store.results import ImportedConversation, ImportedHistory, Owner, Report

T = TypeVar("T")

FORMATS = (
    "ai-sdk",
    "anthropic",
    "chatgpt",
    "claude-ai",
    "claude-code",
    "codex",
    "langchain",
    "librechat",
    LINES,
    "llama-index",
    "llm",
    "open-webui",
    "openai",
    "pydantic-ai",
    "sharegpt",
)
"""Those that can be read, named here so that help imports no reader."""
_ALIKE = 10
"""How many warnings of one kind are shown; of the messages in a folder's files, one."""
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
    examples=("import export.jsonl", "import histories --dry-run"),
    answers="format dryRun sessions messages already skipped report conversations files others",
)
@click.argument("source", metavar="FILE|FOLDER", type=click.Path(allow_dash=True))
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="The format of FILE; by default it is recognised. `lines` are those of `export`. "
    "Of a FOLDER only files in this format are read.",
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
@click.option(
    "--keep-ids", is_flag=True, help="Give the messages the ids that they have in the history."
)
@click.option("-v", "--verbose", is_flag=True, help="Name the files without a history.")
@click.option("--dry-run", is_flag=True, help="Print what would be imported, and write nothing.")
@click.pass_obj
def import_(
    call: Call,
    source: str,
    format_: str | None,
    owner: str | None,
    provider: str | None,
    model: str | None,
    on_conflict: Any,
    keep_ids: bool,
    verbose: bool,
    dry_run: bool,
) -> None:
    """Import an export, or a history kept elsewhere.

    Sessions of Claude Code and Codex, exports of ChatGPT, Claude.ai, Open WebUI and LibreChat,
    messages of OpenAI, Anthropic, LangChain, LlamaIndex, Pydantic AI, the AI SDK or ShareGPT as
    JSON or JSON lines, a logs database of llm, or the lines of an export; - is standard input.
    A folder is searched with its subfolders, and a zip is read as it is; a file that cannot be
    read is named, and the others are imported.

    Messages that are there already are not written again, so you can run an interrupted import
    again. Branches stay branches. Reasoning is stored, delimiters that leaked into a text are
    removed, and both are counted. A missing database is created.

    Exits with 2 if there are messages and none can be imported, or if a file cannot be read.
    """
    from reasoning_store.importers import archives, formats

    call.if_interrupted = "run it again: imported messages are not written twice"
    named = {"provider": provider, "model": model}
    options: dict[str, Any] = {key: value for key, value in named.items() if value}

    def take_in(found: HistoryFiles) -> None:
        done = _import_histories(call, found, owner, keep_ids=keep_ids, dry_run=dry_run)
        _print_histories(call, found, done, on_conflict, verbose=verbose)

    if source != "-" and os.path.isdir(source):
        take_in(find_histories(source, format_, options))
        return
    with _seekable_file(source) as path:
        if archives.is_archive(path):
            take_in(find_histories(path, format_, options))
            return
        kind = format_ or formats.detect(path)
        if kind == LINES:
            _import_lines(call, path, owner, on_conflict, dry_run)
            return
        if path != source:
            # The same again next time, unlike that of the file that was made of it.
            options["name"] = "stdin" if source == "-" else os.path.basename(source)
        found = HistoryFiles(files=[HistoryFile(path=path, format=kind)], options=options)
        take_in(found)


@contextmanager
def _seekable_file(source: str) -> Iterator[str]:
    """Yield a file that can be read twice: a pipe is written to a temporary file first."""
    if source != "-":
        files.check_to_read(source, f"{source} cannot be read")
        if os.path.isfile(source):
            yield source
            return
    with (
        tempfile.TemporaryDirectory(prefix="reasoning-store-") as folder,
        nullcontext(sys.stdin.buffer) if source == "-" else files.open_to_read(source) as pipe,
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
    on_conflict: Any,
    dry_run: bool,
) -> None:
    with (
        store_access.open_or_create(call, dry_run=dry_run) as store,
        _dry_run_store(store, path, owner) if dry_run else nullcontext(store) as into,
        Progress("importing", os.path.getsize(path)) as progress,
        files.open_to_read(path) as lines,
    ):
        of: Owner = into if owner is None else into.for_owner(owner)
        done = of.import_lines(progress.each(lines, len), on_conflict=on_conflict)

    def write_page(page: Page) -> None:
        came = "would be imported" if dry_run else "imported"
        page.line(f"{plural(done.sessions, 'session')}, {plural(done.messages, 'message')} {came}")
        if done.already:
            page.line(f"{plural(done.already, 'message')} were there already")

    print_answer(
        call,
        {
            "format": LINES,
            "dryRun": dry_run,
            "sessions": done.sessions,
            "messages": done.messages,
            "already": done.already,
            "skipped": list(done.skipped),
            "report": None,
            "conversations": [],
            "files": [],
            "others": [],
        },
        write_page,
    )
    print_warnings(f"{name} differs here and was skipped" for name in done.skipped)


@contextmanager
def _dry_run_store(here: Store, path: str, owner: str | None) -> Iterator[Store]:
    """Open a store that is thrown away, with the sessions that the lines name and ``here`` has.

    So the lines come in, are known or are refused as they would be.
    """
    from reasoning_store import Store

    with (
        tempfile.TemporaryDirectory(prefix="reasoning-store-") as folder,
        Store(f"sqlite:///{Path(folder) / 'dry-run.db'}") as store,
    ):
        for of, id in _read_names(path, owner):
            with suppress(NotFound):
                store.import_lines(here.for_owner(of).export_lines(id))
        yield store


def _read_names(path: str, owner: str | None) -> set[tuple[str, str]]:
    """Return the owners and ids of the sessions in a file; a line that cannot be read has none."""
    names: set[tuple[str, str]] = set()
    with files.open_to_read(path) as texts:
        for text in texts:
            with suppress(ValueError, KeyError, RecursionError):
                line = json.loads(text)
                if isinstance(line, dict) and line["type"] == "session":
                    names.add(
                        (str(line.get("owner") or "") if owner is None else owner, str(line["id"]))
                    )
    return names


# Histories of other programs


def _import_histories(
    call: Call, found: HistoryFiles, owner: str | None, **options: bool
) -> ImportedHistory:
    with (
        store_access.open_or_create(call, dry_run=options["dry_run"]) as store,
        Progress("importing") as progress,
    ):
        read = progress.each(found.conversations())
        return store.for_owner(owner or "").import_conversations(read, **options)


def _print_histories(
    call: Call, found: HistoryFiles, done: ImportedHistory, on_conflict: str, *, verbose: bool
) -> None:
    refused, skipped = done.refused, done.report.skipped
    failed = [file for file in found.files if file.error is not None]
    none = bool(skipped or failed) and not (done.new or done.known)
    if none or failed:
        call.exit = Exit.USAGE
    if refused and on_conflict == "refuse":
        call.exit = Exit.CONFLICT

    def write_page(page: Page) -> None:
        if none:
            return
        came = "would be imported" if done.dry_run else "imported"
        for format, imported in _by_format(found, done).items():
            conversations = sum(one.refused is None for one in imported)
            new = sum(one.new for one in imported)
            page.line(
                f"{format}: {plural(conversations, 'conversation')}, "
                f"{plural(new, 'message')} {came}"
            )
        if done.known:
            page.line(f"{plural(done.known, 'message')} were there already")
        if found.others:
            page.line(f"{plural(len(found.others), 'other file')} without a history")
        for path in found.others if verbose else ():
            page.line(f"  {path}")
        counts = [(getattr(done.report, name), text) for name, text in _COUNTS.items()]
        if any(count for count, _ in counts):
            page.table(
                ("how many", "what"),
                [(str(count), text) for count, text in counts if count],
                right=("how many",),
            )

    print_answer(call, _history_data(found, done), write_page)
    _warn_of_parts(found, done)
    _warn_each("{} was left out: {}", ((one.id, one.refused or "") for one in refused))
    print_warnings(_few([f"{file.path} was left out: {file.error}" for file in failed]))
    if none:
        print_note("nothing was imported: every message was left out")


def _by_format(found: HistoryFiles, done: ImportedHistory) -> dict[str, list[ImportedConversation]]:
    """Return what was imported of each format."""
    imported: dict[str, list[ImportedConversation]] = {
        str(file.format): [] for file in found.files if file.error is None or file.conversations
    }
    for file, one in zip(found.sources, done.conversations, strict=True):
        imported[str(file.format)].append(one)
    return imported


def _warn_of_parts(found: HistoryFiles, done: ImportedHistory) -> None:
    """Warn of messages without a place in the store, and of values that are not times."""
    skipped: list[tuple[str, str]] = []
    times: list[tuple[str, str]] = []
    for file, one in zip(found.sources, done.conversations, strict=True):
        if one.refused is None:
            name = f"{file.path}, " if found.is_folder else ""
            skipped += [(name + part.place, part.reason) for part in one.report.skipped]
            times += [(name + part.place, part.reason) for part in one.report.unread_times]
    most = 1 if found.is_folder else _ALIKE
    _warn_each("{} was left out: {}", skipped, most)
    _warn_each("{} has no time: {}", times, most)


def _warn_each(text: str, found: Iterable[tuple[str, str]], most: int = _ALIKE) -> None:
    """Warn of each place with its reason, and of no more than a few with the same reason."""
    by_reason: dict[str, list[str]] = {}
    for place, reason in found:
        by_reason.setdefault(reason, []).append(place)
    for reason, places in by_reason.items():
        print_warnings(_few([text.format(place, reason) for place in places], most))


def _few(texts: list[str], most: int = _ALIKE) -> list[str]:
    """Return the first texts of a kind, and how many more there are."""
    more = len(texts) - most
    if more <= 0:
        return texts
    return [*texts[:most], f"... and {f'{more:,}'.replace(',', ' ')} more like this"]


def _history_data(found: HistoryFiles, done: ImportedHistory) -> dict[str, Any]:
    formats = {file.format for file in found.files}
    return {
        "format": formats.pop() if len(formats) == 1 else None,
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
        "files": [
            {**asdict(file), "path": str(file.path)} for file in found.files if found.is_folder
        ],
        "others": found.others,
    }


def _report_data(report: Report) -> dict[str, Any]:
    keys = "messages reasoningIn reasoningStored copies textsUnchanged textsCleaned delimiters"
    return {
        **answer_fields(report, f"{keys} keptRaw"),
        "skipped": [asdict(one) for one in report.skipped],
        "unreadTimes": [asdict(one) for one in report.unread_times],
    }
