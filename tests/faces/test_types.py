"""What a type checker tells an application: the public names in use, each with its type.

The calls run here, where ``assert_type`` does nothing. ``make types`` reads it: there it is an
error that something has another type than is stated, or none.
"""

from __future__ import annotations

import asyncio
import pydoc
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, assert_type

import pytest

import reasoning_store as rs
from reasoning_store.testing import carries, refusal, response, sse, stream

REPLY = rs.assistant(
    rs.ThinkingBlock(thought="7 * 13.", source_field="reasoning_content"),
    "No.",
    rs.ToolCallBlock(id="c1", name="factor", parameters={"n": 91}),
    origin=rs.Origin(provider="moonshot", model="kimi-k2-thinking"),
    finish_reason="tool_calls",
)
TO: dict[str, str] = {"provider": "moonshot", "model": "kimi-k2-thinking"}
TOOLS: list[dict[str, Any]] = [{"name": "factor", "parameters": {"type": "object"}}]


def test_what_arrives_has_types() -> None:
    """Text that is taken apart, streams and whole responses."""
    split = rs.split_reasoning("<think>Hm.</think>No.", tags=None, starts_inside=False)
    assert_type(split, rs.results.Split)
    assert_type(
        (split.visible, split.thoughts, split.interrupted), tuple[str, tuple[str, ...], bool]
    )

    tags = rs.TagFilter(tags=None, starts_inside=False)
    for run in [*tags.feed("<think>Hm.</think>No."), *tags.finish()]:
        assert_type(run, rs.results.Run)
        assert_type(run.kind, Literal["visible", "thinking"])
        assert_type((run.text, run.block), tuple[str, int])
    tags.reset()

    reader = rs.StreamNormalizer(provider="moonshot", model=None, api=None)
    chunks = [chunk for event in stream(REPLY, api="openai.chat") for chunk in reader.feed(event)]
    assert_type(chunks, list[rs.Chunk])
    assert_type(reader.finish(interrupted=False), rs.Message)
    body = response(REPLY, api="openai.chat")
    assert_type(rs.normalize_response(body, provider="moonshot"), rs.Message)


def said(chunk: rs.Chunk) -> object:
    """Return what a chunk says: each kind is distinguished by its literal or its class."""
    match chunk:
        case rs.ReasoningChunk():
            assert_type(chunk.phase, Literal["start", "delta", "end"])
            return chunk.text, chunk.provider, chunk.content_index, chunk.is_complete
        case rs.TextChunk():
            return chunk.text, chunk.choice
        case rs.ToolCallChunk():
            return chunk.index, chunk.id, chunk.name, chunk.arguments, chunk.is_complete
        case rs.UsageChunk():
            assert_type(chunk.usage, rs.Usage)
            return chunk.usage.output
        case rs.FinishChunk():
            return chunk.reason
        case rs.BlockChunk() | rs.OriginChunk() | rs.ErrorChunk() | rs.UnknownChunk():
            return chunk.type


def shown(block: rs.Block) -> str:
    """Return what a block shows, by its literal alone."""
    if block.type == "text":
        assert_type(block, rs.TextBlock)
        return block.text
    if block.type == "thinking":
        assert_type(block, rs.ThinkingBlock)
        return block.thought
    return block.type


