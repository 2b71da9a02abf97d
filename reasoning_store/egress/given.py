"""What goes with a conversation in one request: system, tools, and what is laid over it.

It is never stored. What cannot be sent is refused by its place, or mended as everything
else is; it counts as it was given, and its digest tells two requests apart.

Whoever counts it checks it, too: a count of what cannot be sent is no count.

It knows the forms that an application gives. It must not know a protocol's or a message.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
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
from reasoning_store.wire import neutral, registry


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
        laid_over = _as_json("extra", laid_over)
        system, tools = _checked(system, tools)
        parts = (system, tools, laid_over)
        whole = encodable.mended(parts)
        return cls(
            system=whole[0],
            tools=whole[1],
            extra=whole[2],
            digest=_digest(system, tools),
            fixed=fixed_tokens(system, tools, counter),
            encoding=counter.encoding,
            warnings=() if whole is parts else (HALF_CHARACTER,),
        )


def fixed(
    system: Any, tools: Sequence[Mapping[str, Any]] | None, counter: Counter
) -> tuple[int, Exactness]:
    """Return what system and tools count that can be sent."""
    return fixed_tokens(*_checked(system, tools), counter)


def digest(system: Any, tools: Sequence[Mapping[str, Any]] | None) -> str:
    """Return what tells one request's system and tools from another's."""
    return _digest(*_checked(system, tools))


def _digest(system: Any, tools: Sequence[Mapping[str, Any]] | None) -> str:
    text = codec.dumps([system, list(tools or ())])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _checked(system: Any, tools: Any) -> tuple[Any, Any]:
    """Return both as JSON has them; refuse what is nothing of the kind."""
    _check_system(system)
    _check_tools(tools)
    return _as_json("system", system), _as_json("tools", tools)


def _check_system(system: Any) -> None:
    """Refuse what is neither a text nor of any protocol's form."""
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, Mapping):
        if not isinstance(system, list | tuple):
            raise UsageError(
                f"system is a text, a mapping or a list of them, not {type(system).__name__}"
            )
        for place, part in enumerate(system):
            if not isinstance(part, str | Mapping):
                raise UsageError(
                    f"system[{place}] is a text or a mapping, not {type(part).__name__}"
                )
        if len({isinstance(part, str) for part in system}) > 1:
            raise UsageError(
                "system is a list of texts or of the protocol's own parts, not of both",
                hint="write each text as such a part",
            )


def _check_tools(tools: Any) -> None:
    if tools is None:
        return
    if not isinstance(tools, list | tuple):
        raise UsageError(
            f"tools is a list of mappings, not {type(tools).__name__}",
            hint="put a single tool into a list",
        )
    for place, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise UsageError(f"tools[{place}] is a mapping, not {type(tool).__name__}")
        if wrong := neutral.wrong_with(tool):
            raise UsageError(
                f"tools[{place}]{wrong}",
                hint='e.g. {"name": "look_up", "description": "...", "parameters": {...}}',
            )


def _as_json(name: str, value: Any) -> Any:
    """Return a value, of dicts where it had other mappings.

    Refuses what JSON has no way to say, by its place and not by what it is.
    """
    if _not_json(value, codec.DEEPEST) is None:
        return value
    value = codec.with_dicts(value)
    if (wrong := _not_json(value, codec.DEEPEST)) is not None:
        place, what = wrong
        begins = place if len(place) <= _LONGEST else place[:_LONGEST] + "..."
        raise UsageError(
            f"{name}{begins} is {what}",
            hint="use strings, finite numbers, booleans, None, lists and dicts with such keys",
        )
    return value


_LONGEST = 60
"""Characters of a place: what is too deep lies hundreds of steps down."""
_PLAIN = (str, bool, int, type(None))


def _not_json(value: Any, deepest: int) -> tuple[str, str] | None:
    """Return where something is not JSON, and what it is instead."""
    if isinstance(value, _PLAIN):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else ("", "a number that JSON does not have")
    inside: Iterable[tuple[Any, Any]]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                return "", f"a mapping with a key that is no string but {type(key).__name__}"
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)
    else:
        return "", f"not JSON but {type(value).__name__}"
    if not deepest:
        return "", codec.TOO_DEEP
    for at, item in inside:
        if (wrong := _not_json(item, deepest - 1)) is not None:
            return f"[{at!r}]{wrong[0]}", wrong[1]
    return None


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise UsageError(
            f"{name} is a mapping, not {type(value).__name__}",
            hint=f'it is laid over the body, as {name}={{"stream": True}}',
        )
    return value or {}
