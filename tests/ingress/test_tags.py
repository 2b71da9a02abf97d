"""What the tag filter promises, whatever arrives and however it is cut."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reasoning_store.conversation.errors import InvalidCall, SettingError
from reasoning_store.ingress.markers import DEFAULT_TAGS
from reasoning_store.ingress.tags import Run, TagFilter, split_reasoning
from tests.ingress.tag_runs import MOST_HELD, drive, joined
from tests.properties import each


def plain(chunks: Iterable[str]) -> list[tuple[str, str]]:
    """The channels of a stream, as an application joins them that knows of no events."""
    tag_filter = TagFilter()
    runs = [run for chunk in chunks for run in tag_filter.feed(chunk)]
    return [(run.kind, run.text) for run in joined([*runs, *tag_filter.finish()])]


# The binding cases


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    tags: list[str]
    starts_inside: bool
    chunks: list[str]
    visible: str
    thoughts: list[str]
    interrupted: bool

    @property
    def text(self) -> str:
        return "".join(self.chunks)

    def check(self, chunks: Iterable[str]) -> None:
        outcome = drive(chunks, self.tags, self.starts_inside)
        expected = (self.visible, self.thoughts, self.interrupted)

        assert expected == (outcome.visible, outcome.spoken, outcome.interrupted)


def cases() -> list[Case]:
    path = Path(__file__).parent.parent / "cases" / "tags.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Case(*json.loads(line).values()) for line in lines]


every_case = each("case", cases())


@every_case
def test_case_holds_for_the_chunks_as_streamed(case: Case) -> None:
    """A binding case gives its result for its own chunks."""
    case.check(case.chunks)


@every_case
def test_case_holds_for_the_whole_text(case: Case) -> None:
    """A binding case gives its result when the text arrives in one piece."""
    case.check([case.text])


@every_case
def test_case_holds_for_every_two_way_split(case: Case) -> None:
    """A binding case gives its result wherever the text is cut in two."""
    for cut in range(len(case.text) + 1):
        case.check([case.text[:cut], case.text[cut:]])


@every_case
def test_case_holds_character_by_character(case: Case) -> None:
    """A binding case gives its result one character at a time."""
    case.check(list(case.text))


@every_case
def test_case_holds_for_split_reasoning(case: Case) -> None:
    """A binding case gives its result through the function for whole texts."""
    split = split_reasoning(case.text, tags=case.tags, starts_inside=case.starts_inside)
    expected = (case.visible, tuple(case.thoughts), case.interrupted)

    assert expected == (split.visible, split.thoughts, split.interrupted)


# What leaks elsewhere


@pytest.mark.parametrize(
    ("chunks", "visible", "thoughts"),
    [
        pytest.param(["...done</think>"], "...done", [], id="1-trailing-close"),
        pytest.param(
            ["<think>hidden steps</think>Final answer"],
            "Final answer",
            ["hidden steps"],
            id="2-inline-block",
        ),
        pytest.param(["</thi", "nk>"], "", [], id="3-split-delimiter"),
        pytest.param(
            ["<think>same</think>Answer"], "Answer", ["same"], id="4-tagged-beside-native"
        ),
        pytest.param(
            ["keep <tag> and </tag> text"], "keep <tag> and </tag> text", [], id="5-unknown-tags"
        ),
    ],
)
def test_no_known_leak_leaves_a_delimiter(
    chunks: list[str], visible: str, thoughts: list[str]
) -> None:
    """Each known case comes out clean."""
    outcome = drive(chunks)

    assert (visible, thoughts) == (outcome.visible, outcome.spoken)


# What a filter gets wrong elsewhere


@pytest.mark.parametrize("name", DEFAULT_TAGS)
def test_each_of_the_five_names_is_a_tag(name: str) -> None:
    """All five names hide what stands between them."""
    outcome = drive([f"a<{name}>x</{name}>b"])

    assert (outcome.visible, outcome.spoken) == ("ab", ["x"])


@pytest.mark.parametrize(
    "text",
    [
        "< thought >hidden</ thought >visible",
        "<\tthought>hidden</\tthought>visible",
        "<Thinking >hidden</ Thinking >visible",
        "<think\r\n>hidden< / think\f>visible",
    ],
)
def test_tolerant_tags_are_hidden(text: str) -> None:
    """Whitespace around the slash and the name does not matter."""
    outcome = drive([text])

    assert (outcome.visible, outcome.spoken) == ("visible", ["hidden"])


def test_a_tag_split_across_deltas_is_one_tag() -> None:
    """A tag in five pieces is one tag."""
    chunks = ["<thi", "nking", ">", "hidden ", "stuff", "</thi", "nking>", "out"]

    assert plain(chunks) == [("thinking", "hidden stuff"), ("visible", "out")]


def test_a_lone_less_than_is_text() -> None:
    """A comparison survives byte for byte."""
    assert plain(["a < b > c"]) == [("visible", "a < b > c")]


def test_an_unclosed_block_is_kept_and_not_shown() -> None:
    """What others lose is a thought, and the filter says that it was cut off."""
    outcome = drive(["before<thought>never closed"])

    assert (
        outcome.visible,
        outcome.spoken,
        outcome.interrupted,
    ) == ("before", ["never closed"], True)


def test_a_reset_clears_all_state() -> None:
    """After a reset the next text is the first."""
    tag_filter = TagFilter()
    tag_filter.feed("<thought>partial</thou")
    tag_filter.reset()

    assert [Run("visible", "fresh", 0)] == tag_filter.feed("fresh") + tag_filter.finish()
    assert not tag_filter.interrupted


@each("content", [None, b"<think>", 5])
@each("before", ["", "a <", "<think>b", "<think>b </"])
def test_what_is_no_text_is_refused_and_changes_nothing(before: str, content: Any) -> None:
    """A delta without text is None in every SDK; wherever the filter stands, it goes on."""
    tag_filter, other = TagFilter(), TagFilter()
    tag_filter.feed(before)
    other.feed(before)
    with pytest.raises(InvalidCall, match="a text, not") as refused:
        tag_filter.feed(content)

    assert 'content or ""' in (refused.value.hint or "")
    assert tag_filter.feed("c") + tag_filter.finish() == other.feed("c") + other.finish()
    with pytest.raises(InvalidCall, match="a text, not"):
        split_reasoning(content)


def test_two_blocks_in_one_delta_are_both_kept() -> None:
    """Not only the last thought of a delta."""
    assert drive(["<think>a</think>X<think>b</think>Y"]).thoughts == {0: "a", 1: "b"}


# The spelling of a tag


@each(
    "text",
    [
        "<thin\u212a>",
        "<THIN\u212a>",
        "<th\u0131nk>",
        "<th\u0130nk>",
        "<think-step>",
        "<thinker>",
        "<th ink>",
        "<think/>",
        "<think />",
        "<think id=1>",
        "<think\u00a0>",
        "<//think>",
        "<" + " " * 17 + "think>",
        "<think" + " " * 17 + ">",
        "</" + " " * 17 + "think>",
        "<" + " " * 17 + "/think>",
        "&lt;think&gt;",
        "\ud800<thi\ud800nk>",
    ],
)
def test_what_is_no_tag_is_text_byte_for_byte(text: str) -> None:
    """Anything near a tag is left exactly as it is."""
    assert [("visible", f"a{text}b")] == plain([f"a{text}b"])


def test_longest_tag_is_a_tag() -> None:
    """Sixteen blanks in each of the three places are allowed."""
    blanks = " " * 16

    assert plain([f"a<{blanks}/{blanks}reflection{blanks}>b"]) == [("visible", "ab")]


def test_a_less_than_inside_a_candidate_starts_a_new_one() -> None:
    """A rejected candidate does not swallow the tag that begins inside it."""
    outcome = drive(["<<think>a<</think>b"])

    assert (outcome.visible, outcome.spoken) == ("<b", ["a<"])


@pytest.mark.parametrize("name", ["mm:think", "REASONING_SCRATCHPAD", "\u601d\u8003", "a.b*"])
def test_given_names_replace_the_default_ones(name: str) -> None:
    """Namespaced, upper-case, CJK and odd names are names like any other."""
    outcome = drive([f"<{name}>x</{name.lower()}><think>y"], [name])

    assert (outcome.visible, outcome.spoken) == ("<think>y", ["x"])


def test_case_of_letters_beyond_ascii_matters() -> None:
    """Only ASCII letters have two cases here."""
    assert drive(["<\u00c9>x"], ["\u00e9"]).visible == "<\u00c9>x"


def test_no_names_filter_nothing() -> None:
    """An empty list of names is not the default list."""
    assert drive(["<think>x</think>"], []).visible == "<think>x</think>"


@each("tags", ["think", [""], ["<think>"], ["a b"], ["a/b"], ["x" * 65], [None], ["\u3000"]])
def test_bad_names_are_refused(tags: Any) -> None:
    """A name that could not be a tag is a setting error, not a silent nothing."""
    with pytest.raises(SettingError):
        TagFilter(tags)


# Blocks


def test_blocks_and_stretches_are_numbered_in_order() -> None:
    """Visible n stands before thinking n; an empty block has its number too."""
    outcome = drive(["a<think>b</think>c<think></think><think>d</think>e"])
    expected = [
        ("visible", "a", 0),
        ("thinking", "b", 0),
        ("visible", "c", 1),
        ("thinking", "d", 2),
        ("visible", "e", 3),
    ]

    assert expected == [run[:3] for run in outcome.deltas]


def test_events_say_where_empty_blocks_are() -> None:
    """A block without text opens and closes all the same."""
    runs = drive(["<think></think>x"]).runs
    expected = [
        ("thinking", "<think>", 0, "start"),
        ("thinking", "</think>", 0, "end"),
        ("visible", "x", 1, "delta"),
    ]

    assert expected == [*runs]


def test_events_are_given_only_when_asked_for() -> None:
    """Without events every run is text of a channel."""
    tag_filter = TagFilter()
    runs = tag_filter.feed("a</think><think></think><think>b") + tag_filter.finish()

    assert runs == [("visible", "a", 0, "delta"), ("thinking", "b", 1, "delta")]


def test_events_name_the_block_that_the_prompt_opened() -> None:
    """Its start has no delimiter of its own."""
    assert Run("thinking", "", 0, "start") == drive(["x"], starts_inside=True).runs[0]


def test_whitespace_only_block_is_not_extracted() -> None:
    """Whitespace is kept as the block's text and is no thought."""
    outcome = drive(["<think> \n</think>x"])

    assert (outcome.thoughts, outcome.spoken, outcome.stripped) == ({0: " \n"}, [], 2)