def test_what_leaves_has_types() -> None:
    """Selections, requests, counts and what the other settings would do."""
    settings = rs.ReasoningSettings(include_in_context=True, strip_from_context="allButLast")
    by_key: Mapping[str, Any] = {"reasoning.includeInContext": True}
    assert_type(rs.ReasoningSettings.model_validate(by_key), rs.ReasoningSettings)
    messages = [rs.user("Is 91 prime?"), REPLY, rs.tool(rs.ToolResponseBlock(call_id="c1"))]

    selection = rs.select(messages, settings=settings, provider="moonshot", model="k", api=None)
    assert_type(selection.messages, tuple[rs.Message, ...])
    for verdict in selection.verdicts:
        assert_type(verdict, rs.results.Verdict)
        assert_type(
            verdict.rule,
            Literal[
                "kept",
                "required",
                "withheld",
                "bound",
                "origin",
                "no_place",
                "unsigned",
                "strip",
                "include",
            ],
        )
        assert_type((verdict.message, verdict.block, verdict.tokens), tuple[int, int, int])
        assert_type((verdict.kept, verdict.reason), tuple[bool, str])

    request = rs.build_request(
        messages, settings=by_key, provider="moonshot", system="Be brief.", tools=TOOLS, extra={}
    )
    assert_type(request, rs.Request)
    assert_type(request.body, dict[str, Any])
    assert_type(request.kwargs, dict[str, Any])
    assert_type(request.tokens, rs.results.TokenCount)
    assert_type(request.verdicts, tuple[rs.results.Verdict, ...])
    assert_type(request.warnings, tuple[rs.results.RequestWarning, ...])
    assert_type(request.cache_break, int | None)
    assert_type(request.settings.resolved(), dict[str, rs.results.Resolved])
    assert_type(request.target, rs.Origin)
    held = [one for one in request.warnings if one.code == "floor_unmet"]
    assert_type(held, list[rs.results.RequestWarning])

    count = rs.effective_tokens(messages, settings=by_key, system="Be brief.", tools=TOOLS)
    assert_type((count.effective, count.raw, count.fixed), tuple[int, int, int])
    assert_type(
        count.exactness, Literal["exact", "calibrated", "approximate", "reported", "estimated"]
    )
    assert_type(count.encoding, str)
    for row in rs.what_if(messages, settings=settings).rows:
        assert_type(row, rs.results.Alternative)
        assert_type(row.first_change, int | None)

    assert_type(rs.visible_parts(REPLY, settings), tuple[rs.Block, ...])
    assert "".join(map(shown, rs.visible_parts(REPLY, settings))) == "7 * 13.No.tool_call"
    explained = rs.explain_refusal("moonshot", "reasoning_content is missing in assistant")
    assert_type(explained, rs.results.Explanation | None)
    renderer = rs.ReasoningRenderer()
    text = renderer.thinking("Hm.") + renderer.progress("1 of 2") + renderer.answer("No.")
    assert_type(text + renderer.close(), str)


