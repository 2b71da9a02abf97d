"""Whether reasoning has a way to a target: a place there, a common origin, a signature.

Opaque reasoning means something only to those who made it: the provider, its api, a model of
the same family, at the same address. Portable reasoning is words, which go wherever there
is a place for them. Nothing here depends on settings or on where a message stands.

It knows origins and contracts. It must not know policy, tokens or a protocol's shapes.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from reasoning_store.blocks import Origin, ThinkingBlock
from reasoning_store.egress.verdicts import Rule, Target
from reasoning_store.errors import UsageError
from reasoning_store.wire import contracts


def portable_obstacle(to: Target) -> Rule | None:
    """Whether reasoning without signature or ciphertext has a place at the target."""
    if to.contract.signed:
        return "unsigned"
    return None if to.contract.echo is not None else "no_place"


def opaque_obstacle(origin: Origin | None, source_field: str | None, to: Target) -> Rule | None:
    """Whether opaque reasoning of this origin may go to the target.

    It goes only where provider, api and model family equal those it came from, and the
    address where both are known; where nobody is known to have made it, its field must be one
    of the target's.
    Foreign reasoning is never turned into text.
    """
    contract = to.contract
    if not contract.opaque:
        return "no_place"
    if is_foreign(origin, to):
        return "origin"
    if is_unknown(origin):
        named = (*contract.fields, *contract.sources, contract.echo)
        return None if source_field is not None and source_field in named else "origin"
    return None


def is_unknown(origin: Origin | None) -> bool:
    """Whether nobody is known to have made a message."""
    return origin is None or not (origin.provider or origin.base_url)


def is_foreign(origin: Origin | None, to: Target) -> bool:
    """Whether a message was made by somebody else; of no known origin it is nobody's.

    What came in another protocol is another's, whoever made it; events that a host has
    normalised may be anybody's.
    """
    if origin is None:
        return False
    if is_unknown(origin):
        return origin.api not in (None, _ANYBODYS) and not is_of_api(origin.api or "", to)
    return not is_made_at(origin, to)


_ANYBODYS = "thinking_events"


def is_of_api(api: str, to: Target) -> bool:
    """Whether the target speaks a protocol; one that is not known here it does not."""
    try:
        return contracts.api_name(api) == to.contract.api
    except UsageError:
        return False


def is_made_at(origin: Origin | None, to: Target) -> bool:
    """Whether a message was made by the target's provider, in its api, by a model of its family."""
    if origin is None:
        return False
    if contracts.provider_id(origin.provider, origin.base_url) != to.provider:
        return False
    try:
        made = contracts.resolve(origin.provider, origin.model, origin.api, origin.base_url)
    except UsageError:
        return False  # it came in a protocol that is not known here
    if made.api != to.contract.api or contracts.family(made) != contracts.family(to.contract):
        return False
    if to.provider is None:
        # A host without a name is known by its address alone.
        return bool(to.base_url) and _address(origin.base_url) == _address(to.base_url)
    return not origin.base_url or not to.base_url or _same_address(origin.base_url, to.base_url)


def _same_address(one: str, other: str) -> bool:
    return one == other or _address(one) == _address(other)


_PORTS = {"http": 80, "https": 443}


def _address(url: str | None) -> tuple[str, str, int | None, str] | None:
    """Return an address without what makes no difference: case, usual port, last slash."""
    if not url:
        return None
    try:
        parts = urlsplit(url.strip())
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return (url, "", None, "")
    return (parts.scheme, (parts.hostname or "").lower(), port, parts.path.rstrip("/"))


class Obstacles:
    """The obstacles of one target, each origin looked up once."""

    __slots__ = ("_opaque", "_portable", "_to")

    def __init__(self, to: Target) -> None:
        self._to = to
        self._portable = portable_obstacle(to)
        self._opaque: dict[object, Rule | None] = {}

    def of(self, block: ThinkingBlock, origin: Origin | None) -> Rule | None:
        if not block.opaque:
            return self._portable
        key: object = block.source_field
        if origin is not None:
            made = (origin.provider, origin.api, origin.model, origin.base_url)
            key = (*made, block.source_field)
        if key not in self._opaque:
            self._opaque[key] = opaque_obstacle(origin, block.source_field, self._to)
        return self._opaque[key]


class Origins:
    """Whose a message is, each origin looked up once."""

    __slots__ = ("_api", "_foreign", "_to")

    def __init__(self, to: Target) -> None:
        self._to = to
        self._foreign: dict[tuple[str | None, ...], bool] = {}
        self._api: dict[str | None, bool] = {None: False}

    def is_foreign(self, origin: Origin | None) -> bool:
        """Whether a message was made by somebody else, as ``is_foreign`` has it."""
        if origin is None:
            return False
        key = (origin.provider, origin.api, origin.model, origin.base_url)
        if key not in self._foreign:
            self._foreign[key] = is_foreign(origin, self._to)
        return self._foreign[key]

    def is_of_this_api(self, origin: Origin | None) -> bool:
        api = origin.api if origin is not None else None
        if api not in self._api:
            self._api[api] = is_of_api(api or "", self._to)
        return self._api[api]
