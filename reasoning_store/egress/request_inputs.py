"""The inputs of a request that are not its conversation: system, tools, and extra keys of the body.

They are never stored. An input that cannot be sent is refused with its place; counting checks
the inputs too, so a count always belongs to a request that can be built.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reasoning_store.conversation import codec, validation
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.json_values import ALLOWED, NotJson, json_value
from reasoning_store.egress.token_counts import FixedCount, count_fixed
from reasoning_store.tokens import Counter
from reasoning_store.wire.tools import tool_error


@dataclass(frozen=True)
class RequestInputs:
    """The checked system, tools and extra keys of one request, and the counter for them."""

    counter: Counter
    system: Any
    tools: Sequence[Mapping[str, Any]] | None
    extra: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        counter: Counter,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> RequestInputs:
        """Check the inputs; refuse what JSON or no protocol can hold."""
        _check_system(system)
        _check_tools(tools)
        _check_extra(extra)
        return cls(
            counter,
            _as_json("system", system),
            _as_json("tools", tools),
            _as_json("extra", extra or {}),
        )

    @cached_property
    def digest(self) -> str:
        """The digest of system and tools, by which the inputs of two requests are compared."""
        text = codec.dumps([self.system, [*(self.tools or ())]])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @cached_property
    def fixed(self) -> FixedCount:
        """The tokens of system and tools, and of the answer's opening."""
        return count_fixed(self.system, self.tools, self.counter)


def _check_system(system: Any) -> None:
    """Refuse a system that is neither a text nor in a protocol's own form."""
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, Mapping):
        if not isinstance(system, list | tuple):
            raise InvalidCall(
                f"system must be a text, a mapping or a list of them, not {type(system).__name__}"
            )
        for place, part in enumerate(system):
            if not isinstance(part, str | Mapping):
                raise InvalidCall(
                    f"system[{place}] must be a text or a mapping, not {type(part).__name__}"
                )
        if len({isinstance(part, str) for part in system}) > 1:
            raise InvalidCall(
                "system is a list of texts or of the protocol's own parts, not of both",
                hint="write each text as such a part",
            )


def _check_tools(tools: Any) -> None:
    if tools is None:
        return
    if not isinstance(tools, list | tuple):
        raise InvalidCall(
            f"tools must be a list of mappings, not {type(tools).__name__}",
            hint="put a single tool into a list",
        )
    for place, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise InvalidCall(
                f"tools[{place}] must be a mapping, not {validation.type_name(tool)}",
                hint=_TOOL,
            )
        if wrong := tool_error(tool):
            raise InvalidCall(
                f"tools[{place}]{wrong}",
                hint=_TOOL,
            )


_TOOL = 'e.g. {"name": "look_up", "description": "...", "parameters": {...}}'


def _check_extra(extra: Any) -> None:
    if extra is not None and not isinstance(extra, Mapping):
        raise InvalidCall(
            f"extra must be a mapping, not {validation.type_name(extra)}",
            hint='it is laid over the body, as extra={"stream": True}',
        )


def _as_json(name: str, value: Any) -> Any:
    """Return a value as JSON holds it; one that JSON cannot hold is refused with its place."""
    try:
        return json_value(value)
    except NotJson as error:
        place = "".join(f"[{step!r}]" for step in error.path)
        begins = place if len(place) <= _LONGEST else place[:_LONGEST] + "..."
        raise InvalidCall(f"{name}{begins}: {error.what}", hint=ALLOWED) from None


_LONGEST = 60
"""Characters of a place, which may be hundreds of steps deep."""
