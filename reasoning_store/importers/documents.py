"""JSON and JSON lines, read piece by piece: each value with the line that it begins on.

Theory. A file of conversations is a value a line, or an array of values, or one object over
many lines; which of them shows at its beginning. Lines and the elements of an array are read one
after the other, so that neither form is ever in memory whole. One object over many lines is one
conversation, and is.

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

from reasoning_store.conversation import json_values
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database import files

Source: TypeAlias = str | os.PathLike[str] | Iterable[str | bytes]
"""A path, or lines: with or without their ends, as text or as UTF-8."""

_BLOCK: Final = 1 << 16
_HINT: Final = "mend the line and import again: what was written before it is not written twice"
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
    raise InvalidCall(f"line {line}: {what}", hint=_HINT)


def read_entries(source: Source) -> Iterator[Entry]:
    """Return the values of a source, one after the other."""
    lines = isinstance(source, Iterable) and not isinstance(source, Mapping | bytes)
    if not (lines or isinstance(source, os.PathLike)):
        raise InvalidCall(f"a source is a path or lines, not {type(source).__name__}")
    pieces = _read_text(source)
    begun: list[str] = []
    for piece in pieces:
        begun.append(piece)
        if not piece.isspace():
            break
    first = "".join(begun).lstrip()[:1]
    text = chain(begun, pieces)
    return _parse_arrays(text) if first == "[" else _lines_or_object(text)


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
    entries: list[Entry] = []
    for entry in _cut_lines(_number_lines(_read_text(source))):
        if entry.value is None:
            return entries, entry.line
        if not isinstance(entry.value, dict):
            refuse(entry.line, "not a line of a session: an object is due")
        entries.append(entry)
    return entries, None


def _cut_lines(lines: Iterator[tuple[int, str]]) -> Iterator[Entry]:
    """Yield the value of each line; of a last one that is cut off, after others, None."""
    for number, text in lines:
        try:
            value = _parse_value(number, text)
        except InvalidCall:
            if number == 1 or next(lines, None) is not None:
                raise
            value = None
        yield Entry(line=number, value=value)


def source_name(source: Source) -> str:
    """Return the name of a file; lines have none."""
    return os.path.basename(source) if isinstance(source, str | os.PathLike) else ""


# Text


def _read_text(source: Source) -> Iterator[str]:
    """The text of a source, in pieces that may end anywhere."""
    if isinstance(source, str | os.PathLike):
        with files.open_to_read(source) as file:
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
            json_values.check_encoding(block)
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


def _number_lines(pieces: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers."""
    number = 1
    held: list[str] = []
    for piece in pieces:
        *ended, rest = piece.split("\n")
        for end in ended:
            text = "".join([*held, end])
            held = []
            if text.strip():
                yield number, text
            number += 1
        held.append(rest)
    if (text := "".join(held)).strip():
        yield number, text


# Values


def _lines_or_object(pieces: Iterable[str]) -> Iterator[Entry]:
    lines = _number_lines(pieces)
    first = next(lines, None)
    if first is None:
        return
    try:
        json.loads(first[1])
    except (ValueError, RecursionError):
        yield _parse_object(first, list(lines))
        return
    for number, text in chain([first], lines):
        yield Entry(line=number, value=_parse_value(number, text))


def _parse_object(first: tuple[int, str], rest: list[tuple[int, str]]) -> Entry:
    """Return one object over many lines; if it is not one, refuse the first line."""
    if not rest or json_values.is_object(rest[0][1]):
        return Entry(line=first[0], value=_parse_value(*first))
    # Blank lines were left out: put back, so that an error names the right one.
    text, at = first[1], first[0]
    for number, line in rest:
        text += "\n" * (number - at) + line
        at = number
    return Entry(line=first[0], value=_parse_value(first[0], text))


def _parse_value(line: int, text: str) -> Any:
    try:
        return json_values.parse(text, strict=False)
    except json_values.Malformed as error:
        if error.at is None:
            refuse(line, error.what)
        begun = text.rfind("\n", 0, error.at) + 1
        at = error.at - begun + 1
        refuse(line + text.count("\n", 0, begun), f"{error.what} at character {at}")


class _Window:
    """A text that is read piece by piece: the part that was not taken yet, and its line."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self.line = 1
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
        line, text = self.line, self._take(end)
        return line, _parse_value(line, text)

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


def _parse_arrays(pieces: Iterator[str]) -> Iterator[Entry]:
    """Yield the elements of the arrays that a text consists of."""
    text = _Window(pieces)
    array = 0
    while mark := text.peek():
        if mark != "[":
            refuse(text.line, "not JSON: there is text outside of an array")
        text.skip()
        array += 1
        is_empty = text.peek() == "]"
        while not is_empty and mark != "]":
            line, value = text.take_value()
            yield Entry(line=line, value=value, array=array)
            mark = text.peek()
            if mark == "":
                refuse(text.line, "the file ends inside of an array")
            if mark not in ",]":
                refuse(text.line, "not JSON: a comma or the end of the array is due")
            text.skip()
        if is_empty:
            text.skip()
