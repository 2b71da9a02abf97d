"""What the literal marker families promise, each by itself and all at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.errors import SettingError
from reasoning_store.ingress.markers import FAMILIES, Family, compile_grammar
from reasoning_store.ingress.tags import Run, TagFilter, split_reasoning
from tests.ingress.tag_runs import MOST_HELD_OF_ALL
from tests.properties import each, examples


def drive(chunks: Iterable[str], markers: Iterable[str], **options: Any) -> list[Run]:
    """Every run with its events, adjacent pieces of one channel put together."""
    tag_filter = TagFilter(markers=markers, events=True, **options)
    whole: list[Run] = []
    runs = [run for chunk in chunks for run in tag_filter.feed(chunk)]
    for run in runs + tag_filter.finish():
        last = whole[-1] if whole else None
        if last and run.phase == last.phase == "delta" and run[::2] == last[::2]:
            whole[-1] = last._replace(text=last.text + run.text)
        else:
            whole.append(run)
    return whole


def said(family: str, text: str, *, starts_inside: bool = False) -> tuple[str, tuple[str, ...]]:
    split = split_reasoning(text, markers=[family], starts_inside=starts_inside)
    return split.visible, split.thoughts


def literals(row: Family) -> list[str]:
    """The delimiters of a family as models write them, with a constraint and without."""
    every = [*row.opens, *row.closes, *row.answers, *row.drops, *row.ends]
    return [
        literal.replace("*", constraint)
        for literal in every
        for constraint in ("", " <|constrain|>json")[: 1 + ("*" in literal)]
    ]


CASES = [
    ("cohere", "<|START_THINKING|>t<|END_THINKING|><|START_RESPONSE|>v<|END_RESPONSE|>", "v"),
    ("ernie", "<think>t</think><response>\nv\n</response>", "\nv\n"),
    ("gemma", "<|channel>thought\nt<channel|>v<|channel>thought\n<channel|>", "v"),
    ("granite", "<think>t</think><response>v</response>", "v"),
    (
        "harmony",
        "<|channel|>analysis<|message|>t<|end|>"
        "<|start|>assistant<|channel|>final<|message|>v<|return|>",
        "v",
    ),
    ("hunyuan", "<think>\nt\n</think>\n<answer>\nv\n</answer>", "\n\nv\n"),
    ("kimi", "\u25c1think\u25b7t\u25c1/think\u25b7v", "v"),
    (
        "kimi_k3",
        "<|open|>think<|sep|>t<|close|>think<|sep|><|open|>response<|sep|>v"
        "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>",
        "v",
    ),
    ("medgemma", "<unused94>thought\nt<unused95>v", "v"),
    ("minimax_m3", "<mm:think>t</mm:think>v", "v"),
    ("mistral", "[THINK]t[/THINK]v", "v"),
    ("seed", "<seed:think>t</seed:think>v", "v"),
]
every_family = pytest.mark.parametrize(
    ("family", "text", "visible"), CASES, ids=[case[0] for case in CASES]
)


def test_every_family_has_a_case() -> None:
    """A new row of the table needs a text that shows it."""
    assert [case[0] for case in CASES] == list(FAMILIES)


@every_family
def test_a_reply_of_the_family_is_taken_apart(family: str, text: str, visible: str) -> None:
    """The whole reply gives its thought and its answer, without a wrapper."""
    shown, thoughts = said(family, text)

    assert shown == visible
    assert [thought.strip() for thought in thoughts] == ["t"]


FORMS = {
    "Command A+": (
        "cohere",
        "<|START_THINKING|>t<|END_THINKING|><|START_TEXT|>v<|END_TEXT|>",
        ("t",),
    ),
    "Command A+, opened by the prompt": (
        "cohere",
        "<|END_THINKING|><|START_TEXT|>v<|END_TEXT|>",
        (),
    ),
    "Gemma 4, closed by the server": ("gemma", "<|channel>thought<channel|>v", ()),
    "Gemma 4, opened twice": ("gemma", "<|channel><|channel>thought\n<channel|>v", ()),
    "Gemma 4, without the name": ("gemma", "<|channel>t<channel|>v", ("t",)),
    "Gemma 4, a word that begins like the name": (
        "gemma",
        "<|channel>thoughtful<channel|>v",
        ("thoughtful",),
    ),
    "Gemma 4, closed before the name": ("gemma", "<|channel><channel|>thought\nv", ()),
    "Gemma 4, two blocks": (
        "gemma",
        "<|channel>thought\na<channel|><|channel>thought\nb<channel|>v",
        ("a", "b"),
    ),
    "harmony, a constrained answer": (
        "harmony",
        "<|channel|>analysis<|message|>t<|end|>"
        "<|start|>assistant<|channel|>final <|constrain|>json<|message|>v",
        ("t",),
    ),
    "harmony, any constraint in any channel": (
        "harmony",
        "<|channel|>analysis<|constrain|>plan_v2<|message|>t<|end|>"
        "<|channel|>commentary  <|constrain|>JSON <|message|>v",
        ("t",),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_no_marker_of_another_form_reaches_the_answer(form: str) -> None:
    """Models of one family, and servers, differ in what they write around a thought."""
    family, text, thoughts = FORMS[form]

    assert said(family, text) == ("v", thoughts)
    assert drive(text, [family]) == drive([text], [family])


@every_family
def test_a_reply_of_the_family_may_be_cut_anywhere(family: str, text: str, visible: str) -> None:
    """One character at a time, and at every place in two, the runs are the same."""
    whole = drive([text], [family])

    assert drive(text, [family]) == whole
    for cut in range(len(text)):
        assert drive([text[:cut], text[cut:]], [family]) == whole


@every_family
def test_markers_mean_nothing_unless_chosen(family: str, text: str, visible: str) -> None:
    """By default only the five tag names are delimiters."""
    every = literals(FAMILIES[family])

    assert all(split_reasoning(literal).visible == literal for literal in every)


@each("text", ["[think]t[/think]", "[THINK ]t", "[ THINK]t", "[THINK/]t", "[TH", "[[THINK"])
def test_markers_are_exact(text: str) -> None:
    """No other case, no blanks: anything near a marker is text."""
    assert said("mistral", text) == (text, ())


def test_a_marker_may_begin_inside_a_broken_one() -> None:
    """A rejected candidate does not swallow the marker that begins inside it."""
    assert said("mistral", "[TH[THINK]t[/TH[/THINK]v") == ("[THv", ("t[/TH",))


def test_a_stray_close_of_a_family_is_removed() -> None:
    """The close of a block that the prompt opened is no answer."""
    assert said("mistral", "a[/THINK]b") == ("ab", ())


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("cohere", "t<|END_THINKING|><|START_RESPONSE|>v<|END_RESPONSE|>"),
        ("cohere", "<|START_THINKING|>t<|END_THINKING|><|START_RESPONSE|>v"),
        ("kimi_k3", "t<|close|>think<|sep|><|open|>response<|sep|>v<|close|>response<|sep|>"),
        ("ernie", "t</think><response>v</response>"),
        ("minimax_m3", "t</mm:think>v"),
    ],
)
def test_a_family_may_start_inside(family: str, text: str) -> None:
    """Templates that open the block leave only its close to the model."""
    assert said(family, text, starts_inside=True) == ("v", ("t",))


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("cohere", "<|START_THINKING|>t<|START_RESPONSE|>v<|END_RESPONSE|>"),
        ("kimi_k3", "<|open|>think<|sep|>t<|open|>response<|sep|>v"),
        (
            "harmony",
            "<|channel|>analysis<|message|>t<|start|>assistant<|channel|>final<|message|>v",
        ),
    ],
)
def test_an_answer_ends_a_block_left_open(family: str, text: str) -> None:
    """A reply that forgets the close does not hide its answer."""
    assert said(family, text) == ("v", ("t",))


def test_wrappers_inside_a_block_are_thought_text() -> None:
    """Only what begins the answer ends a thought; plain-looking wrappers may be discussed."""
    text = "<think>use <response> here</think><response>v</response>"

    assert said("granite", text) == ("v", ("use <response> here",))


# Harmony


def test_harmony_thinks_more_than_once() -> None:
    """Every analysis message is a block of its own."""
    text = (
        "<|channel|>analysis<|message|>a<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>b<|end|>"
        "<|start|>assistant<|channel|>final<|message|>v<|end|>"
    )

    assert said("harmony", text) == ("v", ("a", "b"))


def test_harmony_preamble_is_visible() -> None:
    """A commentary message without a recipient is stated to the user."""
    text = (
        "<|channel|>analysis<|message|>a<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>Let me look.<|end|>"
    )

    assert said("harmony", text) == ("Let me look.", ("a",))


def test_harmony_tool_call_stays_as_it_came() -> None:
    """A call has a header that is no literal; nothing of it is touched, nor its end."""
    call = (
        "<|start|>assistant<|channel|>commentary to=functions.f "
        '<|constrain|>json<|message|>{"a": 1}<|call|>'
    )

    assert said("harmony", f"<|channel|>analysis<|message|>a<|end|>{call}") == (call, ("a",))


def test_harmony_call_ends_a_thought() -> None:
    """A thought that runs into a call is closed by it."""
    assert said("harmony", "<|channel|>analysis<|message|>a<|call|>v") == ("v", ("a",))


# The table


@each("family", FAMILIES)
def test_no_delimiter_of_a_family_begins_another(family: str) -> None:
    """A delimiter is decided when it is complete, so none may be the beginning of another."""
    every = {*literals(FAMILIES[family])}

    assert not [
        (short, long) for short in every for long in every - {short} if long.startswith(short)
    ]


@each("family", FAMILIES)
def test_every_family_says_where_it_comes_from(family: str) -> None:
    """A row is a fact about another's template."""
    assert FAMILIES[family].source


