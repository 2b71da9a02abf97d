"""The tables of ``contracts.toml``, and those of an application laid over them.

An application's own have the same tables and keys. A contract of its own begins with the rules of
the host that it is ``like``, of its provider's contract for all models, or of the api's for unknown
hosts, and lays its own keys over them. Own rows are found before the shipped ones. They are checked
whole, by the types of the values that they become, and belong to the store that was opened with
them.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, TypeAlias, get_type_hints

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import describe
from reasoning_store.wire.contract import PARTS, RULES, Contract

Rows: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of an application's own, by their table."""
OwnContracts: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A TOML file with contracts of an application's own, or a mapping of the same form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One provider: its names, its usual api and its addresses."""

    id: str
    api: str
    model_apis: Mapping[str, str] = field(default_factory=dict)
    """The api of models that do not speak the usual one, by their pattern."""
    models: tuple[str, ...] = ()
    """The models that it makes, by names that are no other maker's."""
    aliases: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    path_apis: Mapping[str, str] = field(default_factory=dict)
    """The api that this provider speaks where an address's path has this segment."""
    source: str = ""
    checked: str = ""

    def api_of(self, model: str | None) -> str:
        """Return the api in which a model is served where no other is named."""
        named = (
            api for pattern, api in self.model_apis.items() if matches_model(model, (pattern,))
        )
        return next(named, self.api)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How a family of models delimits its thoughts in plain text, on any host."""

    models: tuple[str, ...]
    apis: tuple[str, ...] = ()
    """The protocols that otherwise keep reasoning out of the text; the row is for these alone."""
    markers: tuple[str, ...] = ()
    stray_opens: bool = False
    source: str = ""
    checked: str = ""

    def matches(self, contract: Contract, model: str | None) -> bool:
        applies = contract.api in self.apis if self.apis else contract.reading.tags
        return applies and matches_model(model, self.models)

    @property
    def rules(self) -> Mapping[str, Any]:
        return {"tags": True, "markers": self.markers, "stray_opens": self.stray_opens}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRules:
    """The rules of some models of providers that differ from the providers' rows."""

    providers: tuple[str, ...]
    apis: tuple[str, ...]
    models: tuple[str, ...]
    rules: Mapping[str, Any]
    source: str = ""
    checked: str = ""

    def matches(self, contract: Contract, model: str | None) -> bool:
        return (
            contract.provider in self.providers
            and contract.api in self.apis
            and matches_model(model, self.models)
        )


class Contracts:
    """All that a store knows of hosts and models: ``store.contracts``, for functions."""

    __slots__ = ()

    @staticmethod
    def default() -> Contracts:
        """Return the contracts that hold without a store."""
        return default_contracts()

    @property
    def providers(self) -> tuple[str, ...]:
        """The ids of the providers."""
        return tuple(dict.fromkeys(host.id for host in _tables(self).hosts.values()))

    @property
    def protocols(self) -> tuple[str, ...]:
        """The ids of the protocols, as ``api`` takes them."""
        return tuple(dict.fromkeys(_tables(self).apis.values()))

    def provider_id(self, provider: str | None, base_url: str | None = None) -> str | None:
        """Return the id of a provider by any of its names, or by an address."""
        from reasoning_store.wire.contract_lookup import provider_id

        return provider_id(provider, base_url, self)

    def is_stateless(
        self, provider: str | None, model: str | None, api: str, base_url: str | None = None
    ) -> bool:
        """Whether a host keeps no reply of a model, so that a client sends sealed thinking back."""
        from reasoning_store.wire.contract_lookup import find_contract

        return find_contract(provider, model, api, base_url, self).messages.stateless


def _tables(contracts: Contracts) -> ContractTables:
    assert isinstance(contracts, ContractTables), "contracts are those of a store"
    return contracts


@dataclass(frozen=True, slots=True, eq=False)
class ContractTables(Contracts):
    """The shipped rows, with an application's own before them."""

    hosts: Mapping[str, Host]
    apis: Mapping[str, str]
    dialects: Mapping[str, str]
    endings: Mapping[str, str]
    segments: Mapping[str, str]
    rows: tuple[Contract, ...]
    models: tuple[ModelRules, ...]
    templates: tuple[Template, ...]
    encodings: Mapping[str, Sequence[str]]


@lru_cache(maxsize=4096)
def matches_model(model: str | None, patterns: tuple[str, ...]) -> bool:
    """Whether a model's name, with or without its owner's, matches a pattern."""
    name = (model or "").lower()
    bare = name.rsplit("/", 1)[-1]
    return any(fnmatchcase(name, pattern) or fnmatchcase(bare, pattern) for pattern in patterns)


@cache
def shipped_contracts() -> ContractTables:
    """Return the contracts of ``contracts.toml``."""
    return _read(_shipped_tables())


@cache
def _shipped_tables() -> Mapping[str, Any]:
    text = files("reasoning_store.wire").joinpath("contracts.toml").read_text(encoding="utf-8")
    return resolve_likes(tomllib.loads(text))