def test_counters_count_delimiters_and_thoughts() -> None:
    """Stray ones are stripped too; only blocks that say something are thoughts."""
    outcome = drive(["</think><think>a</think><think> </think><think>b"])

    assert (outcome.stripped, outcome.spoken) == (6, ["a", "b"])


# Held text


@pytest.mark.parametrize(
    ("text", "visible", "thoughts"),
    [("abc <thi", "abc <thi", {}), ("<think>abc</thi", "", {0: "abc</thi"}), ("a <", "a <", {})],
)
def test_held_partial_goes_to_the_channel_it_was_in(
    text: str, visible: str, thoughts: dict[int, str]
) -> None:
    """The end of a text is never lost."""
    outcome = drive(list(text))

    assert (visible, thoughts) == (outcome.visible, outcome.thoughts)


def test_held_text_can_be_seen() -> None:
    """What is in no run yet is known."""
    tag_filter = TagFilter()
    tag_filter.feed("<think>abc</thi")

    assert tag_filter.held == "</thi"
    assert [Run("visible", "x", 1)] == tag_filter.feed("nk>x")


def test_finished_filter_takes_nothing_more() -> None:
    """Text after the end is a mistake of the caller's."""
    tag_filter = TagFilter()
    tag_filter.finish()

    with pytest.raises(InvalidCall):
        tag_filter.feed("x")


