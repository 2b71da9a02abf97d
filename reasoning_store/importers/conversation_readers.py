"""From the values of a source to its conversations: messages in a list, or a tree of them.

A conversation without an id of its own is known by the name of its file, by its number among
those without an id, and by its first message: so the same file gives the same ids again,
also when it has grown, and two files of one name get different ids.

Of a tree the first line follows the oldest answer at each message; every other answer begins a
branch. So a tree that has grown has the same first line, and more branches.

Knows ids and parents; it must not know the content of a message.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

from reasoning_store.formats import Conversation
from reasoning_store.importers.conversation_builder import (
    ConversationBuilder,
    ForkPoint,
    digest_values,
)
from reasoning_store.importers.documents import Entry, Source, read_entries
from reasoning_store.importers.reply_parts import AnsweredBy
from reasoning_store.importers.source_messages import (
    SourceConversation,
    group_messages,
    stated_time,
    states_time,
    text_field,
)

T = TypeVar("T")


def read_conversations(
    format: str,
    read: Callable[[SourceConversation, ConversationBuilder], None],
    source: Source,
    who: AnsweredBy,
    name: str,
    *,
    unpack: Callable[[Entry], Iterable[Entry]] = lambda entry: (entry,),
) -> Iterator[Conversation]:
    """Return the conversations of a source, each read with ``read``.

    ``unpack`` returns the values of an entry that holds more than one conversation.
    """
    unnamed = 0
    left: dict[str, tuple[int, str, datetime | None]] = {}
    """The end of each conversation that a later part of the file may continue."""
    entries = chain.from_iterable(map(unpack, read_entries(source)))
    for one in group_messages(entries):
        begun = one.messages[0].value if one.messages else {}
        first, key, at = 1, "", stated_time(one.about) or stated_time(begun)
        if one.id is None:
            unnamed += 1
            id = f"{format}-{digest_values(name, unnamed, begun)}"
        else:
            id = one.id
            if not one.about:
                first, key, at = left.get(id, (first, key, at))
        into = ConversationBuilder(
            id,
            who,
            title=one.title,
            created_at=at,
            model=text_field(one.about, "model"),
            first=first,
            key=key,
        )
        if stated_time(one.about) is None and states_time(one.about):
            into.note_unread_time(f"line {one.line}")
        read(one, into)
        if one.id is not None and not one.about:
            left[id] = into.next, into.key, into.at
        yield into.conversation()


def in_order(
    parents: Mapping[str, str | None], children: Mapping[str, Sequence[Any]]
) -> dict[str, str | None]:
    """Return the parents of nodes, each after its own, in the order of the lists of children."""
    named = defaultdict(list)
    for node, parent in parents.items():
        named[parent if parent in parents else None].append(node)
    ordered: dict[str, str | None] = {}
    for start in (*named[None], *parents):
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in ordered:
                ordered[node] = parents[node]
                listed = [one for one in children.get(node, ()) if one in named[node]]
                rest = [one for one in named[node] if one not in listed]
                waiting += reversed([*listed, *rest])
    return ordered


def add_tree(
    messages: Mapping[str, T],
    parents: Mapping[str, str | None],
    into: ConversationBuilder,
    add: Callable[[T, ConversationBuilder], None],
) -> dict[str, str]:
    """Add the message of each node, branch by branch; return the key after each node.

    ``parents`` is in the order in which the nodes were written. A node whose parent is missing
    begins a branch; a circle of nodes is cut.
    """
    children: dict[str | None, list[str]] = defaultdict(list)
    for node, parent in parents.items():
        children[parent if parent in parents else None].append(node)
    points: dict[str | None, ForkPoint] = {None: into.fork_point}
    keys: dict[str, str] = {}
    waiting: deque[tuple[str | None, str]] = deque((None, node) for node in children[None])
    while len(keys) < len(parents):
        if not waiting:
            waiting.append((None, next(node for node in parents if node not in keys)))
        after, begun = waiting.popleft()
        if keys:
            into.start_branch(points[after])
        following: str | None = begun
        while following is not None and following not in keys:
            add(messages[following], into)
            keys[following] = into.key
            answers = children[following]
            if len(answers) > 1:
                points[following] = into.fork_point
                waiting.extend((following, other) for other in answers[1:])
            following = answers[0] if answers else None
    return keys
