"""The configuration file: defaults of options, in TOML.

A key is the name of an option without its dashes. ``db``, ``json`` and ``owner`` are at the
top; the options of a command are in the table with its name, e.g. ``[sessions.list]``.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from reasoning_store import InvalidCall, NotFound
from reasoning_store.cli.folders import config_folder

VARIABLE = "REASONING_STORE_CONFIG"
"""The variable that names the file; an empty one means no file."""
_OF_PROGRAM = ("db", "json")
_AT_TOP = (*_OF_PROGRAM, "owner")
_WORDS_ONLY = ("everything", "before", "overwrite", "yes")
"""Options that delete or replace data: they are given on the command line or not at all."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The content of a configuration file; empty without a file."""

    path: Path | None = None
    tables: Mapping[str, Any] = field(default_factory=dict)

    def of_program(self, params: Iterable[click.Parameter]) -> dict[str, Any]:
        """Return the defaults of the options before the command."""
        options = _by_word(params)
        given = [key for key in _OF_PROGRAM if key in self.tables]
        return {options[key].name or "": self._value((), key, options[key]) for key in given}

    def of_command(self, words: Sequence[str], params: Iterable[click.Parameter]) -> dict[str, Any]:
        """Return the defaults of a command's options, by the names of their parameters."""
        options = _by_word(params)
        defaults: dict[str, Any] = {}
        if "owner" in options and options["owner"].default == "" and "owner" in self.tables:
            defaults["owner"] = self._value((), "owner", options["owner"])
        for key in self._table(words):
            if key not in options or key in _OF_PROGRAM:
                named = [name for name in options if name not in (*_OF_PROGRAM, *_WORDS_ONLY)]
                raise self.unknown(words, key, named)
            if key in _WORDS_ONLY:
                raise self._refusal(words, key, "only the command line takes it", "leave it out")
            option = options[key]
            defaults[option.name or ""] = self._value(words, key, option)
        return defaults

    def check_top(self, commands: Collection[str]) -> None:
        """Refuse a key at the top that is neither an option there nor a command."""
        for key, value in self.tables.items():
            if key not in (*_AT_TOP, *commands):
                raise self.unknown((), key, [*_AT_TOP, *commands])
            if isinstance(value, dict) == (key in _AT_TOP):
                wanted = "a value" if key in _AT_TOP else f"a table, [{key}]"
                raise self._refusal((), key, f"it takes {wanted}")

    def check_commands(self, words: Sequence[str], commands: Collection[str]) -> None:
        """Refuse a key in the table of a group that is no command of it."""
        for key, value in self._table(words).items():
            if key not in commands:
                raise self.unknown(words, key, commands)
            if not isinstance(value, dict):
                raise self._refusal(words, key, "it takes a table")

    def place_of(self, words: Sequence[str], option: click.Parameter) -> str:
        """Return the place of the key that gave an option its default."""
        keys = [name.removeprefix("--") for name in option.opts]
        in_table = [key for key in keys if key in self._table(words)]
        return self.place(words, in_table[0]) if in_table else self.place((), keys[0])

    def place(self, words: Sequence[str], key: str) -> str:
        """Return the place of a key, for an error."""
        table = f"[{'.'.join(words)}] " if words else ""
        return f"{self.path}: {table}{key}"

    def unknown(self, words: Sequence[str], key: str, known: Collection[str]) -> InvalidCall:
        """Return the error for a key that nothing has."""
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the keys are: {', '.join(sorted(known))}"
        return self._refusal(words, key, "there is no such key", hint)

    def _table(self, words: Sequence[str]) -> Mapping[str, Any]:
        table: Any = self.tables
        for word in words:
            table = table.get(word) or {}
        return table if isinstance(table, dict) else {}

    def _value(self, words: Sequence[str], key: str, option: click.Option) -> Any:
        value = (self._table(words) if words else self.tables)[key]
        if isinstance(value, dict) or (isinstance(value, list) and not option.multiple):
            raise self._refusal(words, key, "it takes one value")
        return [value] if option.multiple and not isinstance(value, list) else value

    def _refusal(
        self, words: Sequence[str], key: str, wrong: str, hint: str | None = None
    ) -> InvalidCall:
        return InvalidCall(f"{self.place(words, key)}: {wrong}", hint=hint)


def _by_word(params: Iterable[click.Parameter]) -> dict[str, click.Option]:
    return {
        name.removeprefix("--"): one
        for one in params
        if isinstance(one, click.Option)
        for name in one.opts
        if name.startswith("--")
    }


def read_configuration() -> Configuration:
    """Return the configuration of the user, or of the file that the variable names."""
    named = os.environ.get(VARIABLE)
    if named is None:
        path = default_path()
        if path is None or not _is_there(path):
            return Configuration()
    elif not named:
        return Configuration()
    else:
        path = Path(named)
    import tomllib

    try:
        with open(path, "rb") as file:
            return Configuration(path, tomllib.load(file))
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {path}", hint=f"the variable {VARIABLE} names it"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidCall(f"{path} is not TOML: {error}") from None


def _is_there(path: Path) -> bool:
    """Whether the user has this file; a home that may not be entered holds none."""
    try:
        return path.is_file()
    except PermissionError:
        return False


def default_path() -> Path | None:
    """Return the path of the user's own configuration; None without a home folder."""
    try:
        return config_folder() / "reasoning-store" / "config.toml"
    except RuntimeError:
        return None
