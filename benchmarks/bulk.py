"""The import of a long history, from lines that were written by another.

The lines carry no counts, so that the one who takes them in has to count. A size is in
megabytes of lines; a figure is one megabyte.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import reasoning_store as rs
from benchmarks import bare
from benchmarks.conversation import SESSION, Turn, messages
from benchmarks.histories import url
from benchmarks.timing import timed_clean
from benchmarks.workload import Sample, Setting

MEGABYTE = 1_000_000
_BATCH = 250
_USED = ("reported", "counted", "unreported")


def lines(setting: Setting) -> Path:
    """Return a file of so many megabytes of lines."""
    path = setting.templates / f"{setting.size}.jsonl"
    if path.exists():
        return path
    head, turns, tail = _one_session(setting)
    each = sum(map(len, turns)) / len(turns)
    wanted = int(setting.size * MEGABYTE / each)
    tail[0] = json.dumps({**json.loads(tail[0]), "messages": wanted})
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in head)
        file.writelines(f"{turns[n % len(turns)]}\n" for n in range(wanted))
        file.writelines(f"{line}\n" for line in tail)
    return path


def _one_session(setting: Setting) -> tuple[list[str], list[str], list[str]]:
    """Return the lines before the messages, of some messages, and after them."""
    with rs.Store(url(setting.folder / "small.db")) as store:
        session = store.session(SESSION, create=True)
        session.append([message for pair in messages() for message in pair])
        exported = list(map(str.rstrip, store.export_lines()))
    said = []
    for number, line in enumerate(exported):
        value = json.loads(line)
        if value["type"] == "session":  # what it used is of fewer messages
            exported[number] = json.dumps({k: v for k, v in value.items() if k not in _USED})
        if value["type"] == "message":
            kept = {"type": "message", "message": value["message"]}
            said.append(json.dumps(kept, ensure_ascii=False))
    first = next(n for n, line in enumerate(exported) if '"type":"message"' in line)
    return exported[:first], said, exported[first + len(said) :]


@contextmanager
def imported(setting: Setting) -> Iterator[Sample]:
    path, numbers = lines(setting), count()

    def sample() -> float:
        target = setting.folder / f"{next(numbers)}.db"
        with rs.Store(url(target)) as store, path.open(encoding="utf-8") as file:
            took = timed_clean(setting, lambda: store.import_lines(file))()
        target.unlink()
        return took / setting.size

    yield sample


@contextmanager
def bare_import(setting: Setting) -> Iterator[Sample]:
    """The driver: each line parsed and counted, some hundred messages a transaction."""
    path, numbers, encoder = lines(setting), count(), bare.encode()

    def sample() -> float:
        target = setting.folder / f"{next(numbers)}.db"
        with rs.Store(url(target)) as store:
            store.session(SESSION, create=True)
        took = timed_clean(setting, lambda: write_bare(target, path, encoder))()
        target.unlink()
        return took / setting.size

    yield sample


def write_bare(target: Path, path: Path, encoder: Callable[[str], Sequence[int]]) -> None:
    with closing(bare.connect(target)) as connection:
        execute = connection.execute
        bare.write_maker(execute)
        execute("BEGIN IMMEDIATE")
        for number, turn in enumerate(_read(path), 1):
            bare.append(execute, turn, bare.tokens(encoder, turn), number)
            if number % _BATCH == 0:
                execute("COMMIT")
                execute("BEGIN IMMEDIATE")
        execute("COMMIT")


def _read(path: Path) -> Iterator[Turn]:
    asked = ""
    with path.open(encoding="utf-8") as file:
        for line in file:
            value = json.loads(line)
            if value["type"] == "message":
                blocks = value["message"]["blocks"]
                if value["message"]["role"] == "user":
                    asked = blocks[0]["text"]
                else:
                    yield Turn(asked, blocks[0]["thought"], blocks[1]["text"])
