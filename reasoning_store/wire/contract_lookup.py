"""Finds the contract that holds for a provider, a model, an api and an address.

An explicit api always wins; else the path of the address decides, then the model, then the
provider's usual api. Within a provider's rows of that api the first whose ``models`` matches
holds; an unknown host gets the api's own row, the one without a provider, with the demands of the
maker to which the model's name belongs. The rules of single models and of their templates are laid
over it.

``contracts`` are those of a store; without them those of a program that has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import check_names, describe
from reasoning_store.wire.contract import DEMANDS, Contract
from reasoning_store.wire.contract_tables import (
    Contracts,
    ContractTables,
    Host,
    ModelRules,
    Template,
    default_contracts,
    matches_model,
    shipped_contracts,
)

DEFAULT_API: Final = "openai.chat"


def tables_of(contracts: Contracts | None) -> ContractTables:
    """Return the tables of a store, or those that hold without one."""
    found = default_contracts() if contracts is None else contracts
    if not isinstance(found, ContractTables):
        raise InvalidCall(
            f"contracts are those of a store, not {type(found).__name__}",
            hint='store.contracts, of Store(url, contracts="mine.toml")',
        )
    return found


def find_contract(
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    contracts: Contracts | None = None,
) -> Contract:
    """Return the contract that holds, with the rules of the model and of its template."""
    check_names(provider=provider, model=model, api=api, base_url=base_url)
    tables = tables_of(contracts)
    known = find_host(provider, base_url, tables)
    own = known.id if known is not None else None
    usual = known.api_of(model) if known is not None else DEFAULT_API
    at_address = api_of_address(base_url, known) or usual
    default = usual if is_dialect(usual, at_address) else at_address
    wanted = api_name(api) if api is not None else default
    found = _row_of(own, model, wanted, tables)
    if found is None:
        found = _own_row(wanted)
        if own is None:
            found = _with_demands(found, model, tables)
    return _with_rules(found, tables.templates, model)


def _row_of(
    provider: str | None, model: str | None, api: str, tables: ContractTables
) -> Contract | None:
    """Return the row of a provider's model, with the rules of the model."""
    for row in tables.rows:
        named = provider and row.provider == provider and row.api == api
        if named and matches_model(model, row.models):
            return _with_rules(row, tables.models, model)
    return None


def _with_demands(contract: Contract, model: str | None, tables: ContractTables) -> Contract:
    """Return an unknown host's contract with the demands of the model's maker, if it has any."""
    maker = find_maker(model, tables)
    own = _row_of(maker.id, model, contract.api, tables) if maker is not None else None
    if own is None or own.returning.floor == own.returning.empty_field_in == "none":
        return contract
    every = ((name, getattr(own.returning, name)) for name in DEMANDS)
    demands = {name: value for name, value in every if value is not None}
    return replace(contract.with_rules(demands), demanded_by=own.provider)


def mirrored_fields(contract: Contract) -> tuple[str, ...]:
    """Return the fields that may carry one and the same thought, best first.

    The contract's own come first, then all those of the api: everything that arrives is read, also
    a field that the row does not name (BR-002).
    """
    own = contract.reading.fields
    return tuple(dict.fromkeys((*own, *_own_row(contract.api).reading.fields)))


def find_host(
    provider: str | None, base_url: str | None = None, contracts: Contracts | None = None
) -> Host | None:
    """Return the provider of a name or an address, or ``None`` for an unknown one."""
    hosts = tables_of(contracts).hosts
    if provider:
        return hosts.get(provider.strip().lower())
    if base_url and is_address(base_url):
        address = (urlsplit(base_url).hostname or base_url).lower()
        for candidate in hosts.values():
            if any(fnmatchcase(address, pattern) for pattern in candidate.addresses):
                return candidate
    return None


def find_maker(model: str | None, contracts: Contracts) -> Host | None:
    """Return the provider that makes a model, where its name shows it."""
    hosts = tables_of(contracts).hosts.values()
    return next((item for item in hosts if matches_model(model, item.models)), None)


def find_encoding(model: str | None) -> str | None:
    """Return the encoding of a model's own tokenizer, where it is one that can be counted in."""
    encodings = shipped_contracts().encodings
    return next((name for name in encodings if matches_model(model, (*encodings[name],))), None)


def api_of_address(base_url: str | None, known: Host | None = None) -> str | None:
    """Return the api that an address's path names, or ``None`` for one that may be any."""
    if not base_url or not is_address(base_url):
        return None
    path = urlsplit(base_url).path.lower().rstrip("/")
    for ending, api in shipped_contracts().endings.items():
        if path.endswith(ending):
            return api
    segments = path.split("/")
    named = {**shipped_contracts().segments, **(known.path_apis if known is not None else {})}
    return next((api for name, api in named.items() if name in segments), None)


def is_dialect(usual: str, named: str) -> bool:
    """Whether ``usual`` is the named api or a form of it, and reads its events."""
    return named in (usual, shipped_contracts().dialects.get(usual))


def is_address(base_url: str) -> bool:
    """Whether it can be read as an address at all."""
    try:
        urlsplit(base_url)
    except ValueError:
        return False
    return True


def provider_id(
    provider: str | None, base_url: str | None = None, contracts: Contracts | None = None
) -> str | None:
    """Return a provider's id, by any of its names; an unknown name in lower case."""
    known = find_host(provider, base_url, contracts)
    if known is not None:
        return known.id
    return provider.strip().lower() if provider and provider.strip() else None


def speaks_api(provider: str | None, model: str | None, api: str) -> bool:
    """Whether a known provider streams a model in this protocol."""
    return find_host(provider) is not None and find_contract(provider, model).api == api


def api_name(api: str) -> str:
    """Return the api's own name, or refuse one that no protocol here speaks."""
    name = shipped_contracts().apis.get(api.strip().lower())
    if name is None:
        raise InvalidCall(f"unknown api {describe(api)}", hint=f"one of: {', '.join(apis())}")
    return name


def family(contract: Contract) -> str:
    """Return a name of the models that can read each other's opaque reasoning."""
    return contract.family or f"{contract.provider or ''}/{contract.api}"


def apis() -> tuple[str, ...]:
    """Return the ids of all protocols."""
    return tuple(dict.fromkeys(shipped_contracts().apis.values()))


def _own_row(api: str) -> Contract:
    """Return the row of an api itself, which holds for hosts that are not listed."""
    rows = shipped_contracts().rows
    return next((row for row in rows if row.api == api and row.provider is None), Contract(api=api))


def _with_rules(
    contract: Contract, of_models: Sequence[ModelRules | Template], model: str | None
) -> Contract:
    """Return a contract with the first rules that are for the model."""
    matching = (item.rules for item in of_models if model and item.matches(contract, model))
    rules = next(matching, None)
    return contract if rules is None else contract.with_rules(rules)
