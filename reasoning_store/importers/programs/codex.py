"""Codex's sessions: ``~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl``, a file of JSON lines each.

Most lines carry a ``payload``: an item of the Responses protocol (``response_item``), the model of
a turn (``turn_context``), or an event. Older files have the items themselves as lines. Turns that
the user took back (``thread_rolled_back``) stay, and what came in their place is a branch.

Not stored are the events that repeat items, the instructions of the program (they are a request's)
and the list of messages that a compaction left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reasoning_store.formats import Conversation, split_messages
from reasoning_store.importers.conversation_builder import (
    ConversationBuilder,
    ForkPoint,
    digest_values,
)
from reasoning_store.importers.documents import CUT_OFF, Entry, Source, read_log
from reasoning_store.importers.reply_parts import AnsweredBy
from reasoning_store.importers.source_messages import SourceMessage, parse_time, text_field
from reasoning_store.importers.values import first_words

_FILE: Final = re.compile(
    r"rollout-.*?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.jsonl"
)
_API: Final = "openai.responses"
_OPENAI: Final = re.compile(r"gpt|o\d|codex|chatgpt")
_BY_PROGRAM: Final = re.compile(
    r"\s*(<(environment_context|user_instructions|user_shell_command|turn_aborted|skill"
    r"|subagent_notification)>|# AGENTS\.md)"
)
"""How a user's message begins that Codex wrote."""
_NO_ITEMS: Final = frozenset({"ghost_snapshot", "other"})
_UNFINISHED: Final = "it is not finished; import again when it is"


def read(source: Source, who: AnsweredBy, name: str) -> Iterator[Conversation]:
    """Return the session of a file."""
    entries, cut = read_log(source)
    if any(_item(entry) is not None for entry in entries):
        yield _Session(entries, name, who).read(cut)


def _payload(entry: Entry, kind: str) -> Mapping[str, Any]:
    """Return the payload of a line of a kind; of another it is empty."""
    payload = entry.value.get("payload")
    return payload if entry.value.get("type") == kind and isinstance(payload, dict) else {}


def _event(entry: Entry, kind: str) -> Mapping[str, Any]:
    event = _payload(entry, "event_msg")
    return event if event.get("type") == kind else {}


def _item(entry: Entry) -> SourceMessage | None:
    """Return the item that a line holds."""
    value = _payload(entry, "response_item")
    if not value and "payload" not in entry.value:
        is_head = "record_type" in entry.value or "type" not in entry.value
        value = {} if is_head else entry.value
    if not value or text_field(value, "type") in _NO_ITEMS:
        return None
    time = entry.value.get("timestamp")
    stated = {} if time is None else {"timestamp": time}
    return SourceMessage(place=f"line {entry.line}", line=entry.line, value={**value, **stated})


