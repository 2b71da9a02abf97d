"""The warnings of a request: a table of codes and texts, and the functions that find them.

A warning never changes a request. The repairs of ``repairs`` and ``message_order`` find their
own; the functions here look at a selection, at a body, and at how it was written.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.placeholders import is_cleared
from reasoning_store.conversation.settings import KEY_OF, SettingValues
from reasoning_store.conversation.turns import TurnPosition
from reasoning_store.conversation.validation import describe
from reasoning_store.egress.admissibility import is_foreign, is_made_at
from reasoning_store.egress.policy import is_demanded, is_rolling
from reasoning_store.egress.selection_values import (
    INADMISSIBLE,
    LEFT_OUT_BY_SETTING,
    SENT,
    RequestWarning,
    Verdict,
    VerdictRule,
    ViewedMessage,
    WarningCode,
)
from reasoning_store.egress.target import Target
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.alternating import OPENING
from reasoning_store.wire.body_path import value_at
from reasoning_store.wire.contract import Contract, Floor, PrefixCheck
from reasoning_store.wire.contract_tables import Contracts
from reasoning_store.wire.message_writer import Written
from reasoning_store.wire.reasoning_options import ReasoningOptions, switches_off

NO_RESULT = "no result was recorded"
"""The error that is sent as the response of a call that has none."""

TEXTS: Final[Mapping[WarningCode, str]] = {
    # reasoning
    "unknown_provider": "{provider}: the request is written in {api} for an unknown host, which "
    "gets no reasoning parameter{left_out}{advice}",
    "by_model_name": "nothing is known of the host; the model's name is {maker}'s, so reasoning is "
    "sent as {maker} demands it: with {messages}; name the provider, e.g. provider={maker!r}",
    "no_model": "the request names no model, and providers refuse it; pass model=",
    "floor_off": "{host} wants back the reasoning of {messages}, and reasoning.floor is off: "
    "{consequence}; set reasoning.floor to provider",
    "floor_unmet": "{host} wants reasoning back that cannot be sent to it: {reason}; {consequence}",
    "binding": "{host} binds reasoning to everything before it, and {change}: {consequence}; "
    "{advice}",
    "earlier_unread": "{model} reads reasoning of the open turn only; that of earlier turns is "
    "sent and not read; leave it out with reasoning.stripFromContext=priorTurns",
    "parameter_unsent": "{keys} is left out: {model} has no parameter for this value",
    "parameter_held": "{model} continues a turn as it began, with reasoning or without; left out "
    "now, and sent from the next user message on: {keys}",
    "reasoning_off": "{model} takes tools in {api} only without reasoning, and this request "
    'switches reasoning off; use api="openai.responses" to reason with tools',
    "needs_responses": '{model} refuses tools in {api}; use api="{other}" to offer tools',
    "reply_last": "{host} refuses a conversation that ends with the model's own message while "
    "the model thinks; append the user's next message{advice}",
    "turn_begun": "the provider takes no reasoning in a turn that began without; "
    f"{OPENING!r} is sent as a user message before it, so that a turn begins there",
    # repairs
    "no_result": f"a tool call has no response; the error {NO_RESULT!r} is sent as its response",
    "response_moved": "a tool response did not follow its call; it is sent right after it",
    "response_orphan": "a tool response belongs to no call; it is left out",
    "response_repeated": "a tool call has more than one response; only the first is sent",
    "call_cut_off": "a tool call ended in the middle of its arguments; it is left out",
    "call_unusable": "a tool call has no name, or is not in a model's message; it is left out",
    "arguments_wrapped": "the provider takes only JSON as a call's arguments; others are wrapped "
    "in JSON",
    "text_added": f"the provider refuses a message without text; {OPENING!r} is sent in its place",
    "system_as_user": "the provider takes system messages at the beginning only; a later one is "
    "sent as a user message",
    "block_left_out": "{api} has no place for these blocks, which are left out: {kinds}",
    "media_left_out": "{model} does not take these media, which are left out: {kinds}",
    "image_refused": "{model} refuses an image, and with it every later request: {fault}; make it "
    "smaller before you append it, or leave it out with session.withhold",
    "tools_left_out": "{model} takes no tools; they are left out",
    "block_foreign": "a raw block is sent only in the api that it came from; it is left out",
    "block_unknown": "a block of a type that this package does not know is left out",
    "draft": "a reply that is still being written is not sent",
    "nothing_to_send": "there are no messages to send; providers reject empty requests",
}
"""The text of each code; names in braces are filled in by ``warning``."""

_MESSAGES: Final[Mapping[Floor, str]] = {
    "none": "no message",
    "open_calls": "messages with tool calls in the open turn",
    "all_calls": "messages with tool calls",
    "open_turn_with_call": "every message of the open turn once a tool was called",
    "all": "every message",
}


def warning(code: WarningCode, **parts: str | None) -> RequestWarning:
    """Return the warning of a code, with its text filled in."""
    return RequestWarning(code=code, text=TEXTS[code].format(**parts))


def first_of_each_code(warnings: Iterable[RequestWarning]) -> tuple[RequestWarning, ...]:
    """Return the first warning of each code, in order."""
    first: dict[WarningCode, RequestWarning] = {}
    for item in warnings:
        first.setdefault(item.code, item)
    return tuple(first.values())


# Of a selection


class SelectedMessage(NamedTuple):
    """A message of a view, with the rules that decided about its thinking blocks."""

    item: ViewedMessage
    position: TurnPosition
    verdicts: Sequence[Verdict]

    @property
    def rules(self) -> list[VerdictRule]:
        return [verdict.rule for verdict in self.verdicts]

    @property
    def message(self) -> Message:
        return self.item.message

    @property
    def sends_reasoning(self) -> bool:
        return not SENT.isdisjoint(self.rules)


def selection_warnings(
    each: Iterable[SelectedMessage],
    settings: SettingValues,
    to: Target,
    inputs_digest: str | None,
) -> tuple[RequestWarning, ...]:
    """Return the warnings of a selection."""
    selected = [*each]
    warnings = [*_host_warnings(selected, settings, to)]
    host, rules = to.provider or to.contract.demanded_by or "the provider", to.contract.returning
    if demanded_messages(to.contract) is not None:
        warnings += _floor_warnings(selected, settings, to, host)
    unmet = any(one.code == "floor_unmet" for one in warnings)
    if settings.include_in_context and not unmet and any(map(_has_lost_ciphertext, selected)):
        kinds = "reasoning that the provider stores, known here by its id alone"
        warnings.append(warning("block_left_out", api=to.contract.api, kinds=kinds))
    if rules.prefix_bound is not None:
        change = _changed_prefix(selected, is_rolling(settings), inputs_digest)
        if change is not None:
            is_left_out = any("bound" in one.rules for one in selected)
            about = {
                "consequence": _BOUND if is_left_out else _OF_CHANGED_PREFIX[rules.prefix_bound],
                "advice": rules.prefix_bound_hint,
            }
            warnings.append(warning("binding", host=host, change=change, **about))
    if not rules.reads_earlier_turns and any(
        one.sends_reasoning and not one.position.in_open_turn for one in selected
    ):
        warnings.append(warning("earlier_unread", model=model_name(to)))
    return tuple(warnings)


_OF_CHANGED_PREFIX: Final[Mapping[PrefixCheck, str]] = {
    "refuse": "the request is refused",
    "drop": "the reasoning after that is dropped without an error",
}


_BOUND: Final = "the reasoning after that is left out"


def _floor_warnings(
    selected: Sequence[SelectedMessage], settings: SettingValues, to: Target, host: str
) -> Iterator[RequestWarning]:
    """Yield a warning where reasoning that the provider demands is not sent to it."""
    rules = to.contract.returning
    if rules.demanded_only_thinking and _is_switched_off(settings, to.contract):
        return
    in_open_turn = any(one.position.in_open_turn and one.sends_reasoning for one in selected)
    consequence = _consequence(to.contract, in_open_turn=in_open_turn)
    if settings.floor == "off":
        if any(_is_demanded_and_missing(one, to) for one in selected):
            messages = demanded_messages(to.contract)
            yield warning("floor_off", host=host, messages=messages, consequence=consequence)
        return
    reason = next(filter(None, (_unmet_because(one, to) for one in selected)), None)
    if reason is not None:
        consequence = _stand_in(to.contract) or consequence
        yield warning("floor_unmet", host=host, reason=reason, consequence=consequence)


def _is_switched_off(settings: SettingValues, contract: Contract) -> bool:
    asked = ReasoningOptions(
        enabled=settings.enabled, effort=settings.effort, budget_tokens=settings.budget_tokens
    )
    return switches_off(asked, contract.reasoning)


def has_stand_in(contract: Contract) -> bool:
    """Whether a request without the demanded reasoning is still taken."""
    return _stand_in(contract) is not None or contract.reasoning.off_when_unmet


def demanded_messages(contract: Contract) -> str | None:
    """Return the messages that must have reasoning, or a stand-in for it, in words."""
    rules = contract.returning
    floor = rules.floor if rules.empty_field_in == "none" else rules.empty_field_in
    return None if floor == "none" else _MESSAGES[floor]


def _stand_in(contract: Contract) -> str | None:
    """Return a sentence about the substitute that is sent for demanded reasoning."""
    if contract.returning.empty_field_in != "none":
        return f"{contract.returning.returns_in} is sent empty in its place"
    if contract.returning.dummy_signature is not None:
        return "a documented placeholder is sent in its place"
    return None


def _consequence(contract: Contract, *, in_open_turn: bool) -> str:
    """Return the consequence if demanded reasoning is missing and has no stand-in."""
    if contract.reasoning.off_when_unmet and not in_open_turn:
        return "no reasoning is asked for in this turn"
    if contract.reasoning.off_when_unmet and contract.reasoning.fixed_in_turn:
        return "the messages after it begin a turn of their own"
    if contract.returning.refusal is not None:
        return f"it answers with {contract.returning.refusal}"
    return "its answers may get worse"


def _is_demanded_and_missing(selected: SelectedMessage, to: Target) -> bool:
    """Whether a message lacks reasoning that the provider demands, with the floor off."""
    contract = to.contract
    demanded = is_demanded(contract.returning.floor, selected.position)
    if contract.returning.call_signature_at is not None:
        return demanded and _has_lost_seal(selected, to)
    is_reply = selected.message.role == "assistant"
    empty = is_reply and is_demanded(contract.returning.empty_field_in, selected.position)
    return not selected.sends_reasoning and (empty or (demanded and bool(selected.rules)))


def _unmet_because(selected: SelectedMessage, to: Target) -> str | None:
    """Return why a message is sent without the reasoning that the provider demands of it."""
    contract = to.contract
    if not is_demanded(contract.returning.floor, selected.position):
        return None
    if contract.returning.call_signature_at is not None:
        is_lost = "withheld" in selected.rules or _has_lost_seal(selected, to)
        return "a tool call has lost its seal" if is_lost else None
    reasons = (one.reason for one in selected.verdicts if one.rule in INADMISSIBLE)
    if (inadmissible := next(reasons, None)) is not None:
        return inadmissible
    is_anothers = contract.reasoning.off_when_unmet and not is_made_at(selected.message.origin, to)
    if selected.message.role == "assistant" and selected.position.has_call and is_anothers:
        return (
            None if selected.sends_reasoning else "another model called a tool, without reasoning"
        )
    return None


def _has_lost_seal(selected: SelectedMessage, to: Target) -> bool:
    """Whether the first call of a reply lacks the seal that the provider puts on it."""
    message = selected.message
    if message.role != "assistant" or not selected.position.has_call:
        return False
    if is_foreign(message.origin, to):
        return True
    metadata = message.tool_calls[0].provider_metadata
    return not value_at(metadata, to.contract.returning.call_signature_at)


def _has_lost_ciphertext(selected: SelectedMessage) -> bool:
    """Whether a reply has reasoning items of Responses that came without their ciphertext."""
    return any(
        verdict.rule == "no_place" and (block.provider_metadata or {}).get("item_id")
        for verdict, block in zip(selected.verdicts, selected.message.thinking, strict=False)
    )


def _changed_prefix(
    selected: Sequence[SelectedMessage], rolling: bool, inputs_digest: str | None
) -> str | None:
    """Return how the messages before reasoning that is sent differ from those it was made after.

    Reasoning of finished turns that is left out now was left out before, too, under the same
    settings, unless the strip is rolling. Of a reply whose chain is known a verdict says it.
    """
    altered: str | None = None
    left_out = left_out_in_turn = False
    for each in selected:
        item, position = each.item, each.position
        message = item.message
        if item.starts_turn:
            left_out_in_turn = False
        if altered is None and item.summary:
            altered = "an earlier message was compacted"
        elif altered is None and message.status == "erased":
            altered = "an earlier message was erased"
        elif altered is None and is_cleared(message):
            altered = "an earlier tool result was cleared"
        for rule in each.rules:
            if rule in LEFT_OUT_BY_SETTING:
                left_out = left_out_in_turn = True
            elif rule == "withheld":
                altered = altered or "a part before it that was refused is left out"
            elif rule == "bound" or (rule in SENT and item.chain is None):
                if altered is not None:
                    return altered
                if left_out_in_turn or (left_out and (rolling or not position.in_open_turn)):
                    return "other reasoning before it is left out"
                if inputs_digest and item.inputs_digest and item.inputs_digest != inputs_digest:
                    return "system or tools have changed since it was made"
                if rule == "bound":
                    return "what was sent before it has changed"
    return None


def _host_warnings(
    selected: Sequence[SelectedMessage], settings: SettingValues, to: Target
) -> Iterator[RequestWarning]:
    """Yield what is not known of a host, and what is taken from the model's name instead."""
    left_out = 0
    if settings.floor == "provider":
        if (maker := to.contract.demanded_by) is not None:
            yield warning("by_model_name", maker=maker, messages=demanded_messages(to.contract))
        elif contract_lookup.find_maker(to.model, to.contracts) is None:
            left_out = sum(rule in _OF_UNKNOWN_HOST for one in selected for rule in one.rules)
    unknown = unknown_provider(to, left_out)
    if unknown is not None:
        yield unknown


