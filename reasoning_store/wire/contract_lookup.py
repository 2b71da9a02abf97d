"""Finds the contract that holds for a provider, a model, an api and an address.

An explicit api always wins; else the path of the address decides, then the model, then the
provider's usual api. Within a provider's rows of that api the first whose ``models`` matches
holds; an unknown host gets the api's own row, the one without a provider, with the demands of the
maker to which the model's name belongs. The rules of single models and of their templates are laid
over it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache, wraps
from importlib.resources import files
from threading import Lock
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import urlsplit

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import check_names, describe
from reasoning_store.wire.contract import DEMANDS, RULES, Contract

DEFAULT_API: Final = "openai.chat"
P = ParamSpec("P")
T = TypeVar("T")
Rows = Mapping[str, Sequence[Mapping[str, Any]]]
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


@dataclass(frozen=True, slots=True)
class _Tables:
    hosts: Mapping[str, Host]
    apis: Mapping[str, str]
    dialects: Mapping[str, str]
    endings: Mapping[str, str]
    segments: Mapping[str, str]
    contracts: tuple[Contract, ...]
    models: tuple[ModelRules, ...]
    templates: tuple[Template, ...]
    encodings: Mapping[str, Sequence[str]]


# Finding


def find_contract(
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
) -> Contract:
    """Return the contract that holds, with the rules of the model and of its template."""
    check_names(provider=provider, model=model, api=api, base_url=base_url)
    known = find_host(provider, base_url)
    own = known.id if known is not None else None
    usual = known.api_of(model) if known is not None else DEFAULT_API
    at_address = api_of_address(base_url, known) or usual
    default = usual if is_dialect(usual, at_address) else at_address
    wanted = api_name(api) if api is not None else default
    found = _row_of(own, model, wanted)
    if found is None:
        found = _own_row(wanted)
        if own is None:
            found = _with_demands(found, model)
    return _with_rules(found, templates(), model)


def _row_of(provider: str | None, model: str | None, api: str) -> Contract | None:
    """Return the row of a provider's model, with the rules of the model."""
    for row in rows():
        named = provider and row.provider == provider and row.api == api
        if named and matches_model(model, row.models):
            return _with_rules(row, model_rules(), model)
    return None


def _with_demands(contract: Contract, model: str | None) -> Contract:
    """Return an unknown host's contract with the demands of the model's maker, if it has any."""
    maker = find_maker(model)
    own = _row_of(maker.id, model, contract.api) if maker is not None else None
    if own is None or own.returning.floor == own.returning.empty_field_in == "none":
        return contract
    demands = {name: getattr(own.returning, name) for name in DEMANDS}
    return replace(contract.with_rules(demands), demanded_by=own.provider)


def mirrored_fields(contract: Contract) -> tuple[str, ...]:
    """Return the fields that may carry one and the same thought, best first.

    The contract's own come first, then all those of the api: everything that arrives is read, also
    a field that the row does not name (BR-002).
    """
    own = contract.reading.fields
    return tuple(dict.fromkeys((*own, *_own_row(contract.api).reading.fields)))


def find_host(provider: str | None, base_url: str | None = None) -> Host | None:
    """Return the provider of a name or an address, or ``None`` for an unknown one."""
    hosts = _tables().hosts
    if provider:
        return hosts.get(provider.strip().lower())
    if base_url and is_address(base_url):
        address = (urlsplit(base_url).hostname or base_url).lower()
        for candidate in hosts.values():
            if any(fnmatchcase(address, pattern) for pattern in candidate.addresses):
                return candidate
    return None


def find_maker(model: str | None) -> Host | None:
    """Return the provider that makes a model, where its name shows it."""
    return next((item for item in hosts() if matches_model(model, item.models)), None)


def find_encoding(model: str | None) -> str | None:
    """Return the encoding of a model's own tokenizer, where it is one that can be counted in."""
    encodings = _tables().encodings
    return next((name for name in encodings if matches_model(model, (*encodings[name],))), None)


def api_of_address(base_url: str | None, known: Host | None = None) -> str | None:
    """Return the api that an address's path names, or ``None`` for one that may be any."""
    if not base_url or not is_address(base_url):
        return None
    path = urlsplit(base_url).path.lower().rstrip("/")
    for ending, api in _tables().endings.items():
        if path.endswith(ending):
            return api
    segments = path.split("/")
    named = {**_tables().segments, **(known.path_apis if known is not None else {})}
    return next((api for name, api in named.items() if name in segments), None)


def is_dialect(usual: str, named: str) -> bool:
    """Whether ``usual`` is the named api or a form of it, and reads its events."""
    return named in (usual, _tables().dialects.get(usual))


