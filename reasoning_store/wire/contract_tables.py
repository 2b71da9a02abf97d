"""The tables of ``contracts.toml``, and those of an application laid over them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from reasoning_store.conversation.validation import describe
from reasoning_store.wire.contract import RULES, Contract

Rows: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of an application's own, by their table."""


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


def matches_model(model: str | None, patterns: tuple[str, ...]) -> bool:
    """Whether a model's name, with or without its owner's, matches a pattern."""
    name = (model or "").lower()
    bare = name.rsplit("/", 1)[-1]
    return any(fnmatchcase(name, pattern) or fnmatchcase(bare, pattern) for pattern in patterns)


@cache
def shipped_contracts() -> ContractTables:
    """Return the contracts of ``contracts.toml``."""
    return _read(_shipped_tables())


def own_contracts(own: Rows) -> ContractTables:
    """Return the shipped contracts with an application's rows before them."""
    return _read(_with_own(_shipped_tables(), own))


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
    for row in data["contract"]:
        if "like" in row:
            named = (row["like"], row["api"], None)
            like = [r for r in rows if (r.get("provider"), r["api"], r.get("models")) == named]
            if not like:
                raise ValueError(f"contracts.toml has no row of {row['like']} before {dict(row)}")
            row = {**like[0], **{key: value for key, value in row.items() if key != "like"}}
        rows.append(row)
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
    return own, {name: _value(value) for name, value in row.items() if name in RULES}


def _fields(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(kind)}
    if strange := set(row) - names:
        raise ValueError(f"contracts.toml has an unknown key: {sorted(strange)}")
    values = {name: _value(value) for name, value in row.items()}
    return values | ({"checked": str(row["checked"])} if "checked" in row else {})


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return None if value == "" else value  # a rule of a row for more models does not hold