def _with_own(data: Mapping[str, Any], own: Rows) -> dict[str, Any]:
    """Return the tables with an application's rows first, complete."""
    tables = {
        table: [*own.get(table, ()), *data.get(table, ())]
        for table in ("host", "model", "template")
    }
    ids = {
        name: row["id"] for row in tables["host"] for name in (row["id"], *row.get("aliases", ()))
    }
    rows = [{**row, "provider": _id(ids, row["provider"])} for row in own.get("contract", ())]
    spoken = {(row["provider"], row["api"]) for row in rows if "models" not in row}
    rows += [
        {"provider": row["id"], "api": row["api"]}
        for row in own.get("host", ())
        if (row["id"], row["api"]) not in spoken
    ]
    rows.sort(key=lambda row: "models" in row)  # others begin with the row for all models
    complete: list[dict[str, Any]] = list(data["contract"])
    for number, row in enumerate(rows):
        complete.insert(number, _laid_over(complete, row, ids))
    complete[: len(rows)] = sorted(complete[: len(rows)], key=lambda row: "models" not in row)
    tables["model"] = [
        {**row, "providers": [_id(ids, name) for name in row["providers"]]}
        for row in tables["model"]
    ]
    return {**data, **tables, "contract": complete}


def _id(ids: Mapping[str, str], name: str) -> str:
    if name not in ids:
        raise ValueError(f"there is no host {describe(name)}")
    return ids[name]


def _laid_over(
    rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any], ids: Mapping[str, str]
) -> dict[str, Any]:
    """Return a row over its ``like``, else its provider's for all models, else the api's."""
    like = _id(ids, row["like"]) if "like" in row else None
    without_models = [other for other in reversed(rows) if "models" not in other]
    for_all = {(other.get("provider"), other["api"]): other for other in without_models}
    if like is not None and (like, row["api"]) not in for_all:
        raise ValueError(f"there is no contract of {like} for {row['api']}")
    own = for_all.get((like or row["provider"], row["api"]))
    base = own or for_all.get((None, row["api"]), {})
    return {**base, **{key: value for key, value in row.items() if key != "like"}}


def resolve_likes(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables, with the rules of the row that a row names as ``like`` filled in."""
    rows: list[Mapping[str, Any]] = []
    ids = {row["id"]: row["id"] for row in data["host"]}
    for row in data["contract"]:
        rows.append(_laid_over(rows, row, ids) if "like" in row else row)
    return {**data, "contract": rows}


def _read(data: Mapping[str, Any]) -> ContractTables:
    hosts: dict[str, Host] = {}
    for row in data["host"]:
        item = Host(**_fields(Host, row))
        for name in (item.id, *item.aliases):
            if hosts.setdefault(name, item) is not item:
                raise ValueError(f"two hosts are named {describe(name)}")
    apis = {name: name for name in data["api"]}
    for name, aliases in data["api"].items():
        apis.update(dict.fromkeys(aliases, name))
    return ContractTables(
        hosts,
        apis,
        data["dialect"],
        data["ending"],
        data["segment"],
        tuple(_contract(row) for row in data["contract"]),
        tuple(_model_rules(row) for row in data.get("model", ())),
        tuple(Template(**_fields(Template, row)) for row in data.get("template", ())),
        data["encoding"],
    )


def _contract(row: Mapping[str, Any]) -> Contract:
    own, rules = _own_and_rules(row)
    return Contract(**_fields(Contract, own)).with_rules(rules)


def _model_rules(row: Mapping[str, Any]) -> ModelRules:
    own, rules = _own_and_rules(row)
    return ModelRules(**_fields(ModelRules, {**own, "rules": rules}))


def _own_and_rules(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    own = {name: value for name, value in row.items() if name not in RULES}
    return own, {name: _plain_value(value) for name, value in row.items() if name in RULES}


def _fields(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(kind)}
    if strange := set(row) - names:
        raise ValueError(f"contracts.toml has an unknown key: {sorted(strange)}")
    values = {name: _plain_value(value) for name, value in row.items()}
    return values | ({"checked": str(row["checked"])} if "checked" in row else {})


def _plain_value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return None if value == "" else value  # a rule of a row for more models does not hold


# Of an application


_ABOUT: Final = ("source", "checked")
_RULE_HINTS: Final = {
    name: hint for kind in PARTS.values() for name, hint in get_type_hints(kind).items()
}
_HINTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "host": get_type_hints(Host),
    "contract": {
        **{name: get_type_hints(Contract)[name] for name in ("api", "models", "family", *_ABOUT)},
        "provider": str,
        "like": str,
        **_RULE_HINTS,
    },
    "model": {
        **{name: hint for name, hint in get_type_hints(ModelRules).items() if name != "rules"},
        **_RULE_HINTS,
    },
    "template": get_type_hints(Template),
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
        return _read(_with_own(_shipped_tables(), rows))
    except ValueError as error:
        raise InvalidCall(f"{name}: {error}", hint=_OWN_ROWS) from None


def default_contracts() -> Contracts:
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
    if unknown := set(values.get("markers", ())) - _marker_families():
        raise InvalidCall(
            f"{place}.markers: there is no family {describe(min(unknown))}",
            hint=f"one of: {', '.join(sorted(_marker_families()))}",
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


def _marker_families() -> frozenset[str]:
    """Return the names of the literal marker families that there are."""
    return frozenset(name for item in shipped_contracts().templates for name in item.markers)


def _lower(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key.lower(): item for key, item in value.items()}
    return value.lower() if isinstance(value, str) else [item.lower() for item in value]


def _known_apis(place: str, value: Any) -> Any:
    from reasoning_store.wire.contract_lookup import api_name

    try:
        return api_name(value) if isinstance(value, str) else [api_name(one) for one in value]
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