def test_a_store_has_types(tmp_path: Path) -> None:
    """Each verb, and what it gives."""
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    with rs.Store(
        url, masker=rs.SecretMasker(values=["hunter2-x"]), encoding="o200k_base"
    ) as store:
        assert_type(store, rs.Store)
        mine = store.for_owner("user-7")
        assert_type(mine, rs.results.Owner)
        session = mine.session("chat-42", create=True)
        assert_type(session, rs.Session)
        assert_type((session.id, session.owner, session.title), tuple[str, str, str | None])
        assert_type(session.metadata, dict[str, Any])
        assert_type(session.updated_at, datetime)
        page = mine.sessions(limit=50, after=None, archived=False)
        assert_type(page.items, list[rs.Session])
        assert_type(page.next, str | None)

        one = session.append(
            rs.user("Is 91 prime?"), idempotency_key="k1", after=None, created_at=datetime.now(UTC)
        )
        assert_type(one, rs.results.Stored)
        assert_type((one.id, one.position, one.branch, one.tokens), tuple[str, int, int, int])
        assert_type((one.created_at, one.message, one.is_new), tuple[datetime, rs.Message, bool])
        assert_type(one.siblings, tuple[int, ...])

        request = session.build_request(
            provider="moonshot", model="kimi-k2-thinking", system="...", tools=TOOLS, extra={}
        )
        events: Iterator[dict[str, Any]] = iter(stream(REPLY, api="openai.chat", pieces=7))
        with session.record(events, request=request, idempotency_key="k2") as reply:
            assert_type(reply, rs.Recording)
            for chunk in reply:
                assert_type(chunk, rs.Chunk)
                said(chunk)
        assert_type(reply.stored, rs.results.Stored | None)
        assert_type(reply.message, rs.Message | None)
        assert_type(reply.tool_calls, tuple[rs.ToolCallBlock, ...])
        answers = [
            rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result=[7, 13]))
            for call in reply.tool_calls
        ]
        assert_type(session.append(answers), list[rs.results.Stored])
        several: Sequence[rs.Message] = (rs.assistant("No."), rs.user("Why?"))
        assert_type(session.append(several), list[rs.results.Stored])

        assert_type(session.history(limit=2, tokens=99, before=9, after=1), list[rs.results.Stored])
        assert_type(session.get(1), rs.results.Stored)
        usage = session.usage(limit=212_000, at=None, system=None, tools=None)
        assert_type(usage, rs.results.ContextUsage)
        assert_type(usage.limit, int | None)
        assert_type(session.what_if(provider="moonshot").current, rs.results.Alternative)

        plan = session.compression(limit=212_000, threshold=0.85, reserve=8_192)
        assert_type(plan, rs.Plan)
        assert_type(plan.action, Literal["none", "warn", "strip", "clear", "summarize", "refuse"])
        assert_type(plan.steps, tuple[rs.results.Step, ...])
        assert_type(plan.to_summarize, rs.results.Range | None)
        assert_type(plan.after, int)
        if plan.steps:
            assert_type(session.compact(plan, summary="..."), rs.results.Compaction | None)
        for compaction in session.compactions():
            assert_type(compaction, rs.results.Compaction)
            session.undo(compaction.id)

        assert_type(session.fork(at=2), rs.Session)
        assert_type(session.edit(1, rs.user("Is 97 prime?")), rs.results.Stored)
        session.activate(1)
        assert_type(session.branch(1).pop_turn(), rs.Session)
        assert_type(session.branch(1).regenerate(2), rs.Session)
        assert_type(session.branches(), list[rs.results.Branch])

        session.settings.set("reasoning.effort", "high")
        session.settings.unset("reasoning.effort")
        profile = mine.settings.profiles.set("quiet", {"reasoning.enabled": False})
        assert_type(profile, rs.results.Profile)
        session.settings.use("quiet")
        held = session.settings.resolved()["reasoning.enabled"]
        assert_type(held, rs.results.Resolved)
        layers = Literal["call", "session", "profile", "owner", "environment", "default"]
        assert_type(held.layer, layers)
        assert_type(mine.budget(limit=50_000, since=None), rs.results.Budget)
        budget = session.budget(limit=50_000, warn_at=0.8)
        assert_type(budget.state, Literal["ok", "warning", "exceeded", "unknown"])
        assert_type(budget.crossed, tuple[Literal["warning", "exceeded"], ...])

        for line in store.report(by="model", since=None, until=None):
            assert_type((line.model, line.output, line.unreported), tuple[str | None, int, int])
        lines = store.export_lines(session=None)
        assert_type(lines, Iterator[str])
        assert_type(store.import_lines(lines), rs.results.Imported)
        for problem in store.verify().problems:
            assert_type(problem, rs.results.Problem)
        assert_type(store.backup(tmp_path / "copy.db"), rs.results.BackedUp)
        assert_type(store.scrub(), tuple[str, ...])
        assert_type(session.erase(1, only="reasoning"), rs.results.Erased)
        assert_type(mine.erase(), rs.results.Erased)


