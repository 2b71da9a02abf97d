"""Delimiters that an answer quotes, in messages: where they are text, where they are cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store import formats
from reasoning_store.importers.reply_parts import AnsweredBy
from reasoning_store.ingress.code_marks import WINDOW
from reasoning_store.ingress.tags import TagFilter
from tests.ingress.channel_readings import delta, read
from tests.ingress.tag_costs import HOSTILE, examined
from tests.ingress.tag_runs import MOST_HELD
from tests.properties import each, examples

CODE = Path(__file__).parent.parent / "cases" / "code_tags.jsonl"
CASES = {case["id"]: case for case in map(json.loads, CODE.read_text("utf-8").splitlines())}


def streamed(chunks: Iterable[str], **options: Any) -> rs.Message:
    return read(*(delta(content=chunk) for chunk in chunks), **options)


def whole(text: str, **options: Any) -> rs.Message:
    said = {"role": "assistant", "content": text}
    return rs.normalize_response({"choices": [{"message": said}]}, **options)


def told(message: rs.Message) -> tuple[str, list[str]]:
    return message.text, [block.thought.strip("\r\n") for block in message.thinking]


# The binding cases


@each("name", CASES)
def test_tags_quoted_in_code_are_text_in_messages(name: str) -> None:
    """As streamed, in one piece, cut at every place, letter by letter, whole, and imported."""
    case = CASES[name]
    text = "".join(case["chunks"])
    expected = case["visible"], [thought.strip("\r\n") for thought in case["thoughts"]]

    cuts = ([text[:cut], text[cut:]] for cut in range(len(text)))
    for chunks in (case["chunks"], [text], text, *cuts):
        assert told(streamed(chunks)) == expected
    assert told(whole(text)) == told(rs.normalize_response(text)) == expected
    assert told(whole(text, **AnsweredBy().ingress_options())) == expected
    (kept,) = formats.read_messages([{"role": "assistant", "content": text}], api="openai.chat")
    assert told(kept) == expected


@each("name", CASES)
def test_the_letter_takes_them_out_wherever_they_are(name: str) -> None:
    """Under always a message is as the raw filter splits its text."""
    text = "".join(CASES[name]["chunks"])
    split = rs.split_reasoning(text)
    message = streamed(text, tags="always")

    assert message.text.replace("\n", "") == split.visible.replace("\n", "")
    assert told(message)[1] == [thought.strip("\r\n") for thought in split.thoughts]


SEEDS: dict[str, tuple[list[str], str, list[str]]] = {
    "a trailing close": (["...done</think>"], "...done", []),
    "an inline block": (
        ["<think>hidden steps</think>Final answer"],
        "Final answer",
        ["hidden steps"],
    ),
    "a split delimiter": (["a</thi", "nk>b"], "ab", []),
    "other angle brackets": (["a <tag> b </tag>"], "a <tag> b </tag>", []),
    "no tag": (["hello", " ", "world"], "hello world", []),
    "a block in one delta": (["<thought>hidden</thought>visible"], "visible", ["hidden"]),
    "a tag in pieces": (
        ["<thi", "nking", ">", "hidden ", "stuff", "</thi", "nking>", "out"],
        "out",
        ["hidden stuff"],
    ),
    "blanks around the name": (["< thought >hidden</ thought >visible"], "visible", ["hidden"]),
    "blanks after the bracket": (["<\tthought>hidden</\tthought>visible"], "visible", ["hidden"]),
    "another case": (["<Thinking >hidden</ Thinking >visible"], "visible", ["hidden"]),
    "a lone bracket": (["a < b > c"], "a < b > c", []),
    "an unclosed block": (["before<thought>never closed"], "before", ["never closed"]),
    **{
        f"the name {name}": ([f"a<{name}>x</{name}>b"], "ab", ["x"])
        for name in ("think", "thinking", "thought", "reasoning", "reflection")
    },
}


@each("name", SEEDS)
@each("mode", ["auto", "always"])
def test_a_message_is_separated_in_both_modes(name: str, mode: str) -> None:
    """Streamed and whole: what nobody quotes is taken out, and kept as a thought."""
    chunks, visible, thoughts = SEEDS[name]

    assert told(streamed(chunks, tags=mode)) == (visible, thoughts)
    assert told(whole("".join(chunks), tags=mode)) == (visible, thoughts)


@each("mode", ["auto", "always"])
def test_a_native_thought_comes_first_in_both_modes(mode: str) -> None:
    """A tagged copy is taken out of the text and not added."""
    message = read(delta(reasoning_content="Plan", content="<think>Plan</think>4"), tags=mode)

    assert told(message) == ("4", ["Plan"])


# More code, and what is none

QUOTED = {
    "a fence that a list item begins": "1. ```xml\n<think>x</think>\n   ```\nend",
    "a fence in a quote": "> ```\n> <think>x</think>\n> ```\nend",
    "a fence closed by a longer run": "```\n<think>\n````\nend",
    "a fence with Windows' line ends": "```xml\r\n<think>x</think>\r\n```\r\nend",
    "a run of three on one line": "```<think>``` opens",
    "a tag in the fence's first line": "```<think>\nx\n```\nend",
    "a tag in a fence that nothing closes": "~~~\na ~~~ <think>x</think>",
    "a comparison in the span": "`a < b <think>`",
}
CUT = {
    "after a closed fence": ("```\na\n```\n<think>x</think>b", "```\na\n```\nb", ["x"]),
    "directly after a closing run": ("```\na\n```</think>", "```\na\n```", []),
    "after a fence of one line": ("```a``` <think>x</think>b", "```a``` b", ["x"]),
    "a run of another length": ("``a` <think>x</think>b", "``a` b", ["x"]),
    "a fence's mark inside a line": ("a ~~~ <think>x</think>b", "a ~~~ b", ["x"]),
    "a span that the line ends": ("a ` b\n<think>x</think>`c", "a ` b\n`c", ["x"]),
    "a fence inside a thought": ("<think>\n```\n</think>\n\nb", "b", ["```"]),
    "a closing run too far away": (
        f"a ` <think>{'x' * 300}` y</think>b",
        "a ` b",
        [f"{'x' * 300}` y"],
    ),
}


@each("name", QUOTED)
def test_code_is_found_as_markdown_finds_it(name: str) -> None:
    """A fence at a line's begin, whatever the line belongs to, and a span between equal runs."""
    assert told(streamed(QUOTED[name])) == told(streamed([QUOTED[name]])) == (QUOTED[name], [])


