"""Sessions of Claude Code: one message of many lines, branches, compactions, subagents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.importers import formats
from tests.properties import examples

from . import kept

SESSION = kept.of_format("claude-code")


def test_a_session_is_read_as_its_replies_and_not_as_its_lines() -> None:
    """The lines of one reply are one message, and the answers to its calls another."""
    session, subagent = formats.conversations(SESSION)

    assert kept.lines_of(session) == [
        [
            "user: Which of 91 and 97 is prime?",
            "assistant: (Two checks at once. signature) | I will check both. | "
            "Bash({'command': 'factor 91'}) | Bash({'command': 'factor 97'})",
            "tool: Bash -> 91: 7 13 | Bash -> 97: 97",
            "assistant: 97 is prime; 91 is 7 x 13.",
            "user: And 1001?",
            "assistant: It is 7 x 143.",
        ],
        [
            "user: And 101?",
            "assistant: (... encrypted) | 101 is prime.",
            "user: So far: 97 and 101 are prime.",
            "user: Thanks",
            "assistant: Welcome.",
        ],
    ]
    assert kept.lines_of(subagent) == [["user: Count the primes below 10.", "assistant: Four."]]


def test_a_session_is_stored_with_its_branches_and_its_title() -> None:
    """The branch that Claude Code goes on with is the current one; a subagent is archived."""
    with rs.Store("sqlite://") as store:
        store.import_conversations(formats.conversations(SESSION))
        (shown,), (archived,) = store.sessions().items, store.sessions(archived=True).items
        session = store.session(SESSION.stem)

        assert (session.id, session.title) == (shown.id, "Small primes")
        assert session.metadata["cwd"] == "/home/ada/primes"
        assert [(branch.id, branch.parent) for branch in session.branches()] == [(1, None), (2, 1)]
        assert [one.message.text for one in session.history()][4:] == [
            "And 101?",
            "101 is prime.",
            "So far: 97 and 101 are prime.",
            "Thanks",
            "Welcome.",
        ]
        assert (archived.title, archived.metadata["subagentOf"]) == (
            "Count the primes below 10.",
            session.id,
        )


def test_a_signed_thought_goes_back_to_its_provider() -> None:
    """The session can be continued: its signatures and ciphertext are in the next request."""
    with rs.Store("sqlite://") as store:
        store.import_conversations(formats.conversations(SESSION))
        request = store.session(SESSION.stem).build_request(
            provider="anthropic",
            model="claude-opus-5",
            settings={"reasoning.includeInContext": True},
        )

    replies = [one["content"] for one in request.body["messages"] if one["role"] == "assistant"]
    assert [reply[0]["type"] for reply in replies[:3]] == ["thinking", "text", "redacted_thinking"]
    assert replies[0][0]["signature"] == "c2lnbmVk"


def test_a_notice_of_the_program_is_no_reply() -> None:
    """It is named, and not stored as if a model had said it."""
    session, _ = formats.conversations(SESSION)

    assert [(one.place, one.reason) for one in session.report.skipped] == [
        ("line 21", "it is a notice of Claude Code and no reply of a model")
    ]


def test_the_title_is_the_first_prompt_that_was_typed() -> None:
    """No command, and no text that Claude Code wrote, where no title was given."""
    lines = prompts([None, 0, 1])
    lines[0]["isMeta"] = True
    lines[1]["message"]["content"] = "<command-name>/init</command-name>"

    (session,) = formats.conversations(map(json.dumps, lines), format="claude-code")

    assert session.title == "2"


def test_replies_of_a_service_that_repeats_an_id_stay_apart() -> None:
    """A prompt between two lines ends the reply, whatever the second is called."""
    lines = prompts([None, 0, 1, 2, 3])
    for number, text in ((1, "a"), (3, "b"), (4, "c")):
        content = [{"type": "text", "text": text}]
        message = {"role": "assistant", "id": "msg", "model": "qwen3", "content": content}
        lines[number] |= {"type": "assistant", "message": message}

    (session,) = formats.conversations(map(json.dumps, lines), format="claude-code")

    assert kept.lines_of(session) == [["user: 0", "assistant: a", "user: 2", "assistant: b | c"]]


def test_a_call_that_waits_for_its_answer_is_left_until_it_has_it() -> None:
    """A session that is at work can be imported, and again when it has gone on."""
    lines = SESSION.read_text("utf-8").splitlines()
    with rs.Store("sqlite://") as store:
        news = []
        for upto in (3, 4, 5, 6, 7, 8, 9, 10, len(lines)):
            done = store.import_conversations(
                formats.conversations(lines[:upto], format="claude-code")
            )
            assert done.refused == []
            news.append(done.new)

    assert news == [1, 0, 0, 0, 0, 1, 1, 1, 9]


def prompts(parents: Sequence[int | None]) -> list[dict[str, Any]]:
    """Return a line for each prompt, after the one with the number of its parent."""
    return [
        {
            "parentUuid": None if parent is None else str(parent),
            "isSidechain": False,
            "type": "user",
            "message": {"role": "user", "content": str(number)},
            "uuid": str(number),
            "sessionId": "s",
        }
        for number, parent in enumerate(parents)
    ]


def paths(parents: Sequence[int | None]) -> set[str]:
    """Return the way to each prompt that none follows."""

    def way(number: int | None) -> str:
        return "" if number is None else f"{way(parents[number])} {number}"

    return {way(number) for number in range(len(parents)) if number not in parents}


trees = st.lists(st.integers(0, 9), min_size=1, max_size=9).map(
    lambda picks: [
        None if number == 0 or pick > number else pick % number for number, pick in enumerate(picks)
    ]
)


@examples(60)
@given(parents=trees, upto=st.integers(0, 9))
def test_any_tree_is_stored_as_its_branches_in_one_import_or_in_two(
    parents: list[int | None], upto: int
) -> None:
    """No prompt is lost or written twice, wherever the tree grew between the imports."""
    lines = [json.dumps(line) for line in prompts(parents)]
    with rs.Store("sqlite://") as store:
        new = 0
        for part in (lines[:upto], lines, lines):
            read = list(formats.conversations(part, format="claude-code"))
            dry = store.import_conversations(read, dry_run=True)
            done = store.import_conversations(read)
            assert (done.refused, dry.new) == ([], done.new)
            new += done.new
        session = store.session("s")
        stored = {
            "".join(f" {one.message.text}" for one in session.branch(branch.id).history())
            for branch in session.branches()
        }

        assert (new, stored) == (len(parents), paths(parents))
        assert session.history()[-1].message.text == str(len(parents) - 1)
        assert store.verify().problems == ()


def test_a_session_that_went_on_elsewhere_is_refused_whole(tmp_path: Path) -> None:
    """A message of the application stands where the file goes on: neither is written over."""
    lines = [json.dumps(line) for line in prompts([None, 0, 1, 0])]
    with rs.Store("sqlite://") as store:
        store.import_conversations(formats.conversations(lines[:2], format="claude-code"))
        store.session("s").append(rs.user("Something else"))
        done = store.import_conversations(formats.conversations(lines, format="claude-code"))

        assert [one.refused for one in done.refused] == [
            "the session has other messages after message 2"
        ]
        assert len(store.session("s").branches()) == 1