def test_finishing_twice_gives_nothing_twice() -> None:
    """The rest is given once."""
    tag_filter = TagFilter()
    tag_filter.feed("<")

    assert [run.text for run in tag_filter.finish() + tag_filter.finish()] == ["<"]


# A block that the prompt opened


@each(
    "text, visible, thoughts, interrupted",
    [
        ("a</think>b", "b", ["a"], False),
        ("<think>a</think>b", "b", ["a"], False),
        (" \n <think>a</think>b", "b", [" \n a"], False),
        ("<think><think>a</think>b", "b", ["<think>a"], False),
        ("abc<think>a</think>b", "b", ["abc<think>a"], False),
        ("</think>b<think>c</think>d", "bd", ["c"], False),
        ("<thi", "", ["<thi"], True),
        ("<think>", "", [], True),
        ("", "", [], False),
    ],
)
def test_starts_inside_swallows_one_redundant_open(
    text: str, visible: str, thoughts: list[str], interrupted: bool
) -> None:
    """One open before anything but whitespace is not a second block."""
    for chunks in ([text], list(text)):
        outcome = drive(chunks, starts_inside=True)

        assert (visible, thoughts, interrupted) == (
            outcome.visible,
            outcome.spoken,
            outcome.interrupted,
        )


@each(
    "before, behind, visible, thinking",
    [
        ("", "a", "a", ""),
        (" ", "a", "a", " "),
        ("<thi", "s>", "<this>", ""),
        ("<thi", "nk>a", "", "a"),
        ("a", "b", "", "ab"),
        ("<think>", "a", "", "a"),
    ],
)
def test_the_prompts_block_can_be_over_before_anything_is_thought_in_it(
    before: str, behind: str, visible: str, thinking: str
) -> None:
    """Once something was, or the text has opened it as well, it is there."""
    tag_filter = TagFilter(starts_inside=True)
    runs = [*tag_filter.feed(before), *tag_filter.begin_outside(), *tag_filter.feed(behind)]

    assert "".join(run.text for run in runs if run.kind == "visible") == visible
    assert "".join(run.text for run in runs if run.kind == "thinking") == thinking


