"""How a host is told to reason: on or off, how hard, how long, and over what.

Theory. Hosts say the same few things in different places and words: a switch, an effort, a
budget of tokens, and whether the reasoning of earlier turns is read at all. Where each
stands in the body and by what word is data of the contract; this module puts it there. Off
is said once: as the switch's word, else as the effort ``none``. What a host has no word for
is not said in another's words; it comes back as unsaid.

It knows paths and words. It must not know providers, settings' layers or messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reasoning_store.wire.base import ASKED, Asked
from reasoning_store.wire.contracts import Demands

_NONE: Final = "none"


def say(asked: Asked, contract: Demands, body: dict[str, Any]) -> tuple[str, ...]:
    """Put into a body what is asked; return the fields of ``Asked`` that have no word here."""
    if asked.enabled is False or asked.effort == _NONE or asked.budget_tokens == 0:
        # BR-006: without reasoning no other parameter of it is sent.
        return _say_off(asked, contract, body)
    words = _words(contract)
    unsaid = []
    budget = asked.budget_tokens if contract.budget_at else None
    if asked.budget_tokens is not None:
        if contract.budget_at:
            put(body, contract.budget_at, budget)
        else:
            unsaid.append("budget_tokens")
    if asked.effort is not None:
        word = words.get(asked.effort)
        if word is None or (contract.one_of_both and budget is not None):
            unsaid.append("effort")
        elif contract.effort_at:
            put(body, contract.effort_at, word)
    if contract.enabled_at and contract.on is not None:
        if asked.enabled or budget is not None:
            put(body, contract.enabled_at, contract.on, over=False)
    elif asked.enabled and not (contract.effort_at or contract.budget_at or contract.thinks):
        unsaid.append("enabled")
    return tuple(sorted(unsaid, key=ASKED.index))


def say_keep(contract: Demands, body: dict[str, Any]) -> None:
    """Put into a body that the reasoning of earlier turns, which is in it, is to be read."""
    if contract.keep_at is None:
        return
    beside = contract.enabled_at
    if beside and beside.rpartition(".")[0] == contract.keep_at.rpartition(".")[0]:
        # One object holds both, and is not whole without its switch.
        if contract.off not in _UNSAID and at(body, beside) == contract.off:
            return
        if "." in beside and contract.on is not None:
            put(body, beside, contract.on, over=False)
    put(body, contract.keep_at, contract.keep)


def at(body: Mapping[str, Any], path: str | None) -> Any:
    """Return what stands at a path, or ``None``."""
    value: Any = body
    for name in path.split(".") if path else ():
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if path else None


def put(body: dict[str, Any], path: str, value: Any, *, over: bool = True) -> None:
    """Put a value at a path; unless ``over``, one that is there stays."""
    *parents, name = path.split(".")
    for parent in parents:
        # A copy: what stands there may be a stored block's own.
        body[parent] = body = dict(body.get(parent) or {})
    if over or body.get(name) in _UNSAID:
        body[name] = value


_UNSAID: Final = (None, "")


def _say_off(asked: Asked, contract: Demands, body: dict[str, Any]) -> tuple[str, ...]:
    if contract.enabled_at and contract.off not in _UNSAID:
        put(body, contract.enabled_at, contract.off)
        return ()
    word = _words(contract).get(_NONE)
    if word is not None and contract.effort_at:
        put(body, contract.effort_at, word)
        return ()
    if asked.enabled is False:
        return ("enabled",)
    return ("effort",) if asked.effort == _NONE else ("budget_tokens",)


def _words(contract: Demands) -> Mapping[str, str]:
    """Return the host's word for each effort of ours that it knows."""
    if contract.effort_at is None:
        return {}
    if not contract.efforts:
        return _ALL
    pairs = (item.partition("=") for item in contract.efforts)
    return {ours: theirs or ours for ours, _, theirs in pairs}


_ALL: Final = {
    effort: effort for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max")
}
