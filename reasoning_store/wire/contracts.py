"""What each provider demands or forbids: rows of data, dated, with their source.

The rows stand in ``contracts.toml``; this module reads them once and finds the one that
applies. It knows how a row is found, not what follows from it: ``ingress`` and ``egress``
read the fields. How a model writes when its host hands the text on as it stands belongs to
the model and not to the host; such a row, a template, is laid over the contract.

A provider is looked up by id or alias, in lower case. An explicit ``api`` always wins; else
the address may say it, or the model, and the provider's usual one is left. Within a provider's
rows of that api the first whose ``models`` matches is taken. An unknown host gets the api's own
row, the one without a provider.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

from reasoning_store.errors import UsageError
from reasoning_store.quoting import shown
from reasoning_store.wire.demands import Demands as Demands
from reasoning_store.wire.demands import Floor as Floor

APIS = (
    "anthropic.messages",
    "bedrock.converse",
    "cohere.chat",
    "gemini.generate_content",
    "mistral.chat",
    "ollama.chat",
    "openai.chat",
    "openai.responses",
    "thinking_events",
)
DEFAULT_API = "openai.chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract(Demands):
    """One row: how one provider's api carries reasoning, for some of its models."""

    api: str
    provider: str | None = None
    models: tuple[str, ...] = ("*",)
    family: str | None = None
    """Models that can read each other's opaque reasoning; by default all of the row."""

    # Read by ingress.
    fields: tuple[str, ...] = ()
    """The fields that carry reasoning, best first; they mirror each other, so one is kept."""
    tags: bool = True
    """Whether the text may hold inline tags, i.e. what ``reasoning.tags=auto`` means."""
    tag_names: tuple[str, ...] = ()
    """Further tag names beside the usual ones."""
    padded_tags: bool = False
    """Whether a line end on either side of a thought, and one behind it, are the delimiter's."""
    starts_inside: bool = False
    """Whether the prompt's template has opened the thinking block."""
    markers: tuple[str, ...] = ()
    """Literal marker families in the text."""
    reasoning_beside_output: bool = False
    """Whether the reported output count leaves the reasoning out."""
    cumulative: bool = False
    """Whether each reasoning delta may repeat all that came before it."""
    sealed_by: str | None = None
    """The field whose ciphertext or signature belongs to the plain reasoning string, which is
    then one block a message, whatever comes between its pieces."""

    source: str = ""
    checked: str = ""

    def matches(self, model: str | None) -> bool:
        return _named(model, self.models)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One provider: its names, its usual api and the addresses by which it is known."""

    id: str
    api: str
    model_apis: Mapping[str, str] = field(default_factory=dict)
    """The api of models that do not speak the usual one, by their pattern."""
    aliases: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    source: str = ""
    checked: str = ""

    def api_of(self, model: str | None) -> str:
        """Return the api in which a model is spoken to where nobody names another."""
        named = (api for pattern, api in self.model_apis.items() if _named(model, (pattern,)))
        return next(named, self.api)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How a family of models delimits its thoughts in plain text, wherever it is served."""

    models: tuple[str, ...]
    tag_names: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    source: str = ""
    checked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What some models of providers demand otherwise than the providers' rows say."""

    providers: tuple[str, ...]
    apis: tuple[str, ...]
    models: tuple[str, ...]
    demands: Mapping[str, Any]
    source: str = ""
    checked: str = ""

    def matches(self, contract: Contract, model: str | None) -> bool:
        return (
            contract.provider in self.providers
            and contract.api in self.apis
            and _named(model, self.models)
        )


@dataclass(frozen=True, slots=True)
class _Tables:
    hosts: Mapping[str, Host]
    apis: Mapping[str, str]
    segments: Mapping[str, str]
    contracts: tuple[Contract, ...]
    models: tuple[Model, ...]
    templates: tuple[Template, ...]


def resolve(
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
) -> Contract:
    """Return the row that holds for a model of a provider, or its api's own row.

    What holds for the model alone is laid over it, and where the text may hold delimiters,
    those of the model's own template are in it.
    """
    check_names(provider=provider, model=model, api=api, base_url=base_url)
    known = host(provider, base_url)
    own = known.id if known is not None else None
    usual = known.api_of(model) if known is not None else DEFAULT_API
    wanted = api_name(api) if api is not None else api_at(base_url) or usual
    for row in _tables().contracts:
        if own and row.provider == own and row.api == wanted and row.matches(model):
            return _with_template(_with_model(row, model), model)
    return _with_template(_own_row(wanted), model)


def check_names(**names: Any) -> None:
    """Refuse what is no string, of that which says whom something is for or from."""
    for name, value in names.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(
                f"{name} is a string, not {type(value).__name__}", hint=f"e.g. {_EXAMPLES[name]}"
            )