@pytest.mark.parametrize("markers", [["nobody"], "mistral", [None], [["mistral"]], 5])
def test_unknown_families_are_refused(markers: Any) -> None:
    """A family that does not exist is a setting error, not a silent nothing."""
    with pytest.raises(SettingError):
        TagFilter(markers=markers)


def test_families_need_no_tags() -> None:
    """Tag names and families are chosen apart."""
    split = split_reasoning("<think>[THINK]t[/THINK]v", tags=[], markers=["mistral"])

    assert (split.visible, split.thoughts) == ("<think>v", ("t",))


def test_patterns_are_made_once() -> None:
    """A filter a message costs no compilation."""
    assert compile_grammar(None, ["mistral"]) is compile_grammar(None, ("mistral",))


# Properties


LITERALS = [literal for row in FAMILIES.values() for literal in [*literals(row), *row.labels]]
FRAGMENTS = [
    *LITERALS,
    *(literal[: len(literal) // 2] for literal in LITERALS),
    *(literal[len(literal) // 2 :] for literal in LITERALS),
    *("<think>", "</think>", "<thi", "nk>", "<", "[", "\u25c1", "x", " ", "<|start|>assistant"),
]


@examples(300)
@given(
    st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join),
    st.lists(st.integers(0, 300), max_size=8).map(sorted),
    st.sets(st.sampled_from(list(FAMILIES))),
    st.booleans(),
)
def test_any_chunking_gives_the_result_of_the_whole(
    text: str, cuts: list[int], families: set[str], inside: bool
) -> None:
    """With any families together, runs and events do not depend on how a text was cut."""
    chunks = [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = drive([text], families, starts_inside=inside)

    assert drive(chunks, families, starts_inside=inside) == whole
    assert drive(text, families, starts_inside=inside) == whole


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_held_text_is_bounded_for_all_families(text: str) -> None:
    """Two delimiters are the most that is ever held."""
    tag_filter = TagFilter(markers=FAMILIES)
    for char in text:
        tag_filter.feed(char)

        assert len(tag_filter.held) <= MOST_HELD_OF_ALL
