"""Admissibility: whether reasoning may be sent to a target, whatever the settings say.

Opaque reasoning means something only to its maker: the provider, its api, a model of the same
family, at the same address. Portable reasoning is words, which may be sent to any target that
has a place for them.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from reasoning_store.conversation.blocks import Origin, ThinkingBlock
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.thinking_header import ThinkingHeader
from reasoning_store.egress.selection_values import VerdictRule
from reasoning_store.egress.target import Target
from reasoning_store.wire import contract_lookup


def portable_inadmissible_because(to: Target) -> VerdictRule | None:
    """Return the rule by which the target takes no reasoning without a signature or ciphertext."""
    if to.contract.returning.signed:
        return "unsigned"
    return None if to.contract.returning.returns_in is not None else "no_place"


def opaque_inadmissible_because(
    origin: Origin | None, source_field: str | None, to: Target
) -> VerdictRule | None:
    """Return the rule by which opaque reasoning of this origin may not be sent to the target.

    Provider, api and model family have to equal those it came from, and the address where both
    are known; of an unknown origin, its field has to be one of the target's. Foreign reasoning
    is never turned into text.
    """
    rules = to.contract.returning
    if is_foreign(origin, to):
        return "origin"
    if is_unknown(origin):
        named = (*to.contract.reading.fields, *rules.known_sources, rules.returns_in)
        if source_field is None or source_field not in named:
            return "origin"
    return None if rules.opaque else "no_place"


def is_unknown(origin: Origin | None) -> bool:
    """Whether the maker of a message is unknown."""
    return origin is None or not (origin.provider or origin.base_url)


def is_foreign(origin: Origin | None, to: Target) -> bool:
    """Whether another than the target made a message.

    A message of an unknown maker is foreign where it came in another protocol, unless in
    ``thinking_events``, which any host may send.
    """
    if origin is None:
        return False
    if is_unknown(origin):
        return origin.api not in (None, _OF_ANY_HOST) and not is_of_api(origin.api or "", to)
    return not is_made_at(origin, to)


_OF_ANY_HOST = "thinking_events"


def origin_cause(origin: Origin | None, to: Target) -> str:
    """Return in words why opaque reasoning of this origin is not for the target."""
    if origin is None or not is_foreign(origin, to):
        return "its maker is unknown, and the host has no field of that name"
    maker = contract_lookup.provider_id(origin.provider, origin.base_url, to.contracts)
    if not is_unknown(origin) and maker != to.provider:
        return f"signed by {maker or 'another host'}; only {maker or 'that host'} takes it back"
    if origin.api is not None and not is_of_api(origin.api, to):
        return f"signed in {origin.api}; only that protocol takes it back"
    if origin.base_url and to.base_url and not is_same_address(origin.base_url, to.base_url):
        return "signed at another address; only that address takes it back"
    return f"signed by {origin.model or 'another model'}; only models of its family take it back"


def is_of_api(api: str, to: Target) -> bool:
    """Whether the target uses a protocol."""
    try:
        return contract_lookup.api_name(api) == to.contract.api
    except InvalidCall:
        return False


def is_made_at(origin: Origin | None, to: Target) -> bool:
    """Whether the target made a message: its provider, its api, a model of its family."""
    if origin is None:
        return False
    if contract_lookup.provider_id(origin.provider, origin.base_url, to.contracts) != to.provider:
        return False
    try:
        made = contract_lookup.find_contract(
            origin.provider, origin.model, origin.api, origin.base_url, to.contracts
        )
    except InvalidCall:
        return False  # of an unknown protocol
    if made.api != to.contract.api or contract_lookup.family(made) != contract_lookup.family(
        to.contract
    ):
        return False
    if to.provider is None:
        # A host without a name has only its address.
        return bool(to.base_url) and _normalized_address(origin.base_url) == _normalized_address(
            to.base_url
        )
    return not origin.base_url or not to.base_url or is_same_address(origin.base_url, to.base_url)


def is_same_address(one: str, other: str) -> bool:
    """Whether two addresses are one, in spite of their case, usual port and last slash."""
    return one == other or _normalized_address(one) == _normalized_address(other)


_PORTS = {"http": 80, "https": 443}


def _normalized_address(url: str | None) -> tuple[str, str, int | None, str] | None:
    """Return an address without case, usual port and last slash, which make no difference."""
    if not url:
        return None
    try:
        parts = urlsplit(url.strip())
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return (url, "", None, "")
    return (parts.scheme, (parts.hostname or "").lower(), port, parts.path.rstrip("/"))


class Admissibility:
    """The admissibility of blocks at one target, each origin looked up once."""

    __slots__ = ("_foreign", "_of_this_api", "_opaque", "_portable", "to")

    def __init__(self, to: Target) -> None:
        self.to = to
        self._portable = portable_inadmissible_because(to)
        self._opaque: dict[object, VerdictRule | None] = {}
        self._foreign: dict[object, bool] = {}
        self._of_this_api: dict[str | None, bool] = {None: False}

    def inadmissible_because(
        self, thinking: ThinkingBlock | ThinkingHeader, origin: Origin | None
    ) -> VerdictRule | None:
        """Return the rule by which a thinking block may not be sent; None where it may."""
        if not thinking.opaque:
            return self._portable
        key = (thinking.source_field, _maker_key(origin))
        if key not in self._opaque:
            self._opaque[key] = opaque_inadmissible_because(origin, thinking.source_field, self.to)
        return self._opaque[key]

    def is_foreign(self, origin: Origin | None) -> bool:
        """Whether another than the target made a message."""
        maker = _maker_key(origin)
        if maker not in self._foreign:
            self._foreign[maker] = is_foreign(origin, self.to)
        return self._foreign[maker]

    def is_of_this_api(self, origin: Origin | None) -> bool:
        """Whether a message came in the target's protocol."""
        api = origin.api if origin is not None else None
        if api not in self._of_this_api:
            self._of_this_api[api] = is_of_api(api or "", self.to)
        return self._of_this_api[api]


def _maker_key(origin: Origin | None) -> tuple[str | None, ...] | None:
    if origin is None:
        return None
    return (origin.provider, origin.api, origin.model, origin.base_url)
