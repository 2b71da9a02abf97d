"""llm's logs: each conversation of its database, with the reasoning that it keeps.

A thread (from 0.32) points at its last message, and the messages that lead to it are the
conversation as it was sent; turns name the model call that added a message, its time and cost.
Before 0.32 a response row has its prompt and its answer. A conversation with both is read from
its thread, which repeats the earlier responses.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from reasoning_store import Block, InvalidCall, Message, TextBlock, WireError
from reasoning_store.formats import read_reply, tool_response
from reasoning_store.importers import llm_parts
from reasoning_store.importers.conversation_builder import UNKNOWN_ROLE, ConversationBuilder
from reasoning_store.importers.documents import Source
from reasoning_store.importers.llm_file import (
    LogFile,
    Row,
    check_types,
    open_log_file,
    parse_column,
    refuse,
)
from reasoning_store.importers.reply_forms import read_reply_parts
from reasoning_store.importers.reply_parts import AnsweredBy, Part, is_thought
from reasoning_store.importers.source_messages import SourceMessage, parse_time
from reasoning_store.importers.values import TAG_SOURCE, Conversation


def check(path: str | os.PathLike[str]) -> None:
    """Refuse a file that is no logs database."""
    with open_log_file(path):
        pass


def read(source: Source, who: AnsweredBy, name: str) -> Iterator[Conversation]:
    """Return the conversations of a logs database, the oldest first; each has an id there."""
    if not isinstance(source, str | os.PathLike):
        raise InvalidCall("a logs database is read from its file", hint="give its path")
    with open_log_file(source) as file:
        for row in file.conversations():
            tip = file.tip(row["id"])
            if tip is None:
                yield read_responses(file, row, who)
            else:
                yield read_thread(file, row, tip, who)


# Conversations


_OF_ATTACHMENT: Final = ("id", "type", "url", "path")

# From 0.32


def read_thread(file: LogFile, row: Row, tip: str, who: AnsweredBy) -> Conversation:
    """Return the conversation that leads to the last message of a thread."""
    turns = file.turns(row["id"])
    chain = file.chain(tip)
    made_by = _turns_of(chain, turns)
    into = _start_conversation(row, turns, who)
    said: set[str] = set()
    for place, message in enumerate(chain):
        name = f"message {into.next} of {into.id}"
        parts = [_resolve_part(file, part, name) for part in file.parts(message["hash"])]
        about = parse_column(message["provider_metadata"], name)
        turn = made_by.get(place)
        placed = place_message(name, turn)
        if message["role"] == "assistant":
            is_last = place + 1 == len(chain) or made_by.get(place + 1) is not turn
            add_reply(parts, turn, placed, into, counted=is_last, about=about)
            said.add("".join(part.get("text") or "" for part in parts if part["type"] == "text"))
        else:
            add_plain(message["role"], parts, placed, into, about=about)
    line = {message["hash"] for message in chain}
    for turn in turns:
        if turn["tip_message_hash"] not in line:
            into.skip(f"turn {turn['id']}", "it is not on the line that its thread is on now")
    for old in _responses_without_turn(file, row["id"]):
        if (old["response"] or "") not in said:
            into.skip(f"response {old['id']}", "the thread of its conversation does not contain it")
    return into.conversation()


def _turns_of(chain: Sequence[Row], turns: Sequence[Row]) -> dict[int, Row]:
    """Return which turn each message belongs to: what it added, and what it was asked."""
    at = {message["hash"]: place for place, message in enumerate(chain)}
    found: dict[int, Row] = {}
    for turn in turns:
        parent, tip = turn["parent_message_hash"], turn["tip_message_hash"]
        if tip not in at or not (parent is None or parent in at):
            continue
        first = 0 if parent is None else at[parent] + 1
        found.update(dict.fromkeys(range(first, at[tip] + 1), turn))
        while first and chain[first - 1]["role"] != "assistant" and first - 1 not in found:
            first -= 1
            found[first] = turn
    return found


def _resolve_part(file: LogFile, row: Row, place: str) -> Part:
    """Return a part as llm's JSON has it, with what is kept elsewhere put in."""
    payload = parse_column(row["payload"], place) or {}
    try:
        part: Part = {**payload, "type": row["type"]}
        if row["text"] is not None:
            part["text"] = row["text"]
        if (pieces := part.pop("text_ref", None)) is not None:
            part["text"] = "".join(_fragment_text(file, piece) for piece in pieces)
        if (about := part.get("attachment")) is not None:
            part["attachment"] = _attachment(file, about, place)
        if (attached := part.get("attachments")) is not None:
            part["attachments"] = [_attachment(file, item, place) for item in attached]
    except (TypeError, KeyError, AttributeError):
        refuse(place, "a part has a field of another type")
    return check_types(part, place)


