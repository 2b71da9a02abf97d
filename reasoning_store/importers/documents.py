"""JSON and JSON lines, read piece by piece: each value with the line that it begins on.

Theory. A file of conversations is values one after the other, most often one a line, or arrays of
values. An array is read by its elements, so that no file is ever in memory whole, but for one that
is a single object.

A text that is not JSON is refused by the number of its line, and the error never quotes it.

Knows JSON text; must not know conversations.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NoReturn, TypeAlias

from reasoning_store import InvalidCall
from reasoning_store.formats import check_encoding, parse_json
from reasoning_store.importers.archives import open_source

Source: TypeAlias = str | os.PathLike[str] | Iterable[str | bytes]
"""A path, or lines: with or without their ends, as text or as UTF-8."""

_BLOCK: Final = 1 << 16
MEND: Final = "mend it and import again: what was written before it is not written twice"
CUT_OFF: Final = "it is cut off: the program was writing it"
_SPACE: Final = re.compile(r"\s*")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A value, the line it begins on, and which array it is an element of, if of one."""

    line: int
    value: Any
    array: int | None = None


def refuse(line: int, what: str) -> NoReturn:
    """Refuse a line that cannot be read."""
    raise InvalidCall(f"line {line}: {what}", hint=MEND)


def read_entries(source: Source) -> Iterator[Entry]:
    """Return the values of a source, one after the other."""
    lines = isinstance(source, Iterable) and not isinstance(source, Mapping | bytes)
    if not (lines or isinstance(source, os.PathLike)):
        raise InvalidCall(f"a source is a path or lines, not {type(source).__name__}")
    text = _Window(_read_text(source))
    array = 0
    while mark := text.peek():
        if mark != "[":
            line, value = text.take_value()
            yield Entry(line=line, value=value)
            continue
        array += 1
        for line, value in _read_array(text):
            yield Entry(line=line, value=value, array=array)


def read_objects(source: Source, refusal: str, **due: type) -> Iterator[Entry]:
    """Return the values, each an object with one of the fields that are ``due``, or refuse it."""
    for entry in read_entries(source):
        value = entry.value if isinstance(entry.value, dict) else {}
        if not any(isinstance(value.get(name), kind) for name, kind in due.items()):
            refuse(entry.line, refusal)
        yield entry


def read_log(source: Source) -> tuple[list[Entry], int | None]:
    """Return the objects of a log, one a line, and the number of a last line that is cut off.

    A program that was killed, or is still writing, leaves such a line.
    """
    text = _Window(_read_text(source))
    entries: list[Entry] = []
    while text.peek():
        begun = text.line
        try:
            line, value = text.take_value()
        except InvalidCall:
            if not entries or "\n" in text.taken:
                raise
            return entries, begun
        if not isinstance(value, dict):
            refuse(line, "not a line of a session: an object is due")
        entries.append(Entry(line=line, value=value))
    return entries, None


def source_name(source: Source) -> str:
    """Return the name of a file; lines have none."""
    return os.path.basename(source) if isinstance(source, str | os.PathLike) else ""


# Text


def _read_text(source: Source) -> Iterator[str]:
    """The text of a source, in pieces that may end anywhere."""
    if isinstance(source, str | os.PathLike):
        with open_source(source) as file:
            yield from _decode_blocks(iter(lambda: file.read(_BLOCK), b""))
    else:
        yield from _decode_blocks(_end_lines(source))


def _end_lines(lines: Iterable[str | bytes]) -> Iterator[str | bytes]:
    for number, line in enumerate(lines, 1):
        if isinstance(line, str):
            yield line if line.endswith("\n") else line + "\n"
        elif isinstance(line, bytes):
            yield line if line.endswith(b"\n") else line + b"\n"
        else:
            raise InvalidCall(
                f"line {number}: a line is text or bytes, not {type(line).__name__}",
                hint="json.dumps() makes one of a message, or of a list of messages",
            )


def _decode_blocks(blocks: Iterable[str | bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, beginning = 1, True
    for block in chain(blocks, (b"",)):
        if beginning and isinstance(block, bytes):
            check_encoding(block)
        try:
            text = block if isinstance(block, str) else decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            bad = error.object[: error.start]
            refuse(line + bad.count(b"\n"), "not UTF-8")
        if beginning and text:
            text, beginning = text.removeprefix("\ufeff"), False
        line += text.count("\n")
        if text:
            yield text


# Values


def _parse_value(line: int, text: str) -> Any:
    try:
        return parse_json(text, line=line)
    except InvalidCall as error:
        first, _, rest = text.partition("\n")
        if _is_object(rest.lstrip().partition("\n")[0]):
            return _parse_value(line, first)  # a value a line: the fault is in this one
        raise InvalidCall(str(error), hint=MEND) from None


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


class _Window:
    """A text that is read piece by piece: the part that was not taken yet, and its line."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self.line = 1
        self.taken = ""
        """The text of the last value."""
        self._pieces = pieces
        self._text = ""
        self._at = 0

    def peek(self) -> str:
        """Return the next character that is no white space; none at the end."""
        while True:
            self._take(_SPACE.match(self._text, self._at).end())  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                return ""

    def skip(self) -> None:
        """Take one character."""
        self._take(self._at + 1)

    def take_value(self) -> tuple[int, Any]:
        """Take a value of JSON, and return it with the line that it begins on."""
        self.peek()
        self.taken = ""
        while True:
            try:
                _, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                end = len(self._text)
            if end < len(self._text):
                break
            if not self._read():  # a value that ends with the text may go on in the next piece
                end = len(self._text)
                break
        line, self.taken = self.line, self._take(end).rstrip()
        return line, _parse_value(line, self.taken)

    def _take(self, end: int) -> str:
        taken, self._at = self._text[self._at : end], end
        self.line += taken.count("\n")
        return taken

    def _read(self) -> bool:
        """Read as much as is held, or a piece; return False at the end."""
        held = self._text[self._at :]
        size, self._text, self._at = len(held), held, 0
        for piece in self._pieces:
            self._text += piece
            if len(self._text) >= 2 * size:
                break
        return len(self._text) > size


def _read_array(text: _Window) -> Iterator[tuple[int, Any]]:
    """Yield the elements of an array, each with its line."""
    text.skip()
    mark = text.peek()
    if mark == "]":
        text.skip()
    while mark != "]":
        yield text.take_value()
        mark = text.peek()
        if mark == "":
            refuse(text.line, "the file ends inside of an array")
        if mark not in ",]":
            refuse(text.line, "not JSON: a comma or the end of the array is due")
        text.skip()
