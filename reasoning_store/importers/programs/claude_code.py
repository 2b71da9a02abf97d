"""Claude Code's sessions: a file of JSON lines each, ``~/.claude/projects/*/*.jsonl``.

Each line names the line before it, so a file is a tree: a prompt that was taken back stays, and
what came in its place is a branch. A reply of the model is written as one line for each of its
blocks, all with the reply's id, and a tool's answer follows the line of its own call: the lines
of one reply are one message here, and the answers to its calls another. A compaction begins
anew and names what it followed; so does the conversation here, and the summary is a message of
the user, as it was sent.

The messages of a subagent (``isSidechain``) are a conversation of their own, which is archived.

Lines that are no messages (titles, notices, snapshots of files, a queue) are not stored, nor is
``toolUseResult``, which repeats a tool's answer in the program's own form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reasoning_store.formats import Conversation
from reasoning_store.importers import anthropic
from reasoning_store.importers.conversation_builder import ConversationBuilder
from reasoning_store.importers.conversation_readers import add_tree
from reasoning_store.importers.documents import CUT_OFF, Entry, Source, read_log
from reasoning_store.importers.reply_parts import AnsweredBy
from reasoning_store.importers.source_messages import SourceMessage, parse_time, text_field
from reasoning_store.importers.values import first_words

_SESSION_FILE: Final = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.jsonl")
_MARKS: Final = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
"""The marks by which Claude Code notes that the user did not type a message."""
_ABOUT: Final = ("cwd", "gitBranch", "version")
_TITLES: Final = (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary"))
"""The types of lines with a title, and the field. A summary may be another session's."""
_ANSWERS: Final = "answers to "
_SYNTHETIC: Final = "<synthetic>"
_NO_REPLY: Final = "it is a notice of Claude Code and no reply of a model"
_UNFINISHED: Final = "it is not finished; import again when it is"


@dataclass(slots=True)
class _Node:
    """The lines that make one message, and the line that the first of them follows."""

    kind: str
    entries: list[Entry] = field(default_factory=list)

    @property
    def first(self) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.entries[0].value
        return value

    @property
    def id(self) -> str | None:
        """The id of a reply."""
        return text_field(self.first["message"], "id") if self.kind == "assistant" else None

    @property
    def calls(self) -> set[str]:
        return _ids(self.entries, "tool_use", "id")

    @property
    def answered(self) -> set[str]:
        return _ids(self.entries, "tool_result", "tool_use_id")


def read(source: Source, who: AnsweredBy, name: str) -> Iterator[Conversation]:
    """Return the session of a file, then those of its subagents."""
    entries, cut = read_log(source)
    stem = _SESSION_FILE.fullmatch(name)
    ids = (text_field(entry.value, "sessionId") for entry in entries)
    id = stem[1] if stem else next((id for id in ids if id), "")
    for agent, listed in _threads(entries).items():
        if any(_is_message(entry.value) for entry in listed):
            yield _read_thread(id, agent, listed, entries, who, None if agent else cut)