def is_address(base_url: str) -> bool:
    """Whether it can be read as an address at all."""
    try:
        urlsplit(base_url)
    except ValueError:
        return False
    return True


def provider_id(provider: str | None, base_url: str | None = None) -> str | None:
    """Return a provider's id, by any of its names; an unknown name in lower case."""
    known = find_host(provider, base_url)
    if known is not None:
        return known.id
    return provider.strip().lower() if provider and provider.strip() else None


def speaks_api(provider: str | None, model: str | None, api: str) -> bool:
    """Whether a known provider streams a model in this protocol."""
    return find_host(provider) is not None and find_contract(provider, model).api == api


def api_name(api: str) -> str:
    """Return the api's own name, or refuse one that no protocol here speaks."""
    name = _tables().apis.get(api.strip().lower())
    if name is None:
        raise InvalidCall(f"unknown api {describe(api)}", hint=f"one of: {', '.join(apis())}")
    return name


def family(contract: Contract) -> str:
    """Return a name of the models that can read each other's opaque reasoning."""
    return contract.family or f"{contract.provider or ''}/{contract.api}"


def marker_families() -> frozenset[str]:
    """Return the names of the literal marker families that there are."""
    return frozenset(name for item in templates() for name in item.markers)


def apis() -> tuple[str, ...]:
    """Return the ids of all protocols."""
    return tuple(dict.fromkeys(_tables().apis.values()))


def rows() -> tuple[Contract, ...]:
    return _tables().contracts


def model_rules() -> tuple[ModelRules, ...]:
    return _tables().models


def templates() -> tuple[Template, ...]:
    return _tables().templates


def hosts() -> tuple[Host, ...]:
    return tuple({item.id: item for item in _tables().hosts.values()}.values())


def matches_model(model: str | None, patterns: tuple[str, ...]) -> bool:
    """Whether a model's name, with or without its owner's, matches a pattern."""
    name = (model or "").lower()
    bare = name.rsplit("/", 1)[-1]
    return any(fnmatchcase(name, pattern) or fnmatchcase(bare, pattern) for pattern in patterns)


def _own_row(api: str) -> Contract:
    """Return the row of an api itself, which holds for hosts that are not listed."""
    rows = _tables().contracts
    return next((row for row in rows if row.api == api and row.provider is None), Contract(api=api))


def _with_rules(
    contract: Contract, of_models: Sequence[ModelRules | Template], model: str | None
) -> Contract:
    """Return a contract with the first rules that are for the model."""
    matching = (item.rules for item in of_models if model and item.matches(contract, model))
    rules = next(matching, None)
    return contract if rules is None else contract.with_rules(rules)


# Reading the file, and rows of an application's own


_adding = Lock()
_own: tuple[Rows, ...] = ()
"""The rows that applications have added, the latest first."""
_emptied_by_change: list[Callable[[], None]] = []


def cached(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that remembers its answers until the contracts change."""
    kept = lru_cache(maxsize=256)(function)
    _emptied_by_change.append(kept.cache_clear)

    @wraps(function)
    def answer(*arguments: P.args, **named: P.kwargs) -> T:
        return kept(*arguments, **named)  # type: ignore[arg-type]

    return answer


def add_own(name: str, rows: Rows) -> None:
    """Let an application's rows hold in this process, before all others."""
    global _own
    with _adding:
        if rows in _own:
            return
        before, _own = _own, (rows, *_own)
        _empty_caches()
        try:
            _tables()
        except ValueError as error:
            _own = before
            _empty_caches()
            raise InvalidCall(f"{name}: {error}", hint=_OWN_ROWS) from None


_OWN_ROWS: Final = (
    "a host has an id of its own; a row for models of a known provider needs no [[host]]"
)


def _empty_caches() -> None:
    for empty in (_tables.cache_clear, *_emptied_by_change):
        empty()


@cache
def _tables() -> _Tables:
    text = files("reasoning_store.wire").joinpath("contracts.toml").read_text(encoding="utf-8")
    data = resolve_likes(tomllib.loads(text))
    for own in reversed(_own):
        data = _with_own(data, own)
    return _read(data)


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


def _read(data: Mapping[str, Any]) -> _Tables:
    hosts: dict[str, Host] = {}
    for row in data["host"]:
        item = Host(**_fields(Host, row))
        for name in (item.id, *item.aliases):
            if hosts.setdefault(name, item) is not item:
                raise ValueError(f"two hosts are named {describe(name)}")
    apis = {name: name for name in data["api"]}
    for name, aliases in data["api"].items():
        apis.update(dict.fromkeys(aliases, name))
    return _Tables(
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