def _fragment_text(file: LogFile, piece: Mapping[str, Any]) -> str:
    """Return a piece of a text: itself, or the fragment that it names."""
    literal = piece.get("literal")
    return literal if isinstance(literal, str) else file.fragment(piece["fragment"])


def _attachment(file: LogFile, about: Mapping[str, Any], place: str) -> Row:
    """Return the row of an attachment, or its substitute."""
    named = Row({name: about.get(name) for name in _OF_ATTACHMENT})
    return file.attachment(check_types(named, place)["id"]) or named


# To 0.31


def read_responses(file: LogFile, row: Row, who: AnsweredBy) -> Conversation:
    """Return the conversation that responses make, one after the other."""
    rows = _responses_without_turn(file, row["id"])
    into = _start_conversation(row, rows, who)
    system = ""
    for response in rows:
        placed = place_message(f"response {response['id']}", response)
        id = response["id"]
        prompt_text = "\n\n".join(
            text.strip()
            for text in [*_texts_of(file, "system_fragments", id), response.get("system") or ""]
            if text.strip()
        )
        if prompt_text and prompt_text != system:
            system = prompt_text
            add_plain("system", [{"type": "text", "text": prompt_text}], placed, into)
        answers = [_tool_result(file, answer) for answer in file.owned("tool_results", id)]
        if answers:
            add_plain("tool", answers, placed, into)
        asked = "\n".join(
            text for text in [*_texts_of(file, "prompt_fragments", id), response["prompt"]] if text
        )
        media = file.in_order("prompt_attachments", id)
        prompt: list[Part] = [{"type": "text", "text": asked}] if asked else []
        prompt += [{"type": "attachment", "attachment": medium} for medium in media]
        if prompt:
            add_plain("user", prompt, placed, into)
        add_reply(_reply_parts(file, response), response, placed, into)
    return into.conversation()


def _responses_without_turn(file: LogFile, conversation: str) -> list[Row]:
    """Return the responses that are in no turn."""
    return [row for row in file.owned("responses", conversation) if not file.is_turn(row["id"])]


def _texts_of(file: LogFile, table: str, response: str) -> list[str]:
    return [row["text"] or "" for row in file.in_order(table, response)]


def _tool_result(file: LogFile, row: Row) -> Part:
    attached = file.in_order("tool_results_attachments", row["id"])
    return {
        "type": "tool_result",
        "name": row["name"],
        "output": row["output"],
        "tool_call_id": row["tool_call_id"],
        "exception": row.get("exception"),
        "attachments": attached,
    }


def _reply_parts(file: LogFile, response: Row) -> list[Part]:
    """Return a model's parts, in the order in which it must have sent them (EC-006)."""
    parts: list[Part] = [
        {"type": kind, "text": response[column]}
        for kind, column in (("reasoning", "reasoning"), ("text", "response"))
        if response.get(column)
    ]
    return parts + [
        {
            "type": "tool_call",
            "name": call["name"],
            "arguments": parse_column(call["arguments"], f"response {response['id']}"),
            "tool_call_id": call["tool_call_id"],
        }
        for call in file.owned("tool_calls", response["id"])
    ]


# Both


def _start_conversation(row: Row, calls: Sequence[Row], who: AnsweredBy) -> ConversationBuilder:
    began = parse_time(calls[0]["datetime_utc"]) if calls else None
    return ConversationBuilder(row["id"], who, title=row["name"], created_at=began)


# Messages


