"""A unified diff of two long texts, in linear time.

``difflib`` takes a minute for the requests of a long conversation. Here both texts are read
together, and after a difference the nearest line is searched at which they are equal again: the
diff is correct, and mostly the shortest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_CONTEXT = 3
_FAR = 200
"""How many lines away a meeting place is searched for."""
_AGAIN = 2
"""How many lines have to be the same for it to be one: a lone bracket is everywhere."""

Edit = tuple[int, int, int, int]
"""Lines of one text, from and up to, and the lines of the other that replace them."""


def unified_diff(old: Sequence[str], new: Sequence[str], names: tuple[str, str]) -> Iterator[str]:
    """Return the lines of a unified diff; none where nothing differs."""
    needs_header = True
    for group in _group_edits(find_edits(old, new)):
        if needs_header:
            yield f"--- {names[0]}"
            yield f"+++ {names[1]}"
            needs_header = False
        yield from _hunk_lines(old, new, group)


def find_edits(old: Sequence[str], new: Sequence[str]) -> Iterator[Edit]:
    """Return where the lines part, and where they meet again."""
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            i, j = i + 1, j + 1
            continue
        to_i, to_j = _next_common(old, new, i, j)
        yield i, to_i, j, to_j
        i, j = to_i, to_j


def _next_common(old: Sequence[str], new: Sequence[str], i: int, j: int) -> tuple[int, int]:
    """Return the nearest place from which on the lines are the same again."""
    for away in range(1, min(_FAR, len(old) - i + len(new) - j)):
        for skipped in range(max(0, away - (len(new) - j)), min(away, len(old) - i) + 1):
            here, there = i + skipped, j + away - skipped
            same = old[here : here + _AGAIN]
            if same and same == new[there : there + _AGAIN]:
                return here, there
    return min(i + _FAR, len(old)), min(j + _FAR, len(new))


def _group_edits(found: Iterator[Edit]) -> Iterator[list[Edit]]:
    """Return the edits whose contexts touch together."""
    group: list[Edit] = []
    for edit in found:
        if group and edit[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _hunk_lines(old: Sequence[str], new: Sequence[str], group: list[Edit]) -> Iterator[str]:
    before = min(_CONTEXT, group[0][0], group[0][2])
    after = min(_CONTEXT, len(old) - group[-1][1], len(new) - group[-1][3])
    first, last = group[0][0] - before, group[-1][1] + after
    first_new, last_new = group[0][2] - before, group[-1][3] + after
    yield f"@@ -{_range_text(first, last)} +{_range_text(first_new, last_new)} @@"
    at = first
    for start, end, start_new, end_new in group:
        yield from (f" {line}" for line in old[at:start])
        yield from (f"-{line}" for line in old[start:end])
        yield from (f"+{line}" for line in new[start_new:end_new])
        at = end
    yield from (f" {line}" for line in old[at:last])


def _range_text(first: int, last: int) -> str:
    """Return a range as a unified diff writes it: counted from 1, its length if not 1."""
    length = last - first
    start = first + 1 if length else first
    return str(start) if length == 1 else f"{start},{length}"