class _Session:
    """One session under way."""

    def __init__(self, entries: Sequence[Entry], name: str, who: AnsweredBy) -> None:
        self._entries = entries
        head = next((meta for entry in entries if (meta := _payload(entry, "session_meta"))), None)
        if head is None:
            head = entries[0].value if "type" not in entries[0].value else {}
        named = _FILE.fullmatch(name)
        id = text_field(head, "id") or (named[1] if named else None)
        git = head.get("git")
        git = git if isinstance(git, dict) else {}
        about = {
            "cwd": text_field(head, "cwd"),
            "gitBranch": text_field(git, "branch"),
            "version": text_field(head, "cli_version"),
            **_subagent(head.get("source")),
        }
        self._into = ConversationBuilder(
            id or f"codex-{digest_values(name, entries[0].value)}",
            who,
            title=_title(entries),
            created_at=parse_time(head.get("timestamp")),
            archived="subagentOf" in about,
            metadata={key: value for key, value in about.items() if value is not None},
        )
        self._provider = text_field(head, "model_provider")
        self._set_model(None)
        self._run: list[SourceMessage] = []
        """Items of the reply that is being read."""
        self._usage: Mapping[str, Any] | None = None
        self._reported: Mapping[str, Any] | None = None
        """The usage that was given to a reply last: it is repeated."""
        self._turns: list[ForkPoint] = []
        """The beginning of each turn on this branch."""

    def read(self, cut: int | None) -> Conversation:
        for entry in self._entries:
            if (item := _item(entry)) is not None:
                self._add(item)
            elif turn := _payload(entry, "turn_context"):
                self._end_reply()
                self._set_model(text_field(turn, "model"))
            elif counted := _event(entry, "token_count"):
                self._note_usage(counted)
            elif rolled_back := _event(entry, "thread_rolled_back"):
                self._roll_back(rolled_back.get("num_turns"))
        if _is_finished([item.value for item in self._run]):
            self._end_reply()
        else:
            self._into.skip(self._run[0].place, _UNFINISHED)
        if cut is not None:
            self._into.skip(f"line {cut}", CUT_OFF)
        return self._into.conversation(current=self._into.key or None)

    def _set_model(self, model: str | None) -> None:
        self._into.model = model
        is_openai = self._provider == "openai" or (
            self._provider is None and model is not None and _OPENAI.match(model)
        )
        self._into.provider = "openai" if is_openai else None

    def _add(self, item: SourceMessage) -> None:
        if _is_reply(item.value):
            self._run.append(item)
            return
        self._end_reply()
        if _is_typed(item.value):
            self._turns.append(self._into.fork_point)
        self._into.add_request([item], _API)

    def _end_reply(self) -> None:
        if self._run:
            self._into.add_request(self._run, _API, usage=self._usage)
            self._run, self._reported, self._usage = [], self._usage, None

    def _note_usage(self, counted: Mapping[str, Any]) -> None:
        info = counted.get("info")
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if isinstance(last, dict):
            usage = {
                "input_tokens": last.get("input_tokens"),
                "input_tokens_details": {"cached_tokens": last.get("cached_input_tokens")},
                "output_tokens": last.get("output_tokens"),
                "output_tokens_details": {"reasoning_tokens": last.get("reasoning_output_tokens")},
            }
            self._usage = None if usage == self._reported else usage

    def _roll_back(self, turns: Any) -> None:
        self._end_reply()
        if type(turns) is int and turns > 0 and self._turns:
            turns = min(turns, len(self._turns))
            self._into.start_branch(self._turns[-turns])
            del self._turns[-turns:]


def _is_reply(value: Mapping[str, Any]) -> bool:
    """Whether an item is one of the model's."""
    return any(one.role == "assistant" for one in split_messages([value], api=_API))


def _subagent(source: Any) -> dict[str, str | None]:
    """Return the session that started this one, where another did."""
    about = source.get("subagent") if isinstance(source, dict) else None
    if about is None:
        return {}
    spawn = about.get("thread_spawn") if isinstance(about, dict) else None
    parent = text_field(spawn, "parent_thread_id") if isinstance(spawn, dict) else None
    return {"subagentOf": parent or ""}


def _is_typed(value: Mapping[str, Any]) -> bool:
    """Whether an item is a prompt that the user typed."""
    if value.get("type", "message") != "message" or value.get("role") != "user":
        return False
    return not _BY_PROGRAM.match(_text(value))


def _text(value: Mapping[str, Any]) -> str:
    content = value.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (text_field(part, "text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if text)


def _title(entries: Sequence[Entry]) -> str | None:
    """Return the beginning of the first prompt that the user typed."""
    items = (item.value for entry in entries if (item := _item(entry)) is not None)
    return next((first_words(_text(item)) for item in items if _is_typed(item)), None)


def _is_finished(run: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the reply at the end of a file is whole: its session may be at work."""
    if not run:
        return True
    return any(item.get("type") == "message" for item in run) and not any(
        text_field(item, "call_id") for item in run
    )