_WHOLE: Final[Mapping[str, str]] = {
    "choices": "openai.chat",
    "output": "openai.responses",
    "content": "anthropic.messages",
    "candidates": "gemini.generate_content",
}
"""The list that a whole response of a protocol has."""
_KEYED: Final = frozenset({"text", "tool_call", "tool_result"})
_SAID: Final = ("type", "text", "name", "arguments", "output")


def place_message(place: str, call: Row | None) -> SourceMessage:
    """Return how an error names a message, with the time of the call it belongs to."""
    at: datetime | None = None if call is None else parse_time(call["datetime_utc"])
    return SourceMessage(
        place=place, line=0, value={} if at is None else {"created_at": at.isoformat()}
    )


def _key_source(role: str, parts: Sequence[Part]) -> Any:
    """Return what a message's key is made of."""
    return [role, *([part.get(name) for name in _SAID] for part in parts if part["type"] in _KEYED)]


def _unread_of(parts: Sequence[Part], about: Any) -> dict[str, Any]:
    kept = llm_parts.unread_parts(parts)
    return {**kept, "provider_metadata": about} if about else kept


def add_plain(
    role: Any,
    parts: Sequence[Part],
    placed: SourceMessage,
    into: ConversationBuilder,
    *,
    about: Any = None,
) -> None:
    """Add a message that no model gave, unchanged."""
    if role not in ("user", "tool", "system"):
        into.skip(placed.place, UNKNOWN_ROLE)
        return
    made: list[Block] = []
    for part in parts:
        if part["type"] == "tool_result":
            output = part.get("output")
            made.append(
                tool_response(
                    part.get("tool_call_id"),
                    output,
                    name=part.get("name"),
                    is_error=bool(part.get("exception")),
                )
            )
            made += map(llm_parts.media_block, part.get("attachments") or ())
        elif part["type"] == "attachment":
            made.append(llm_parts.media_block(part.get("attachment") or {}))
        elif part.get("text"):
            made.append(TextBlock(text=part["text"]))
    message = Message(role=role, blocks=tuple(made))
    source, unread = _key_source(role, parts), _unread_of(parts, about)
    into.add(message, placed, source=source, unread=unread)


def add_reply(
    parts: Sequence[Part],
    call: Row | None,
    placed: SourceMessage,
    into: ConversationBuilder,
    *,
    counted: bool = True,
    about: Any = None,
) -> None:
    """Add a model's reply; with ``counted`` the call's usage is this message's."""
    call = call or Row()
    model = call.get("resolved_model") or call.get("model")
    message = read_reply_parts(parts, into.who, model=model)
    thoughts = sum(map(is_thought, parts))
    whole = _provider_response(call, message, into.who, model) if "response" in call else None
    if whole is not None:
        message = whole
        thoughts = sum(block.source_field != TAG_SOURCE for block in whole.thinking)
    media = [part.get("attachment") or {} for part in parts if part["type"] == "attachment"]
    message = replace(message, blocks=(*message.blocks, *map(llm_parts.media_block, media)))
    if counted:
        details = parse_column(call.get("token_details"), placed.place)
        message = replace(message, usage=llm_parts.read_usage(call, details))
    into.add(
        message,
        placed,
        texts=[part["text"] for part in parts if part["type"] == "text" and part.get("text")],
        thoughts=thoughts,
        source=_key_source("assistant", parts),
        unread=_unread_of(parts, about),
    )


def _provider_response(
    call: Row, message: Message, who: AnsweredBy, model: str | None
) -> Message | None:
    """Return the provider's own response, if it has the same text and more thinking."""
    try:
        body = parse_column(call.get("response_json"), "")
    except InvalidCall:
        return None  # the columns hold the same text
    named = [
        api
        for name, api in _WHOLE.items()
        if isinstance(body, dict) and isinstance(body.get(name), list)
    ]
    if not named:
        return None
    try:
        whole = read_reply(body, api=named[0], **who.ingress_options(model=model))
    except WireError:
        return None
    thinks_more = len(whole.thinking) > len(message.thinking) or any(
        block.opaque for block in whole.thinking
    )
    agrees = whole.text == message.text and _call_names(whole) == _call_names(message)
    return whole if agrees and thinks_more else None


def _call_names(message: Message) -> list[str]:
    return [call.name for call in message.tool_calls]