_OF_UNKNOWN_HOST: Final = frozenset[VerdictRule]({"no_place", "strip", "include"})
"""The rules that a known host's demands, or its fields, might have overruled."""


def unknown_provider(to: Target, left_out: int = 0) -> RequestWarning | None:
    """Return the warning that no host's rules hold, where that may surprise.

    ``left_out`` is the number of thoughts that are left out and that the host may demand.
    """
    name, maker = to.provider, contract_lookup.find_maker(to.model, to.contracts)
    advice = "; name the provider"
    if name is not None:
        if contract_lookup.find_host(name, None, to.contracts) is not None:
            return None
        provider, near = f"no provider is known as {describe(name)}", _host_like(name, to.contracts)
        advice = "" if near is None else f"; did you mean {near}?"
    elif to.contract.demanded_by is not None:
        return None  # by_model_name says it
    elif maker is not None and to.base_url is None:
        provider = f"no provider is named for {describe(to.model)}"
        advice += f", e.g. provider={maker.id!r}"
    elif left_out and (to.model or to.base_url):
        provider = "nothing is known of the host"
    else:
        return None
    missing = f"; stored thoughts are left out, which it may demand: {left_out}" if left_out else ""
    return warning(
        "unknown_provider", provider=provider, api=to.contract.api, left_out=missing, advice=advice
    )


