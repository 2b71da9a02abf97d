"""The pictures of the README show the product as it is now."""

from __future__ import annotations

import html
import re
import struct
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
PICTURES = CHECKOUT / "docs" / "pictures"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The script that makes the pictures."""
    spec = spec_from_file_location("make_pictures", CHECKOUT / "tools" / "make_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def recording(tool: ModuleType) -> list[tuple[float, str]]:
    """The demo, played without pauses."""
    played: list[tuple[float, str]] = tool.record_demo(speed=1e6)
    return played


def test_the_picture_of_the_demo_shows_every_line_of_the_demo(
    tool: ModuleType, recording: list[tuple[float, str]]
) -> None:
    """To draw it again: make pictures."""
    drawn = re.findall(r"<text[^>]*>(.*)</text>", (PICTURES / "demo.svg").read_text("utf-8"))
    lines = {html.unescape(re.sub("<.*?>", "", text)).rstrip() for text in drawn}
    _, rows = tool.frames(recording)[-1]

    assert len(rows) > 60
    assert [row for row in ("".join(t for t, _ in r).rstrip() for r in rows) if row] == [
        row for row in ("".join(t for t, _ in r).rstrip() for r in rows) if row in lines and row
    ]


def test_a_drawn_line_is_seen_from_its_first_frame_to_its_last(tool: ModuleType) -> None:
    """Typed, replaced, and scrolled: well-formed, with nothing to load."""
    hello, bye = (("hello", "b"),), (("bye <b>", "c1"),)
    drawn = tool.draw([(0.0, [hello]), (1.0, [hello, bye]), (2.0, [bye, bye])], "a < b", "c")

    ElementTree.fromstring(drawn)
    assert drawn.count("<text") == 3
    assert "bye &lt;b&gt;" in drawn
    assert not re.search(r"(?:href|src|url\()", drawn)


@pytest.mark.parametrize("path", sorted(PICTURES.iterdir()), ids=lambda path: path.name)
def test_a_picture_is_small_and_described_where_it_is_shown(path: Path) -> None:
    """Below 200 kB, with an alternative text of a sentence."""
    pages = [CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]
    texts = [
        alt
        for page in pages
        for alt, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", page.read_text("utf-8"))
        if target.endswith(f"pictures/{path.name}")
    ]

    assert path.stat().st_size < 200_000
    assert texts
    assert [alt for alt in texts if len(alt.split()) < 4] == []
    if path.suffix == ".png":
        assert struct.unpack(">II", path.read_bytes()[16:24])[0] >= 1000
