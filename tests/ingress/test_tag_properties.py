"""The promises of the tag filter for every text and every way to cut it."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.ingress.markers import DEFAULT_TAGS
from reasoning_store.ingress.tags import TagFilter, split_reasoning
from tests.ingress.tag_costs import HOSTILE, examined
from tests.ingress.tag_runs import MOST_HELD, drive
from tests.properties import each, examples

# Properties


FRAGMENTS = [
    *("<think>", "</think>", "<thought>", "</REFLECTION>", "< / Reasoning\t>", "<Think\n>"),
    *("<thi", "nk>", "</", "<", ">", "/", "think", "t", "hink>", " ", "\n", " " * 15, " " * 17),
    *("<think-step>", "<think/>", "<think a>", "<thin\u212a>", "x", "yz", "\u601d", "\ud800"),
]


texts = st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("".join)


@st.composite
def cuttings(draw: st.DrawFn, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]


cut_texts = texts.flatmap(cuttings)


class Verdict(NamedTuple):
    visible: str
    spoken: list[str]
    interrupted: bool
    stripped: int
    reformed: int


def oracle(text: str, *, starts_inside: bool) -> Verdict:
    """The same rules, written for whole texts only and with no care for cost."""
    gap = r"[ \t\r\n\f\v]{0,16}"
    tag = re.compile(rf"(?ai)<{gap}(/{gap})?(?:{'|'.join(DEFAULT_TAGS)}){gap}>")
    inside, last, stripped = starts_inside, 0, 0
    visible, bodies = "", [""] if starts_inside else []
    redundant = starts_inside
    for found in tag.finditer(text):
        before, last = text[last : found.start()], found.end()
        if inside:
            bodies[-1] += before
            if found[1]:
                inside = redundant = False
            elif redundant and not bodies[-1].strip():
                redundant = False
            else:
                bodies[-1] += found[0]
                continue
        else:
            visible += before
            if not found[1]:
                inside = True
                bodies.append("")
        stripped += 1
    if inside:
        bodies[-1] += text[last:]
    else:
        visible += text[last:]
    clean, reformed = tag.subn("", visible)
    spoken = [body for body in bodies if body.strip()]
    return Verdict(clean, spoken, inside and bool(text), stripped + reformed, reformed)


@examples(400)
@given(cut_texts, st.booleans())
def test_any_chunking_gives_the_result_of_the_whole(chunks: list[str], inside: bool) -> None:
    """Runs, events, numbers and counters do not depend on how a text was cut."""
    whole = drive(["".join(chunks)], starts_inside=inside)

    assert whole == drive(chunks, starts_inside=inside)
    assert whole == drive("".join(chunks), starts_inside=inside)


@examples(400)
@given(texts, st.booleans())
def test_the_filter_follows_the_rules_as_written(text: str, inside: bool) -> None:
    """A second, simple reading of the rules gives the same."""
    outcome = drive([text], starts_inside=inside)
    expected = oracle(text, starts_inside=inside)

    assert outcome.visible == expected.visible
    assert outcome.spoken == expected.spoken
    assert outcome.interrupted == expected.interrupted
    assert outcome.stripped == expected.stripped


@given(cut_texts, st.booleans())
def test_every_character_is_accounted_for(chunks: list[str], inside: bool) -> None:
    """Visible text, thoughts and removed delimiters are the input, nothing more or less."""
    outcome = drive(chunks, starts_inside=inside)
    text = "".join(chunks)

    assert Counter(text) == Counter("".join(run.text for run in outcome.runs))


@given(texts, st.booleans())
def test_without_halves_the_runs_are_the_input_in_order(text: str, inside: bool) -> None:
    """Only text held over a removal may change its place among the runs."""
    text = re.sub(r"<[^<>]*(?=<)", "", text)  # no candidate is broken off by another
    outcome = drive(text, starts_inside=inside)

    assert "".join(run.text for run in outcome.runs) == text


@examples(400)
@given(texts)
def test_no_delimiter_is_visible(text: str) -> None:
    """Nothing visible is a delimiter, unless two removals had to make it."""
    visible = drive([text]).visible
    reformed = oracle(text, starts_inside=False).reformed

    assert reformed or split_reasoning(visible).visible == visible


@given(cut_texts, st.booleans())
def test_one_start_before_each_end(chunks: list[str], inside: bool) -> None:
    """A block opens once, ends at most once, and its text is between."""
    open_block: int | None = None
    expected = 0
    for run in drive(chunks, starts_inside=inside).runs:
        if run.phase == "start":
            assert (None, expected) == (open_block, run.block)
            open_block, expected = run.block, expected + 1
        elif run.kind == "thinking":
            assert open_block == run.block
            open_block = None if run.phase == "end" else open_block


@given(cut_texts, st.booleans())
def test_held_text_is_bounded_and_complete(chunks: list[str], inside: bool) -> None:
    """At any moment the runs, the removed and the held are what was fed."""
    tag_filter = TagFilter(starts_inside=inside, events=True)
    fed = given_out = 0
    for chunk in chunks:
        fed += len(chunk)
        given_out += sum(len(run.text) for run in tag_filter.feed(chunk))

        assert len(tag_filter.held) <= MOST_HELD
        assert fed == given_out + len(tag_filter.held)


@given(cut_texts, texts, st.booleans())
def test_reset_clears_all_state(chunks: list[str], text: str, inside: bool) -> None:
    """A filter that was used and reset is as good as new."""
    used = TagFilter(starts_inside=inside, events=True)
    for chunk in chunks:
        used.feed(chunk)
    used.finish()
    used.reset()
    new = TagFilter(starts_inside=inside, events=True)

    assert new.feed(text) + new.finish() == used.feed(text) + used.finish()


@given(st.lists(st.text(max_size=20), max_size=8))
def test_no_text_raises(chunks: list[str]) -> None:
    """Any string at all is a text."""
    outcome = drive(chunks)

    assert outcome == drive(["".join(chunks)])


# Cost, counted and not timed


@each("length", [1, 4, 64, 1_000_000])
@each("name", HOSTILE)
def test_work_grows_with_the_text_and_not_faster(name: str, length: int) -> None:
    """Twice the text is twice the characters looked at, for every shape and every cut."""
    make = HOSTILE[name]
    short, long = (examined(make(size), length) for size in (20_000, 40_000))

    assert long <= 2.1 * short
    assert long <= MOST_HELD * 40_000


@each("name", HOSTILE)
def test_hostile_text_is_held_within_the_bound(name: str) -> None:
    """What is held never grows with the text."""
    tag_filter = TagFilter()
    for char in HOSTILE[name](3_000):
        tag_filter.feed(char)

        assert len(tag_filter.held) <= MOST_HELD