@lru_cache(maxsize=64)
def _host_like(name: str, contracts: Contracts) -> str | None:
    """Return the host's name that is most like this one; an application asks for the same few."""
    known = contract_lookup.tables_of(contracts).hosts
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)


# Of writing, and of a body


def writing_warnings(written: Written, to: Target) -> Iterator[RequestWarning]:
    """Yield warnings about blocks that the protocol has no place for, and about additions."""
    model = model_name(to)
    without_parameter, until_next_turn = written.options_not_sent
    if without_parameter:
        yield warning("parameter_unsent", keys=_setting_keys(without_parameter), model=model)
    if until_next_turn:
        yield warning("parameter_held", keys=_setting_keys(until_next_turn), model=model)
    if written.left_out:
        kinds = ", ".join(written.left_out)
        yield warning("block_left_out", api=to.contract.api, kinds=kinds)
    if written.has_added_text:
        yield warning("text_added")


def body_warnings(
    body: Mapping[str, Any], messages: Sequence[Any], to: Target, *, is_paused: bool
) -> Iterator[RequestWarning]:
    """Yield the faults that a provider refuses in a body; ``messages`` is its list of messages.

    A message that the provider paused is the last one, and is continued as it is.
    """
    contract = to.contract
    if not to.model and to.protocol.needs_model:
        yield warning("no_model")
    # A provider that takes system messages at the beginning only needs another one after them.
    if not messages or (
        contract.messages.system_first and all(item.get("role") == "system" for item in messages)
    ):
        yield warning("nothing_to_send")
    elif is_paused and _has_server_call(messages[-1]):
        return
    elif (
        contract.messages.user_last_when_thinking
        and messages[-1].get("role") == "assistant"
        and _is_thinking(body, contract)
    ):
        advice = ", or set reasoning.enabled to false" if contract.reasoning.off is not None else ""
        yield warning("reply_last", host=to.provider, advice=advice)


def model_name(to: Target) -> str:
    """Return the name of a target's model, for a sentence."""
    if to.provider and to.model:
        return f"{to.model} of {to.provider}"
    return to.provider or "an unknown host"


def _setting_keys(fields: Sequence[str]) -> str:
    return ", ".join(KEY_OF[field] for field in fields)


def _has_server_call(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(part, Mapping) and part.get("type") == "server_tool_use" for part in content
    )


def _is_thinking(body: Mapping[str, Any], contract: Contract) -> bool:
    """Whether the model thinks, as far as the request decides it."""
    rules = contract.reasoning
    enabled = value_at(body, rules.enabled_at)
    return rules.on_by_default if enabled is None else enabled != rules.off