@each("name", CUT)
def test_what_only_looks_like_code_protects_nothing(name: str) -> None:
    """A thought is never shown because a backtick is somewhere before it."""
    text, visible, thoughts = CUT[name]

    assert told(streamed(text)) == told(streamed([text])) == (visible, thoughts)


PIECES = [
    *(
        "`",
        "``",
        "```",
        "````",
        "~~~",
        "\n",
        "\r\n",
        "\n```\n",
        "\n```xml\n",
        "\n~~~\n",
        "`<think>`",
    ),
    *("<think>", "</think>", "<thi", "nk>", "</", "<", "x", " ", "- ", "> ", "y" * 300),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=16).map("".join)
CUTS = st.lists(st.integers(0, 400), max_size=8).map(sorted)


@examples(600)
@given(TEXTS, CUTS, st.booleans())
def test_code_is_found_however_the_text_is_cut(text: str, cuts: list[int], inside: bool) -> None:
    """The message of any pieces, and of each character, is that of the whole stream."""
    chunks = [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    message = streamed([text], starts_inside=inside)

    assert streamed(chunks, starts_inside=inside) == message
    assert streamed(text, starts_inside=inside) == message


@given(TEXTS)
def test_held_code_is_bounded(text: str) -> None:
    """The place of a delimiter is decided after a few hundred characters at the most."""
    tag_filter = TagFilter(code_is_text=True)
    for character in text:
        tag_filter.feed(character)

        assert len(tag_filter.held) <= MOST_HELD + WINDOW


EMPTY = {
    "closed": ("Use <think></think> here.", "Use  here.", 4, "<think></think>"),
    "never closed": ("It is called <think>", "It is called ", 13, "<think>"),
    "with a line end": ("It is:\n<think>\n", "It is:\n", 7, "<think>\n"),
    "alone": ("<think>", "", 0, "<think>"),
}


@each("name", EMPTY)
def test_the_delimiters_of_an_empty_block_in_an_answer_are_noted(name: str) -> None:
    """No block keeps them, and the cut may be wrong."""
    text, visible, at, removed = EMPTY[name]
    for message in (whole(text), streamed([text]), streamed(text)):
        assert told(message) == (visible, [])
        assert (message.metadata or {})["removedDelimiters"] == [{"at": at, "text": removed}]


@each("text", ["<think></think>Four.", "<think>\n\n</think>\n\nFour."])
def test_an_empty_block_before_the_answer_is_no_cut(text: str) -> None:
    """A model that does not think writes it before each of its answers."""
    assert "removedDelimiters" not in (streamed(text).metadata or {})


BACKTICKS: dict[str, Callable[[int], str]] = {
    "backticks": lambda n: "`<think>" * (n // 8),
    "spans": lambda n: "``<think>`" * (n // 10),
    **HOSTILE,
}


@each("name", BACKTICKS)
def test_work_on_code_grows_with_the_text_and_no_faster(name: str) -> None:
    """Twice the text is at most twice the characters looked at."""
    make = BACKTICKS[name]
    short, long = (examined(make(size), 1, code_is_text=True) for size in (10_000, 20_000))

    assert long <= 2.1 * short


# Delimiters are kept


def restored(message: rs.Message) -> str:
    """The text of an answer with its delimiters where they were."""
    text, shown = "", 0
    removed = [*(message.metadata or {}).get("removedDelimiters", ())]
    for block in message.blocks:
        if isinstance(block, rs.ThinkingBlock):
            usual = ["<think>", "" if block.interrupted else "</think>"]
            opened, closed = (block.provider_metadata or {}).get("delimiters", usual)
            text += opened + block.thought + closed
        elif isinstance(block, rs.TextBlock):
            begin = 0
            while removed and removed[0]["at"] < shown + len(block.text):
                end = removed[0]["at"] - shown
                text += block.text[begin:end] + removed.pop(0)["text"]
                begin = end
            text += block.text[begin:]
            shown += len(block.text)
    return text + "".join(item["text"] for item in removed)


@examples(400)
@given(st.lists(st.sampled_from([p for p in PIECES if "<thi" != p != "nk>"]), max_size=9))
def test_a_cut_can_be_undone(pieces: list[str]) -> None:
    """A thought has its delimiters with their line ends, and a stray one its place."""
    text = "a" + "z".join(pieces) + "z"  # no delimiter directly after another, none re-formed
    message = streamed(text.replace("<z", "z"))

    assert restored(message) == text.replace("<z", "z")


def test_the_usual_delimiters_need_no_note() -> None:
    """A block that notes none stood between ``<think>`` and ``</think>``."""
    (plain,) = streamed(["<think>a</think>b"]).thinking
    (other,) = streamed(["a\n< Thought >\nb\n</thought>\n\nc"]).thinking

    assert plain.provider_metadata is None
    assert (other.provider_metadata or {})["delimiters"] == ["< Thought >\n", "\n</thought>\n\n"]


# Hosts that keep thoughts apart

LEADING = {
    "a literal tag": ("The new <think> tag.", "The new <think> tag.", []),
    "a stray close": ("...done</think>", "...done</think>", []),
    "a block that begins the answer": ("\n<thought>a</thought>\nb", "b", ["a"]),
    "and no other": (
        "<thought>a</thought>b <think>c</think>",
        "b <think>c</think>",
        ["a"],
    ),
    "half a tag": ("<thi", "<thi", []),
    "a block that stays open": ("<thought>a", "", ["a"]),
}


@each("name", LEADING)
@each("provider", ["openai", "azure"])
def test_a_host_that_keeps_thoughts_apart_has_only_a_block_that_begins_the_answer(
    name: str, provider: str
) -> None:
    """The one that a prompt asked for; any other delimiter is text."""
    text, visible, thoughts = LEADING[name]

    for chunks in ([text], text):
        assert told(streamed(chunks, provider=provider)) == (visible, thoughts)
    assert told(whole(text, provider=provider)) == (visible, thoughts)


def test_a_text_after_a_call_does_not_begin_the_answer() -> None:
    """The block comes first or not at all."""
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    deltas = (delta(content="a"), delta(tool_calls=[call]), delta(content="<think>b</think>"))

    assert read(*deltas, provider="openai").text == "a<think>b</think>"


@each("provider", ["vllm", "lmstudio", "ollama", "llama.cpp", "nobody-knows"])
def test_responses_of_local_servers_are_filtered(provider: str) -> None:
    """They serve the protocol also without a parser."""
    part = {
        "type": "output_text",
        "text": "<think>\nHm.\n</think>\n\nHi `<think>`",
        "annotations": [],
    }
    said = {"type": "message", "id": "m", "role": "assistant", "content": [part]}
    body = {"id": "r", "object": "response", "status": "completed", "output": [said]}
    message = rs.normalize_response(body, provider=provider, api="openai.responses")

    assert told(message) == ("Hi `<think>`", ["Hm."])


# A close that nothing opened

UNOPENED = {
    "an answer follows": ("Hm.\n</think>\n\nYes.", "Yes.", ["Hm."]),
    "nothing follows": ("...done</think>", "...done", []),
    "only white space follows": ("...done</think>\n ", "...done\n ", []),
    "it goes on in the line": ("done</think> more", "done more", []),
    "it is quoted": ("Is `</think>`\na tag?", "Is `</think>`\na tag?", []),
    "another comes before": ("<think>a</think>b</think>\nc", "b\nc", ["a"]),
    "two of them": ("a</think>\nb</think>\nc", "b\nc", ["a"]),
    "another name": ("a</thought>\nb", "a\nb", []),
}


@each("name", UNOPENED)
@each("provider", [None, "ollama", "vllm"])
def test_a_whole_answer_may_lack_the_open_of_its_thought(name: str, provider: str | None) -> None:
    """Of a host without a parser; the template opened the thought in the prompt."""
    text, visible, thoughts = UNOPENED[name]

    assert told(whole(text, provider=provider, api="openai.chat")) == (visible, thoughts)


def test_nothing_is_taken_for_a_thought_elsewhere() -> None:
    """With native reasoning, at a host that parses, and under always the mark is only removed."""
    text = "Hm.\n</think>\n\nYes."
    body = {"choices": [{"message": {"reasoning_content": "Plan", "content": text}}]}

    assert told(rs.normalize_response(body)) == ("Hm.\n\n\nYes.", ["Plan"])
    assert told(whole(text, provider="deepseek")) == ("Hm.\n\n\nYes.", [])
    assert told(whole(text, tags="always")) == ("Hm.\n\n\nYes.", [])


def test_a_stream_keeps_the_place_of_the_mark_and_moves_nothing() -> None:
    """The text was shown before the mark came."""
    text = "Hm.\n</think>\n\nYes."
    message = streamed(text, provider="ollama")

    assert told(message) == ("Hm.\n\n\nYes.", [])
    assert (message.metadata or {})["removedDelimiters"] == [{"at": 4, "text": "</think>"}]
