"""The two layouts of llm's database: threads of messages, and responses in a row.

Theory. A thread points at its last message, and the messages that lead to it are the
conversation, exactly as it was sent; the turns say which of them one model call added, when,
by which model and at what cost. Before 0.32 there were no such messages: a response row has
its prompt and its answer, and the rows of one conversation follow one another.

Knows rows; must not know SQL or what becomes of a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from reasoning_store.importers.found import time_of
from reasoning_store.importers.gathering import Gathering
from reasoning_store.importers.llm_file import LogFile, Row, refuse, value_of
from reasoning_store.importers.llm_messages import heard, placed_at, reply
from reasoning_store.importers.llm_parts import Part
from reasoning_store.importers.reading import Reading, Who
from reasoning_store.importers.values import Conversation

_OF_ATTACHMENT: Final = ("id", "type", "url", "path")

# From 0.32


def thread(file: LogFile, row: Row, tip: str, who: Who) -> Conversation:
    """Return the conversation that leads to the last message of a thread."""
    turns = file.turns(row["id"])
    chain = file.chain(tip)
    made_by = _turns_of(chain, turns)
    into = _begin(row, turns)
    under_way = Reading(into=into, who=who)
    said: set[str] = set()
    for place, message in enumerate(chain):
        name = f"message {into.next} of {into.id}"
        parts = [_part(file, part, name) for part in file.parts(message["hash"])]
        about = value_of(message["provider_metadata"], name)
        turn = made_by.get(place)
        placed = placed_at(name, turn)
        if message["role"] == "assistant":
            is_last = place + 1 == len(chain) or made_by.get(place + 1) is not turn
            reply(parts, turn, placed, under_way, counted=is_last, about=about)
            said.add(_text(parts))
        else:
            heard(message["role"], parts, placed, under_way, about=about)
    line = {message["hash"] for message in chain}
    for turn in turns:
        if turn["tip_message_hash"] not in line:
            into.skip(f"turn {turn['id']}", "it is not on the line that its thread is on now")
    for old in _old(file, row["id"]):
        if (old["response"] or "") not in said:
            into.skip(f"response {old['id']}", "the thread of its conversation goes on without it")
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


def _part(file: LogFile, row: Row, place: str) -> Part:
    """Return a part as llm's JSON has it, with what is kept elsewhere put in."""
    payload = value_of(row["payload"], place) or {}
    if not isinstance(payload, dict):
        refuse(place, "a part is not an object")
    part: Part = {**payload, "type": row["type"]}
    if row["text"] is not None:
        part["text"] = row["text"]
    if (pieces := part.pop("text_ref", None)) is not None:
        part["text"] = "".join(_piece(file, piece, place) for piece in _listed(pieces, place))
    if not isinstance(part.get("text") or "", str):
        refuse(place, "the text of a part is none")
    if (about := part.get("attachment")) is not None:
        part["attachment"] = _attachment(file, about, place)
    if (attached := part.get("attachments")) is not None:
        part["attachments"] = [_attachment(file, item, place) for item in _listed(attached, place)]
    return part


def _listed(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(place, "what a part refers to is not a list")
    return value


def _piece(file: LogFile, piece: Any, place: str) -> str:
    """Return a piece of a text: itself, or the fragment that it names."""
    if isinstance(piece, dict):
        if isinstance(literal := piece.get("literal"), str):
            return literal
        if isinstance(number := piece.get("fragment"), int | str):
            return file.fragment(number)
    refuse(place, "a piece of a text is neither a literal nor a fragment")


def _attachment(file: LogFile, about: Any, place: str) -> Row:
    """Return the row of an attachment, or what stands in its place."""
    if not isinstance(about, dict):
        refuse(place, "an attachment is not an object")
    if any(not isinstance(about.get(name) or "", str) for name in _OF_ATTACHMENT):
        refuse(place, "what names an attachment is not a text")
    return file.attachment(about.get("id")) or {name: about.get(name) for name in _OF_ATTACHMENT}


# To 0.31


def responses(file: LogFile, row: Row, who: Who) -> Conversation:
    """Return the conversation that responses make, one after the other."""
    rows = _old(file, row["id"])
    into = _begin(row, rows)
    under_way = Reading(into=into, who=who)
    system = ""
    for response in rows:
        placed = placed_at(f"response {response['id']}", response)
        id = response["id"]
        told = "\n\n".join(
            text.strip()
            for text in [*_texts(file, "system_fragments", id), response.get("system") or ""]
            if text.strip()
        )
        if told and told != system:
            system = told
            heard("system", [{"type": "text", "text": told}], placed, under_way)
        answers = [_answer(file, answer) for answer in file.owned("tool_results", id)]
        if answers:
            heard("tool", answers, placed, under_way)
        asked = "\n".join(
            text for text in [*_texts(file, "prompt_fragments", id), response["prompt"]] if text
        )
        media = file.in_order("prompt_attachments", id)
        prompt: list[Part] = [{"type": "text", "text": asked}] if asked else []
        prompt += [{"type": "attachment", "attachment": medium} for medium in media]
        if prompt:
            heard("user", prompt, placed, under_way)
        reply(_said(file, response), response, placed, under_way)
    return into.conversation()


def _old(file: LogFile, conversation: str) -> list[Row]:
    """Return the responses that are in no turn."""
    return [row for row in file.owned("responses", conversation) if not file.is_turn(row["id"])]


def _texts(file: LogFile, table: str, response: str) -> list[str]:
    return [row["text"] or "" for row in file.in_order(table, response)]


def _answer(file: LogFile, row: Row) -> Part:
    attached = file.in_order("tool_results_attachments", row["id"])
    return {
        "type": "tool_result",
        "name": row["name"],
        "output": row["output"],
        "tool_call_id": row["tool_call_id"],
        "exception": row.get("exception"),
        "attachments": attached,
    }


def _said(file: LogFile, response: Row) -> list[Part]:
    """Return what a model said, in the order in which it must have said it (EC-006)."""
    parts: list[Part] = [
        {"type": kind, "text": response[column]}
        for kind, column in (("reasoning", "reasoning"), ("text", "response"))
        if response.get(column)
    ]
    return parts + [
        {
            "type": "tool_call",
            "name": call["name"],
            "arguments": value_of(call["arguments"], f"response {response['id']}"),
            "tool_call_id": call["tool_call_id"],
        }
        for call in file.owned("tool_calls", response["id"])
    ]


# Both


def _begin(row: Row, calls: Sequence[Row]) -> Gathering:
    began = time_of(calls[0]["datetime_utc"]) if calls else None
    return Gathering(row["id"], title=row["name"], created_at=began)


def _text(parts: Sequence[Part]) -> str:
    return "".join(part.get("text") or "" for part in parts if part["type"] == "text")