_EXAMPLES: Final = {
    "provider": 'provider="openai"',
    "model": 'model="gpt-5.1"',
    "api": 'api="openai.chat"',
    "base_url": 'base_url="https://host/v1"',
}


def mirrors(contract: Contract) -> tuple[str, ...]:
    """Return the fields that may carry one and the same thought, best first.

    The contract's own come first, then all those of the api: everything that arrives is
    read, whatever the row says (BR-002).
    """
    return tuple(dict.fromkeys((*contract.fields, *_own_row(contract.api).fields)))


def host(provider: str | None, base_url: str | None = None) -> Host | None:
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


def api_at(base_url: str | None) -> str | None:
    """Return the api that an address says, or ``None`` for one that may be any."""
    if not base_url or not is_address(base_url):
        return None
    segments = urlsplit(base_url).path.lower().split("/")
    return next((api for name, api in _tables().segments.items() if name in segments), None)


def is_address(base_url: str) -> bool:
    """Whether it can be read as an address at all."""
    try:
        urlsplit(base_url)
    except ValueError:
        return False
    return True


def provider_id(provider: str | None, base_url: str | None = None) -> str | None:
    """Return a provider's own id: aliases resolved, unknown names in lower case as they are."""
    known = host(provider, base_url)
    if known is not None:
        return known.id
    return provider.strip().lower() if provider and provider.strip() else None


def speaks(provider: str | None, model: str | None, api: str) -> bool:
    """Whether a known provider streams a model in this protocol."""
    return host(provider) is not None and resolve(provider, model).api == api


def api_name(api: str) -> str:
    """Return the api's own name, or refuse one that no protocol here speaks."""
    name = _tables().apis.get(api.strip().lower())
    if name is None:
        raise UsageError(f"unknown api {shown(api)}", hint=f"one of: {', '.join(APIS)}")
    return name


def family(contract: Contract) -> str:
    """Return which models can read each other's opaque reasoning under a contract."""
    return contract.family or f"{contract.provider or ''}/{contract.api}"


def rows() -> tuple[Contract, ...]:
    return _tables().contracts


def models() -> tuple[Model, ...]:
    return _tables().models


def templates() -> tuple[Template, ...]:
    return _tables().templates


def hosts() -> tuple[Host, ...]:
    return tuple({item.id: item for item in _tables().hosts.values()}.values())


def _named(model: str | None, patterns: tuple[str, ...]) -> bool:
    name = (model or "").lower()
    bare = name.rsplit("/", 1)[-1]
    return any(fnmatchcase(name, pattern) or fnmatchcase(bare, pattern) for pattern in patterns)


def _own_row(api: str) -> Contract:
    """The row of an api itself, which holds for hosts that are not listed."""
    for row in _tables().contracts:
        if row.api == api and row.provider is None:
            return row
    return Contract(api=api)


def _with_model(contract: Contract, model: str | None) -> Contract:
    for item in _tables().models if model else ():
        if item.matches(contract, model):
            return replace(contract, **item.demands)
    return contract


def _with_template(contract: Contract, model: str | None) -> Contract:
    if not contract.tags or not model:
        return contract
    for template in _tables().templates:
        if _named(model, template.models):
            return replace(
                contract,
                tag_names=contract.tag_names + template.tag_names,
                markers=contract.markers + template.markers,
            )
    return contract


@cache
def _tables() -> _Tables:
    text = files("reasoning_store.wire").joinpath("contracts.toml").read_text(encoding="utf-8")
    return _read(spelt_out(tomllib.loads(text)))


def spelt_out(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables with every row that is like another saying all by itself."""
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
        item = Host(**_row(Host, row))
        for name in (item.id, *item.aliases):
            if hosts.setdefault(name, item) is not item:
                raise ValueError(f"contracts.toml names the provider {name} twice")
    apis = {name: name for name in APIS}
    for name, aliases in data["api"].items():
        apis.update(dict.fromkeys(aliases, name))
    return _Tables(
        hosts,
        apis,
        data["segment"],
        tuple(Contract(**_row(Contract, row)) for row in data["contract"]),
        tuple(_model(row) for row in data.get("model", ())),
        tuple(Template(**_row(Template, row)) for row in data.get("template", ())),
    )


def _model(row: Mapping[str, Any]) -> Model:
    """Return a row whose keys are its own or those of the demands that it changes."""
    changed = {item.name for item in fields(Demands)} & set(row)
    own = {name: value for name, value in row.items() if name not in changed}
    demands = _row(Demands, {name: row[name] for name in changed})
    return Model(**_row(Model, {**own, "demands": demands}))


def _row(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(kind)}
    if strange := set(row) - names:
        raise ValueError(f"contracts.toml has an unknown key: {sorted(strange)}")
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
    } | ({"checked": str(row["checked"])} if "checked" in row else {})