def _threads(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return the lines of the session under an empty name, and of each subagent under its own."""
    threads: dict[str, list[Entry]] = {"": []}
    agents: dict[str | None, str] = {}
    for entry in entries:
        value, agent = entry.value, ""
        if value.get("isSidechain") is True:
            # Older versions do not name the agent: its first line begins a tree.
            uuid = text_field(value, "uuid")
            named = text_field(value, "agentId") or agents.get(text_field(value, "parentUuid"))
            agents[uuid] = agent = named or uuid or "agent"
        threads.setdefault(agent, []).append(entry)
    return threads


def _read_thread(
    id: str,
    agent: str,
    listed: Sequence[Entry],
    every: Sequence[Entry],
    who: AnsweredBy,
    cut: int | None,
) -> Conversation:
    nodes, parents, last = _message_nodes(listed)
    begun: Mapping[str, Any] = next(
        (entry.value for entry in listed if _is_message(entry.value)), {}
    )
    about = {name: begun[name] for name in _ABOUT if isinstance(begun.get(name), str)}
    into = ConversationBuilder(
        f"agent-{agent}.{id}" if agent else id,
        who,
        title=_title(listed, nodes) if agent else _stated_title(every) or _title(listed, nodes),
        created_at=parse_time(begun.get("timestamp")),
        archived=bool(agent),
        metadata={**about, **({"subagentOf": id} if agent else {})},
    )
    answers = {of for node in nodes.values() for of in node.answered}

    def add(node: _Node, into: ConversationBuilder) -> None:
        is_last = node is nodes[last or ""]
        if is_last and not _is_finished(node, answers, nodes, parents[last or ""]):
            into.skip(f"line {node.entries[0].line}", _UNFINISHED)
        else:
            _add_message(node, into)

    keys = add_tree(nodes, parents, into, add)
    if cut is not None:
        into.skip(f"line {cut}", CUT_OFF)
    return into.conversation(current=None if last is None else keys[last])


def _is_message(value: Mapping[str, Any]) -> bool:
    return value.get("type") in ("user", "assistant") and isinstance(value.get("message"), dict)


def _message_nodes(
    listed: Sequence[Entry],
) -> tuple[dict[str, _Node], dict[str, str | None], str | None]:
    """Return the messages by name in their order, what each follows, and the last one written."""
    nodes: dict[str, _Node] = {}
    owner: dict[str, str] = {}
    """The message that each call is of."""
    node_of: dict[str | None, str | None] = {}
    """The message that each line is of, or follows if it is of none."""
    parents: dict[str, str | None] = {}
    previous: str | None = None
    for entry in listed:
        value = entry.value
        uuid = text_field(value, "uuid")
        parent = text_field(value, "parentUuid") or text_field(value, "logicalParentUuid")
        if uuid in node_of and uuid is not None:
            continue  # the same line again
        lost = parent is not None or value.get("isCompactSummary") is True
        follows = node_of.get(parent, previous) if lost else None
        if not _is_message(value):
            if uuid is not None:
                node_of[uuid] = follows
            continue
        name = _node_name(entry, owner, follows, nodes)
        if name not in nodes:
            nodes[name] = _Node(value["type"])
            parents[name] = _after_answers(follows, name, nodes)
        nodes[name].entries.append(entry)
        owner.update(dict.fromkeys(_ids([entry], "tool_use", "id"), name))
        node_of[uuid] = previous = name
    return nodes, parents, previous


def _node_name(
    entry: Entry, owner: Mapping[str, str], follows: str | None, nodes: Mapping[str, _Node]
) -> str:
    """Return the name of the message that a line is of."""
    value = entry.value
    line = f"line {text_field(value, 'uuid') or entry.line}"
    if value["type"] == "assistant":
        id = text_field(value["message"], "id")
        before = (follows or "").removeprefix(_ANSWERS)
        if before in nodes and nodes[before].id == id is not None:
            return before
        # Not every service gives each reply an id of its own.
        return line if id is None or f"reply {id}" in nodes else f"reply {id}"
    answered = sorted(_ids([entry], "tool_result", "tool_use_id"))
    of = next((owner[id] for id in answered if id in owner), None)
    return line if of is None else _ANSWERS + of


def _after_answers(follows: str | None, name: str, nodes: Mapping[str, _Node]) -> str | None:
    """Return what a message follows: after a reply with calls come the answers to them."""
    answers = f"{_ANSWERS}{follows}"
    return answers if answers in nodes and answers != name else follows


def _parts(entries: Sequence[Entry], kind: str) -> Iterator[Mapping[str, Any]]:
    for entry in entries:
        content = entry.value["message"].get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == kind:
                yield part


def _ids(entries: Sequence[Entry], kind: str, name: str) -> set[str]:
    return {id for part in _parts(entries, kind) if (id := text_field(part, name))}


def _is_finished(
    node: _Node, answers: set[str], nodes: Mapping[str, _Node], parent: str | None
) -> bool:
    """Whether the last message of a file is whole: its session may be at work."""
    if node.answered and parent is not None:
        return nodes[parent].calls <= answers
    if node.kind == "user" or node.calls:
        return node.calls <= answers
    stop = node.entries[-1].value["message"].get("stop_reason")
    thoughts = ("thinking", "redacted_thinking")
    content = node.entries[-1].value["message"].get("content")
    thinks = isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") in thoughts for part in content
    )
    return stop != "tool_use" and not thinks


def _stated_title(entries: Sequence[Entry]) -> str | None:
    """Return the title that the user or a model gave, the latest of its kind."""
    uuids = {text_field(entry.value, "uuid") for entry in entries}
    for kind, name in _TITLES:
        for entry in reversed(entries):
            title = text_field(entry.value, name)
            is_about = kind != "summary" or text_field(entry.value, "leafUuid") in uuids
            if entry.value.get("type") == kind and is_about and title:
                return title
    return None


def _title(listed: Sequence[Entry], nodes: Mapping[str, _Node]) -> str | None:
    """Return the beginning of the first message that the user typed."""
    for node in nodes.values():
        content = node.first["message"].get("content")
        texts = [content] if isinstance(content, str) else []
        texts += [str(part.get("text") or "") for part in _parts(node.entries, "text")]
        typed = node.kind == "user" and not any(node.first.get(mark) for mark in _MARKS)
        if typed and texts and not texts[0].startswith("<"):
            return first_words(texts[0])
    return None


def _add_message(node: _Node, into: ConversationBuilder) -> None:
    line, value = node.entries[0].line, node.first
    message = dict(node.entries[-1].value["message"])
    if value.get("isApiErrorMessage") or message.get("model") == _SYNTHETIC:
        into.skip(f"line {line}", _NO_REPLY)
        return
    if len(node.entries) > 1 or isinstance(message.get("content"), list):
        contents = [entry.value["message"].get("content") for entry in node.entries]
        message["content"] = [
            part
            for content in contents
            for part in (content if isinstance(content, list) else [content])
        ]
    placed = SourceMessage(
        place=f"line {line}",
        line=line,
        id=text_field(value, "uuid"),
        value={
            **message,
            "role": node.kind,
            "timestamp": value.get("timestamp"),
            **{mark: True for mark in _MARKS if value.get(mark) is True},
        },
    )
    source = [node.kind, value.get("uuid"), message.get("content")]
    if node.kind == "assistant":
        # Others answer Claude Code, too, and their names do not say who.
        claude = "claude" in str(message.get("model"))
        into.provider = "anthropic" if claude else None
    into.add_request([placed], anthropic.API, source=source)
