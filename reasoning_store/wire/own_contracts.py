"""Contracts of an application's own: hosts and models that ``contracts.toml`` does not have.

The tables and the keys are those of ``contracts.toml``: ``[[host]]``, ``[[contract]]``,
``[[model]]`` and ``[[template]]``. A contract begins with the rules of the host that it is
``like``, of its provider's contract for all models, or of the api's for unknown hosts, and lays
its own keys over them. Own rows are found before the shipped ones. They are checked whole, by the
types of the values that they become. They belong to the store that was opened with them.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final, TypeAlias, get_type_hints

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import describe
from reasoning_store.wire import contract_lookup, contract_tables
from reasoning_store.wire.contract import PARTS, Contract
from reasoning_store.wire.contract_tables import Contracts, shipped_contracts

OwnContracts: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A TOML file with contracts of an application's own, or a mapping of the same form."""

_ABOUT: Final = ("source", "checked")
_RULE_HINTS: Final = {
    name: hint for kind in PARTS.values() for name, hint in get_type_hints(kind).items()
}
_HINTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "host": get_type_hints(contract_tables.Host),
    "contract": {
        **{name: get_type_hints(Contract)[name] for name in ("api", "models", "family", *_ABOUT)},
        "provider": str,
        "like": str,
        **_RULE_HINTS,
    },
    "model": {
        **{
            name: hint
            for name, hint in get_type_hints(contract_tables.ModelRules).items()
            if name != "rules"
        },
        **_RULE_HINTS,
    },
    "template": get_type_hints(contract_tables.Template),
}
"""The keys of each table's rows, with their types."""
_NEEDED: Final = {
    "host": ("id", "api"),
    "contract": ("provider", "api"),
    "model": ("providers", "apis", "models"),
    "template": ("models",),
}
_LOWER: Final = frozenset("id aliases addresses models model_apis provider providers like".split())
"""Names are compared in lower case."""


_OWN_ROWS: Final = (
    "a host has an id of its own; a row for models of a known provider needs no [[host]]"
)


def read_contracts(given: OwnContracts | None = None) -> Contracts:
    """Return the shipped contracts with those that are given, or that the environment names."""
    source = os.environ.get("REASONING_STORE_CONTRACTS") if given is None else given
    if not source:
        return shipped_contracts()
    name, data = "contracts", source
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        data = _read_toml(name)
    if not isinstance(data, Mapping):
        raise InvalidCall(
            f"contracts: a file or a mapping, not {type(data).__name__}",
            hint='contracts="mine.toml"',
        )
    for table in data:
        if table not in _HINTS:
            raise InvalidCall(
                f"{name}: there is no table {describe(table)}{_near(table, _HINTS)}",
                hint=f"one of: {', '.join(_HINTS)}",
            )
    rows = {table: list(_rows(name, table, data)) for table in _HINTS}
    try:
        return contract_tables.own_contracts(rows)
    except ValueError as error:
        raise InvalidCall(f"{name}: {error}", hint=_OWN_ROWS) from None


def environment_contracts() -> Contracts:
    """Return the contracts that hold without a store; a file that is named is read once."""
    return _read_once(os.environ.get("REASONING_STORE_CONTRACTS"))


_read_once = lru_cache(maxsize=4)(read_contracts)


def _read_toml(name: str) -> dict[str, Any]:
    try:
        with open(name, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise InvalidCall(
            f"contracts: {name} cannot be read: {error.strerror}",
            hint="name a TOML file, or pass a mapping",
        ) from None
    except ValueError as error:
        raise InvalidCall(
            f"contracts: {name} is not TOML: {error}", hint="its tables are [[host]] and more"
        ) from None


def _rows(name: str, table: str, data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    rows = data.get(table, [])
    if not isinstance(rows, list | tuple):
        raise InvalidCall(f"{name}: {table} is a list of rows", hint=f"begin each with [[{table}]]")
    for number, row in enumerate(rows):
        place = f"{name}: {table}[{number}]"
        if not isinstance(row, Mapping):
            raise InvalidCall(f"{place} is a mapping, not {type(row).__name__}")
        yield _row(place, table, row)


def _row(place: str, table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    hints = _HINTS[table]
    for key in row:
        if key not in hints:
            raise InvalidCall(
                f"{place}: there is no key {describe(key)}{_near(key, hints)}",
                hint=f"one of: {', '.join(hints)}",
            )
    for key in _NEEDED[table]:
        if key not in row:
            raise InvalidCall(f"{place}: {key} is missing", hint=f"a {table} needs {key}")
    values = {key: _value(f"{place}.{key}", hints[key], value) for key, value in row.items()}
    for key in _LOWER & set(values):
        values[key] = _lower(values[key])
    for key in {"api", "apis"} & set(values):
        values[key] = _known_apis(f"{place}.{key}", values[key])
    if "call_id_pattern" in values:
        _check_pattern(f"{place}.call_id_pattern", values["call_id_pattern"])
    if unknown := set(values.get("markers", ())) - contract_lookup.marker_families():
        raise InvalidCall(
            f"{place}.markers: there is no family {describe(min(unknown))}",
            hint=f"one of: {', '.join(sorted(contract_lookup.marker_families()))}",
        )
    return values


def _value(place: str, hint: Any, value: Any) -> Any:
    """Return a value of TOML, or of a mapping, where it is of its key's type."""
    from pydantic import TypeAdapter, ValidationError

    if place.endswith(".checked"):
        value = str(value)
    try:
        TypeAdapter(hint).validate_json(json.dumps(value), strict=True)
    except TypeError:
        raise InvalidCall(f"{place}: not a {type(value).__name__}") from None
    except ValidationError as error:
        raise InvalidCall(f"{place}: {error.errors()[0]['msg']}") from None
    return list(value) if isinstance(value, tuple) else value


def _lower(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key.lower(): item for key, item in value.items()}
    return value.lower() if isinstance(value, str) else [item.lower() for item in value]


def _known_apis(place: str, value: Any) -> Any:
    try:
        return (
            contract_lookup.api_name(value)
            if isinstance(value, str)
            else [contract_lookup.api_name(one) for one in value]
        )
    except InvalidCall as error:
        raise InvalidCall(f"{place}: {error}", hint=error.hint) from None


def _check_pattern(place: str, pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise InvalidCall(f"{place}: no regular expression: {error}") from None


def _near(name: Any, known: Mapping[str, Any]) -> str:
    found = get_close_matches(name, known, n=1) if isinstance(name, str) else []
    return f"; did you mean {found[0]}?" if found else ""
