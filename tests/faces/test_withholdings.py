"""Parts of messages that requests leave out: stored, counted, shared, carried along, taken back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from tests.egress.histories import answer, call
from tests.properties import each

CLAUDE: dict[str, Any] = {"provider": "anthropic", "model": "claude-opus-5"}
ORIGIN = rs.Origin(provider="anthropic", api="anthropic.messages", model="claude-opus-5")
IMAGE = rs.MediaBlock(kind="image", mime_type="image/png", data=b"\x89PNG....")
SIGNED = rs.ThinkingBlock(thought="Look twice.", source_field="thinking", signature="c2ln")
PICTURES = [
    {"type": "text", "text": "a street"},
    {"type": "media", "kind": "image", "mimeType": "image/png", "data": "iVBORw0K"},
]
LOOP = [
    rs.user("What is there?", IMAGE),
    rs.assistant(SIGNED, "Let me look.", call("call_1"), call("call_2"), origin=ORIGIN),
    answer("call_1"),
    rs.tool(rs.ToolResponseBlock(call_id="call_2", tool_name="get_weather", result=PICTURES)),
]


def begun(store: rs.Store, name: str | None = None) -> rs.Session:
    session = store.session(name, create=True)
    session.append(LOOP)
    return session


def written(session: rs.Session) -> str:
    return str(session.build_request(**CLAUDE).body["messages"])


PARTS: dict[str, tuple[dict[str, Any], list[tuple[int, int, str]], str]] = {
    "a thought": ({"at": 2}, [(2, 0, "block")], "Look twice."),
    "an image": ({"at": 1, "block": 1}, [(1, 1, "block")], "iVBORy4uLi4"),
    "a text": ({"at": 2, "block": 1}, [(2, 1, "block")], "Let me look."),
    "a piece of a result": ({"at": 4, "block": 0, "part": 1}, [(4, 0, "1")], "iVBORw0K"),
    "a call and its response": (
        {"at": 2, "block": 2},
        [(2, 2, "block"), (3, 0, "block")],
        "'call_1'",
    ),
    "a response and its call": (
        {"at": 4, "block": 0},
        [(2, 3, "block"), (4, 0, "block")],
        "'call_2'",
    ),
}


@each("part", PARTS)
def test_a_part_is_left_out_counted_less_and_sent_again(part: str) -> None:
    """Usage, request and verdicts agree; undo brings the very request back."""
    given, expected, text = PARTS[part]
    with rs.Store("sqlite://") as store:
        session = begun(store)
        before, counted = session.build_request(**CLAUDE).body, session.usage(**CLAUDE)
        found = session.withhold(**given, reason="it is wrong")
        request = session.build_request(**CLAUDE)
        usage = session.usage(**CLAUDE)

        assert sorted((one.position, one.block, one.part) for one in found) == expected
        assert session.withheld() == sorted(found, key=lambda one: (one.position, one.block))
        assert text not in written(session)
        assert request.tokens.effective == usage.effective
        assert counted.effective - usage.effective == sum(one.tokens for one in found)
        assert request.tokens.raw == counted.raw
        left_out = [v for v in request.verdicts if v.rule == "withheld"]
        assert [(v.message, v.block) for v in left_out] == [one[:2] for one in expected]
        assert {v.reason for v in left_out} == {"it is wrong"}
        assert not {"no_result", "response_orphan"} & {w.code for w in request.warnings}
        for one in found:
            assert session.undo(one.id) == one
        assert session.build_request(**CLAUDE).body == before


def test_a_message_without_its_only_image_still_has_its_place() -> None:
    """Roles go on alternating, and a placeholder says what was there."""
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        session.append([rs.user(IMAGE), rs.assistant("A street.", origin=ORIGIN), rs.user("Sure?")])
        session.withhold(1)

        assert "an attachment was left out" in written(session)


def test_the_seal_of_a_call_is_left_out_alone() -> None:
    """The documented placeholder takes its place, with a warning."""
    gemini: dict[str, Any] = {"provider": "google", "model": "gemini-3-pro"}
    origin = rs.Origin(api="gemini.generate_content", **gemini)
    made = rs.ToolCallBlock(
        id="c", name="look", parameters={}, provider_metadata={"thoughtSignature": "c2ln"}
    )
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        session.append([rs.user("Go."), rs.assistant(made, origin=origin), answer("c")])
        (one,) = session.withhold(2, 0, "seal")
        request = session.build_request(**gemini)

        assert one.tokens == 0
        (part,) = request.body["contents"][1]["parts"]
        assert part["functionCall"]["name"] == "look"
        assert part["thoughtSignature"] == "skip_thought_signature_validator"
        assert "floor_unmet" in {warning.code for warning in request.warnings}


def test_a_withholding_is_shared_by_forks_and_changes_no_other_conversation(
    store: rs.Store,
) -> None:
    """It belongs to the message, on both engines."""
    session, other = begun(store, "one"), begun(store, "other")
    untouched = written(other)
    fork = session.fork(at=5)
    (one,) = session.withhold(2)

    assert "Look twice." not in written(fork)
    assert fork.withheld() == [one]
    assert session.withhold(2) == []
    assert written(other) == untouched
    assert session.fork(at=2).withheld() == []
    fork.undo(one.id)
    assert session.withheld() == []
    assert [one.id for one in session.withhold(2)] == [one.id]


def test_an_export_carries_it_and_an_erasure_takes_it(store: rs.Store) -> None:
    """Inside the line of its message."""
    session = begun(store, "one")
    session.withhold(2)
    session.withhold(1, 1)
    lines = [*store.export_lines(session="one")]
    with rs.Store("sqlite://") as copy:
        copy.import_lines(lines)
        copy.import_lines(lines)
        imported = copy.session("one")

        assert imported.withheld() == session.withheld()
        assert written(imported) == written(session)
        assert copy.verify().problems == ()
        assert [*copy.export_lines(session="one")] == lines
    session.erase(1)
    assert [one.position for one in session.withheld()] == [2]
    session.erase(only="reasoning")
    assert session.withheld() == []
    assert store.verify().problems == ()


def test_a_withholding_of_a_block_that_is_not_there_is_a_problem() -> None:
    """Verify reads each row."""
    with rs.Store("sqlite://") as store:
        session = begun(store, "one")
        session.withhold(2)
        lines = [*store.export_lines(session="one")]
    bad = [line.replace('"withheld":[{"block":0', '"withheld":[{"block":9') for line in lines]
    with rs.Store("sqlite://") as copy, pytest.raises(rs.InvalidCall, match="withheld"):
        copy.import_lines(bad)


def test_a_refusal_is_stored_masked_and_short() -> None:
    """An error of a provider may repeat a secret."""
    masker = rs.SecretMasker(["hunter22hunter22"])
    with rs.Store("sqlite://", masker=masker) as store:
        session = begun(store)
        text = "messages.1.content.0: Invalid `signature` in `thinking` block hunter22hunter22 "
        found = session.recover(text * 20, session.build_request(**CLAUDE))
        (one,) = found.withheld

        assert one.error is not None
        assert "hunter22" not in one.error
        assert len(one.error) == 500
        (by_hand,) = session.withhold(1, 0, reason="has hunter22hunter22")
        assert "hunter22" not in by_hand.reason
        assert one.target == rs.Origin(provider="anthropic", api="anthropic.messages")


def test_it_holds_at_the_host_that_refused_it() -> None:
    """By hand it holds everywhere."""
    with rs.Store("sqlite://") as store:
        session = begun(store)
        request = session.build_request(**CLAUDE, settings={"reasoning.includeInContext": True})
        text = "messages.0.content.1.image.source.base64.data: image exceeds 5 MB maximum"
        assert session.recover(text, request).request is not None
        at_openai = session.build_request(provider="openai", model="gpt-5.6", api="openai.chat")

        assert "iVBORy4uLi4" in str(at_openai.body)
        assert "iVBORy4uLi4" not in written(session)


BAD: dict[str, tuple[str, str]] = {
    "a refusal of a parameter": (
        "Temperature may only be set to 1 when thinking is enabled",
        "temperature",
    ),
    "an unknown text": ("Internal server error", "not known"),
    "an index that no message has": (
        "messages.40.content.0: Invalid `signature` in `thinking` block",
        "the request has 3",
    ),
    "a block that was never sent": ("messages: text content blocks must be non-empty", "no block"),
}


@each("case", BAD)
def test_a_refusal_about_no_block_returns_the_reason(case: str) -> None:
    """Nothing is left out, and nothing is stored."""
    text, reason = BAD[case]
    with rs.Store("sqlite://") as store:
        session = begun(store)
        found = session.recover(text, session.build_request(**CLAUDE))

        assert found.request is None
        assert reason in found.reason
        assert session.withheld() == []


def test_a_request_of_another_conversation_is_not_recovered() -> None:
    """Nor one that was made before something arrived; one of a free function is, if it is equal."""
    text = "messages.1.content.0: Invalid `signature` in `thinking` block"
    with rs.Store("sqlite://") as store:
        session, other = begun(store), store.session(create=True)
        other.append(rs.user("Hello"))
        foreign = session.recover(text, other.build_request(**CLAUDE))
        free = rs.build_request(session.history(), **CLAUDE)
        found = session.recover(text, free)

        assert foreign.request is None
        assert "not one of this conversation" in foreign.reason
        assert [one.position for one in found.withheld] == [2]
        assert session.recover(text, free).request is None


def test_wrong_names_are_refused() -> None:
    """With the values that are allowed."""
    with rs.Store("sqlite://") as store:
        session = begun(store)
        request = session.build_request(**CLAUDE)
        for call_, match in (
            (lambda: session.withhold(2, 9), "blocks 0 to 3"),
            (lambda: session.withhold(2, 0, "seal"), "no such part"),
            (lambda: session.withhold(4, 0, 7), "no such part"),
            (lambda: session.withhold(3), "no thought and no media"),
            (lambda: session.recover(7, request), "error must be"),
            (lambda: session.recover("x", None), "request: "),  # type: ignore[arg-type]
            (lambda: session.context().recover("x"), "no request yet"),
        ):
            with pytest.raises(rs.InvalidCall, match=match):
                call_()
        with pytest.raises(rs.NotFound, match="left out"):
            session.undo("m/0/block")


def test_the_awaited_verbs_do_the_same(url: str) -> None:
    """On both engines; what asks is awaited."""
    text = "Invalid `signature` in `thinking` block"

    async def main() -> None:
        async with rs.AsyncStore(url) as store:
            session = await store.session(create=True)
            await session.append(LOOP)
            context = session.context(**CLAUDE)
            await context.request()
            asked = []

            async def ask(request: rs.Request) -> object:
                asked.append(request)
                return None

            found = await context.recover(text, ask=ask)
            (one,) = found.withheld
            assert found.is_certain
            assert await session.withheld() == [one]
            assert await session.undo(one.id) == one
            again = await session.withhold(2)
            assert [one.position for one in again] == [2]
            refused = await session.recover(text, await context.request())
            assert refused.request is None

    asyncio.run(main())


@given(st.data())
def test_whatever_is_left_out_usage_is_the_count_of_the_request(data: st.DataObject) -> None:
    """And each undo takes one step back."""
    with rs.Store("sqlite://") as store:
        session = begun(store)
        bodies = [session.build_request(**CLAUDE).body]
        steps = []
        for _ in range(data.draw(st.integers(1, 6))):
            at = data.draw(st.integers(1, 4))
            blocks = session.get(at).message.blocks
            found = session.withhold(at, data.draw(st.integers(0, len(blocks) - 1)))
            steps.append(found)
            request = session.build_request(**CLAUDE)
            bodies.append(request.body)
            assert session.usage(**CLAUDE).effective == request.tokens.effective
            assert request.tokens.raw - request.tokens.effective == sum(
                verdict.tokens for verdict in request.verdicts if not verdict.kept
            )
        for found in reversed(steps):
            for one in found:
                session.undo(one.id)
            bodies.pop()
            assert session.build_request(**CLAUDE).body == bodies[-1]
