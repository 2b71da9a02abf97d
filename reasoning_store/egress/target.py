"""The target of a request: the provider, model, protocol and address that it is for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from reasoning_store.conversation.blocks import Origin
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import check_names
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.contract_tables import Contracts, default_contracts

if TYPE_CHECKING:
    from reasoning_store.wire.protocol import Protocol


@dataclass(frozen=True, slots=True)
class Target:
    """The receiver of a request, with the contract that holds there."""

    contract: Contract
    provider: str | None
    model: str | None
    base_url: str | None
    only_read: str | None = None
    """The form of its protocol that was named, where that is read and never written."""
    contracts: Contracts = field(default_factory=default_contracts, compare=False, repr=False)
    """Those that it was found in, where the makers of replies are looked up, too."""

    @property
    def protocol(self) -> Protocol:
        """The protocol that the request is written in."""
        from reasoning_store.wire import registry

        return registry.find_protocol(self.contract.api)

    @property
    def origin(self) -> Origin:
        """The origin of the replies that come from there."""
        return Origin(
            provider=self.provider,
            api=self.contract.api,
            model=self.model,
            base_url=self.base_url,
        )


def find_target(
    provider: str | None,
    model: str | None,
    api: str | None,
    base_url: str | None,
    contracts: Contracts | None = None,
) -> Target:
    """Return the target that these names mean; an unknown host gets its protocol's own row."""
    check_names(provider=provider, model=model, api=api, base_url=base_url)
    target = continued_target(provider, model, api, base_url, contract_lookup.tables_of(contracts))
    if api is None and base_url is None:
        return target
    from reasoning_store.wire import registry

    return replace(target, only_read=registry.only_read_form(api, base_url))


@lru_cache(maxsize=256)  # a conversation names the same few, each matched against many patterns
def continued_target(
    provider: str | None,
    model: str | None,
    api: str | None,
    base_url: str | None,
    contracts: Contracts,
) -> Target:
    """Return the target of a recorded request: a form that is only read is continued as written."""
    if base_url is not None and not contract_lookup.is_address(base_url):
        raise InvalidCall("base_url cannot be read as an address", hint="e.g. https://host/v1")
    return Target(
        contract=contract_lookup.find_contract(provider, model, api, base_url, contracts),
        provider=contract_lookup.provider_id(provider, base_url, contracts),
        model=model,
        base_url=base_url,
        contracts=contracts,
    )
