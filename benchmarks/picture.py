"""The picture for the README: bars of ours, of the floor and of the rivals, as SVG.

One group a workload; in each the longest bar is as long as the picture allows, and each bar
has its figure next to it. Colours are chosen to be read on white and on black, and follow
what the reader's system prefers. Pure: rows in, text out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.report import figure
from benchmarks.results import Row

SHOWN: Mapping[str, str] = {
    "turn": "Store a turn durably, its tokens counted (the rivals count nothing)",
    "load": "Load 10 000 messages",
    "load-stripped": "Load 10 000 messages without their thinking (the rivals load it, too)",
    "request-kept": "Build a request of 1 000 messages (the rivals: load them and write JSON)",
    "postgres-turn": "Store a turn on PostgreSQL, its tokens counted (the rivals count nothing)",
    "tags-4": "Take inline thinking out of a stream, a delta of 4 characters",
    "stream-text": "Read a chunk of a Chat Completions stream",
}
_WIDTH, _LABEL, _BAR, _RIGHT = 860, 260, 18, 90
_TITLE, _GAP, _TOP = 26, 16, 32
_HOW = "Shorter is better. Each group has a scale of its own."
_STYLE = """
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif;
         fill: #24292f; }
  .title { font-weight: 600; font-size: 13px; }
  .how { fill: #57606a; }
  .ours { fill: #1a7f5a; } .floor { fill: #8c959f; } .rival { fill: #b9770e; }
  .value { font-variant-numeric: tabular-nums; }
  @media (prefers-color-scheme: dark) {
    text { fill: #d6dde4; }
    .how { fill: #9aa4ae; }
    .ours { fill: #3fb68b; } .floor { fill: #6e7781; } .rival { fill: #d99a3d; }
  }
"""
_ORDER = ("ours", "floor", "rival")
_NAMES = {"floor": "the bare driver"}
_BARE = {"tags-4": "a bare loop", "stream-text": "a bare loop"}


def drawn(rows: Iterable[Row]) -> str:
    """Return the picture of those rows that it shows."""
    by_name = {row["name"]: row for row in rows}
    shown = [(SHOWN[name], by_name[name]) for name in SHOWN if name in by_name]
    parts = [_text(0, 16, _HOW, "how")]
    y = _TOP
    for title, row in shown:
        y += _TITLE
        parts.append(_text(0, y - 9, title, "title"))
        for name, kind, value in _bars(row):
            longest = max(bar[2] for bar in _bars(row))
            parts += _bar(y, name, kind, value / longest, figure(value, row["unit"]))
            y += _BAR
        y += _GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}"'
            f' width="{_WIDTH}" height="{y}" role="img"'
            ' aria-label="What the work costs: ours, the floor, the rivals. Shorter is better.">',
            f"<style>{_STYLE}</style>",
            *parts,
            "</svg>\n",
        ]
    )


def _bars(row: Row) -> Sequence[tuple[str, str, float]]:
    """Return name, kind and figure of each bar: ours, the floor, then the rivals by cost."""
    there: Mapping[str, Any] = row["sizes"][str(row["at"])]
    kinds: Mapping[str, str] = row["kinds"]
    bars = [
        (_label(row["name"], name, kinds[name]), kinds[name], one["median"])
        for name, one in there.items()
        if kinds[name] in _ORDER
    ]
    return sorted(bars, key=lambda bar: (_ORDER.index(bar[1]), bar[2]))


def _label(workload: str, name: str, kind: str) -> str:
    if kind == "floor":
        return _BARE.get(workload, _NAMES["floor"])
    return "reasoning-store" if kind == "ours" else name


def _bar(y: int, name: str, kind: str, share: float, value: str) -> list[str]:
    length = max(1.0, share * (_WIDTH - _LABEL - _RIGHT))
    return [
        _text(_LABEL - 8, y + 13, name, "", anchor="end"),
        f'<rect class="{kind}" x="{_LABEL}" y="{y + 2}" width="{length:.1f}"'
        f' height="{_BAR - 4}" rx="2"/>',
        _text(_LABEL + length + 6, y + 13, value, "value"),
    ]


def _text(x: float, y: float, text: str, kind: str, *, anchor: str = "start") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
