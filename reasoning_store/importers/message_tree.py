"""A tree of messages, read as lines: the first one, and each branch.

At each message the first line follows the oldest answer; every other answer begins a branch. So
a tree that has grown has the same first line, and more branches.

Knows ids and parents; must not know messages.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasoning_store.importers.history_reader import HistoryReader, ReaderForkPoint


@dataclass(frozen=True, slots=True)
class TreeLine:
    """Nodes that follow each other, and the node that they follow, if there is one."""

    after: str | None
    nodes: list[str]


def tree_lines(parents: Mapping[str, str | None]) -> Iterator[TreeLine]:
    """Yield the lines of a tree, each after the line that it starts from.

    ``parents`` is in the order in which the nodes were written. A node whose parent is missing
    begins a line; a circle of nodes is cut.
    """
    children: dict[str | None, list[str]] = defaultdict(list)
    for node, parent in parents.items():
        children[parent if parent in parents else None].append(node)
    seen: set[str] = set()
    waiting: deque[tuple[str | None, str]] = deque((None, node) for node in children[None])
    for start in (*([None] if waiting else []), *parents):
        if start is not None and start not in seen:
            waiting.append((None, start))
        while waiting:
            after, node = waiting.popleft()
            line = TreeLine(after, [])
            following: str | None = node
            while following is not None and following not in seen:
                seen.add(following)
                line.nodes.append(following)
                found = children[following]
                waiting.extend((following, other) for other in found[1:])
                following = found[0] if found else None
            if line.nodes:
                yield line


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
    parents: Mapping[str, str | None], reader: HistoryReader, add: Callable[[str], None]
) -> dict[str, str]:
    """Add the message of each node, branch by branch; return the key after each node."""
    start = reader.fork_point
    lines = list(tree_lines(parents))
    forked = {line.after for line in lines}
    points: dict[str, ReaderForkPoint] = {}
    keys: dict[str, str] = {}
    for number, line in enumerate(lines):
        if number:
            reader.start_branch(start if line.after is None else points[line.after])
        for node in line.nodes:
            add(node)
            keys[node] = reader.into.key
            if node in forked:
                points[node] = reader.fork_point
    return keys
