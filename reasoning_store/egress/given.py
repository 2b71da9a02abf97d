"""What goes with a conversation in one request: system, tools, and what is laid over it.

It is never stored. What cannot be sent is refused by its place, or mended as everything
else is; it counts as it was given, and its digest tells two requests apart.

It knows the forms that an application gives. It must not know a protocol's or a message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasoning_store import codec
from reasoning_store.blocks import Exactness
from reasoning_store.egress import encodable
from reasoning_store.egress.repair import HALF_CHARACTER
from reasoning_store.egress.tokens import fixed_tokens
from reasoning_store.egress.verdicts import Target, Warning
from reasoning_store.errors import UsageError
from reasoning_store.tokenizers import Counter
from reasoning_store.wire import registry


@dataclass(frozen=True, slots=True)
class Given:
    """What goes with the conversation in one request."""

    system: Any
    tools: Sequence[Mapping[str, Any]] | None
    extra: Mapping[str, Any]
    digest: str
    fixed: tuple[int, Exactness]
    """What it counts, as it was given: a repair changes no count."""
    encoding: str
    warnings: tuple[Warning, ...]

    @classmethod
    def of(
        cls,
        to: Target,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        extra: Mapping[str, Any] | None,
        counter: Counter,
    ) -> Given:
        """Return it as it can be sent."""
        laid_over = _mapping("extra", extra)
        if owned := sorted(set(laid_over) & registry.writer(to.contract.api).BUILT):
            raise UsageError(
                f"extra cannot set {', '.join(owned)}: the request is built from the conversation",
                hint="pass model=, system= or tools=, or change the history",
            )
        _check_system(system)
        _check_tools(tools)
        parts = (system, tools, laid_over)
        whole = encodable.mended(parts)
        return cls(
            system=whole[0],
            tools=whole[1],
            extra=whole[2],
            digest=digest(system, tools),
            fixed=fixed_tokens(system, tools, counter),
            encoding=counter.encoding,
            warnings=() if whole is parts else (HALF_CHARACTER,),
        )


def digest(system: Any, tools: Sequence[Mapping[str, Any]] | None) -> str:
    """Return what tells one request's system and tools from another's."""
    text = codec.dumps([system, list(tools or ())])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _check_system(system: Any) -> None:
    """Refuse what is neither a text nor of any protocol's form."""
    if system is None or isinstance(system, str | Mapping):
        return
    if not isinstance(system, Sequence):
        raise UsageError(
            f"system is a text, a mapping or a list of them, not {type(system).__name__}"
        )
    for place, part in enumerate(system):
        if not isinstance(part, str | Mapping):
            raise UsageError(f"system[{place}] is a text or a mapping, not {type(part).__name__}")


def _check_tools(tools: Any) -> None:
    if tools is not None and (isinstance(tools, Mapping | str) or not isinstance(tools, Sequence)):
        raise UsageError(
            f"tools is a list of mappings, not {type(tools).__name__}",
            hint="put a single tool into a list",
        )
    for place, tool in enumerate(tools or ()):
        _mapping(f"tools[{place}]", tool)


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise UsageError(f"{name} is a mapping, not {type(value).__name__}")
    return value or {}