def test_an_awaited_store_has_types(tmp_path: Path) -> None:
    """The same names, awaited; a recording is an asynchronous iterator."""

    async def events() -> AsyncIterator[dict[str, Any]]:
        for event in stream(REPLY, api="openai.chat"):
            yield event

    async def work() -> None:
        async with rs.AsyncStore(f"sqlite:///{tmp_path / 'chat.db'}") as store:
            assert_type(store, rs.AsyncStore)
            mine = store.for_owner("user-7")
            assert_type(mine, rs.results.AsyncOwner)
            session = await mine.session("chat-42", create=True)
            assert_type(session, rs.AsyncSession)
            page = await mine.sessions()
            assert_type(page.items, list[rs.AsyncSession])
            assert_type(await session.append(rs.user("Is 91 prime?")), rs.results.Stored)
            request = await session.build_request(provider="moonshot", extra={"stream": True})
            assert_type(request, rs.Request)
            async with session.record(events(), request=request) as reply:
                assert_type(reply, rs.AsyncRecording)
                async for chunk in reply:
                    assert_type(chunk, rs.Chunk)
                    said(chunk)
            assert_type(reply.stored, rs.results.Stored | None)
            answer = rs.tool(rs.ToolResponseBlock(call_id="c1", result="7 * 13"))
            assert_type(
                await session.append([answer, rs.assistant("No.")]), list[rs.results.Stored]
            )
            assert_type(await session.history(), list[rs.results.Stored])
            assert_type(await session.get(1), rs.results.Stored)
            assert_type(await session.usage(limit=9_000), rs.results.ContextUsage)
            assert_type(await session.what_if(), rs.results.WhatIf)
            plan = await session.compression(limit=9_000)
            assert_type(plan, rs.Plan)
            assert_type(await session.compactions(), list[rs.results.Compaction])
            assert_type(await session.fork(at=2), rs.AsyncSession)
            assert_type(await session.edit(1, rs.user("Is 97 prime?")), rs.results.Stored)
            assert_type(await session.branches(), list[rs.results.Branch])
            first = await session.branch(1)
            assert_type(await first.pop_turn(), rs.AsyncSession)
            await session.settings.set("reasoning.effort", "high")
            assert_type(await session.settings.resolved(), dict[str, rs.results.Resolved])
            assert_type(await store.settings.profiles.all(), list[rs.results.Profile])
            assert_type(await session.budget(limit=50_000), rs.results.Budget)
            assert_type(await store.report(by="day"), list[rs.results.ReportRow])
            lines = store.export_lines()
            assert_type(lines, AsyncIterator[str])
            assert_type(await store.import_lines(lines), rs.results.Imported)
            assert_type(await store.verify(), rs.results.Verified)
            assert_type(await store.backup(tmp_path / "copy.db"), rs.results.BackedUp)
            assert_type(await store.scrub(), tuple[str, ...])
            assert_type(await session.erase(1), rs.results.Erased)

    asyncio.run(work())


def test_the_verbs_that_are_made_from_a_context_have_its_keywords() -> None:
    """For a type checker, for ``help``, and at the call."""
    with rs.Store("sqlite://") as store:
        session = store.session("chat-42", create=True)
        with pytest.raises(TypeError, match="modle"):
            session.usage(modle="kimi-k2-thinking")  # type: ignore[call-arg]
        with pytest.raises(rs.InvalidCall, match="limit"):
            session.compression(limit="much")  # type: ignore[arg-type]
        assert session.context(limit=9).usage(limit=7, provider="moonshot").limit == 7

    for session_face in (rs.Session, rs.AsyncSession):
        for verb in ("build_request", "usage", "what_if", "compression", "record"):
            assert "base_url: " in pydoc.render_doc(getattr(session_face, verb)), verb


def test_what_goes_wrong_has_types(tmp_path: Path) -> None:
    """One root with a hint, and next to it what each error knows."""
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        with pytest.raises(rs.ReasoningStoreError) as caught:
            store.session("absent")
        assert_type(caught.value.hint, str | None)
        with pytest.raises(rs.SettingError) as refused:
            store.session("chat", create=True).settings.set("reasoning.format", "xml")
        assert_type(refused.value.key, str | None)


def test_what_tests_use_has_types() -> None:
    """The streams of every protocol, and the strict provider."""
    assert_type(stream(REPLY, api="anthropic.messages", pieces=7), list[dict[str, Any]])
    assert_type(sse(stream(REPLY, api="openai.chat"), api="openai.chat"), bytes)
    assert_type(carries(REPLY, api="openai.chat"), bool)
    said = refusal({}, provider="deepseek", model="deepseek-chat")
    assert_type(said, str | None)