# What removal brings together


@each(
    "text, visible",
    [
        ("<thi<think></think>nk>", ""),
        ("<th<think>x</think>ink>hidden</think>v", "hiddenv"),
        ("<thi</think>nk>a", "a"),
        ("</th<think>x</think>ink>a", "a"),
        ("<</think></think>think>a", "a"),
        ("a<<think>x</think>b", "a<b"),
        ("a<thi<think>x</think> nk>", "a<thi nk>"),
        ("a<thi<think>x", "a<thi"),
    ],
)
def test_reformed_delimiter_is_removed(text: str, visible: str) -> None:
    """Two halves around a removal are a delimiter, and are only removed."""
    for chunks in ([text], list(text)):
        assert visible == drive(chunks).visible


def test_reformed_delimiter_is_removed_once() -> None:
    """What the second removal brings together is text: one level, as designed."""
    assert drive(["<thi<thi<think></think>nk>nk>"]).visible == "<think>"


def test_visible_text_held_over_a_block_comes_after_it() -> None:
    """Text that proved to be none of a delimiter stands where that was found."""
    assert plain(["a<<think>x</think>b"]) == [
        ("visible", "a"),
        ("thinking", "x"),
        ("visible", "<b"),
    ]


def test_a_released_beginning_is_the_beginning() -> None:
    """An open after it is thought text, and not the redundant one of the model."""
    tag_filter = TagFilter(starts_inside=True)
    runs = [*tag_filter.feed("<thin"), *tag_filter.release(), *tag_filter.feed("<think>x")]

    assert joined(runs) == (Run("thinking", "<thin<think>x", 0),)


def test_both_lexers_may_hold_a_delimiter_at_once() -> None:
    """What is held may be longer than one delimiter, and never longer than the bound."""
    tag_filter = TagFilter()
    half = "<" + " " * 16 + "/" + " " * 16 + "reflection"
    tag_filter.feed(half + "</think>" + half)

    assert MOST_HELD / 2 < len(tag_filter.held) <= MOST_HELD
