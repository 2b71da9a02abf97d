"""llm's logs: both layouts, read without writing a byte."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.formats import Conversation
from reasoning_store.importers import formats

from . import dirty, llm_logs
from .llm_logs import Logs, text, thought


def only(path: Path) -> Conversation:
    (one,) = formats.conversations(path, format="llm")
    return one


def messages(path: Path) -> list[Message]:
    return [item.message for item in only(path).items]


def test_old_responses_are_counted_to_the_last_delimiter(tmp_path: Path) -> None:
    """Reasoning in, reasoning stored, texts unchanged and cleaned, as counted by hand."""
    one = only(llm_logs.responses(tmp_path / "logs.db"))

    assert dirty.counts(one.report, llm_logs.OLD_COUNTS) == llm_logs.OLD_COUNTS
    assert (one.id, one.title, one.report.skipped) == ("01old", "Is 91 prime?", ())


def test_old_responses_become_prompt_answer_and_calls(tmp_path: Path) -> None:
    """Fragments stand before the prompt, as they were sent; an answer follows its call."""
    system, prompt, call, answer, reply = messages(llm_logs.responses(tmp_path / "logs.db"))

    assert system.blocks == (TextBlock(text="Be brief."),)
    assert prompt.blocks == (
        TextBlock(text="From a file.</think>\n<think>Is 91 prime?"),
        MediaBlock(kind="image", mime_type="image/png", data=b"\x89PNG"),
    )
    assert (call.text, [block.thought for block in call.thinking]) == ("Let me check.", ["7 x 13"])
    assert call.usage is not None
    assert (call.usage.input, call.usage.output, call.usage.reasoning) == (9, 5, 3)
    assert answer.blocks == (
        ToolResponseBlock(
            call_id=call.tool_calls[0].id, tool_name="factor", result="<think>7 13</think>"
        ),
    )
    assert (reply.text, [block.thought for block in reply.thinking]) == ("No.", ["So it is not."])


def test_a_thread_is_counted_to_the_last_delimiter(tmp_path: Path) -> None:
    """Reasoning in, reasoning stored, texts unchanged and cleaned, as counted by hand."""
    one = only(llm_logs.thread(tmp_path / "logs.db"))

    assert dirty.counts(one.report, llm_logs.NEW_COUNTS) == llm_logs.NEW_COUNTS
    assert (one.id, one.title, one.report.skipped) == ("02new", "Primes", ())


def test_a_thread_keeps_what_each_provider_wants_back(tmp_path: Path) -> None:
    """Ciphertext, signatures and ids stand where each protocol looks for them."""
    found = messages(llm_logs.thread(tmp_path / "logs.db"))
    origins = [(m.origin and m.origin.provider, m.origin and m.origin.model) for m in found]

    assert found[2].thinking == (
        ThinkingBlock(
            thought="Try 7.",
            source_field="reasoning.summary",
            encrypted=dirty.CIPHER,
            provider_metadata={"item_id": "rs_1", "item_type": "reasoning", "summary": ["Try 7."]},
        ),
    )
    assert found[4].thinking == (
        ThinkingBlock(thought="So not.", source_field="thinking", signature=dirty.SIGNATURE),
        ThinkingBlock(
            source_field="redacted_thinking",
            is_hidden=True,
            encrypted=dirty.CIPHER,
            redacted=True,
            provider_metadata={"block_type": "redacted_thinking"},
        ),
    )
    assert found[6].thinking == (
        ThinkingBlock(thought="97.", source_field="thought", signature=dirty.SIGNATURE),
    )
    assert [block.thought for block in found[8].thinking] == ["Sure.", "x"]
    assert [origins[place] for place in (2, 4, 6, 8)] == [
        ("openai", "gpt-5.2-2026"),
        ("anthropic", "claude-opus-5"),
        ("google", "gemini-3-pro"),
        (None, "local"),
    ]


def test_a_thread_keeps_texts_calls_media_and_times(tmp_path: Path) -> None:
    """A text is put together from its fragments; a turn says when, and what it used."""
    one = only(llm_logs.thread(tmp_path / "logs.db"))
    found = [item.message for item in one.items]

    assert found[1].blocks == (
        TextBlock(text="<think>Is 91?"),
        MediaBlock(kind="audio", mime_type="audio/mpeg", url="https://example.org/a.mp3"),
    )
    assert list(found[2].tool_calls[0].parameters.items()) == [("n", 91), ("a", 1)]
    assert found[3].blocks == (
        ToolResponseBlock(
            call_id="call_1", tool_name="factor", result="7 13</think>", is_error=True
        ),
    )
    assert found[4].text == "No."
    assert (found[4].metadata or {})["source"]["parts"][0]["name"] == "web_search"
    assert found[2].usage is not None
    assert (found[2].usage.output, found[2].usage.reasoning) == (6, 4)
    assert [str(item.created_at)[:19] for item in one.items[:6]] == [
        *["2026-03-01 00:00:00"] * 3,
        *["2026-03-01 00:00:09"] * 2,
        "None",
    ]


def test_a_conversation_that_llm_moved_has_the_keys_it_had(tmp_path: Path) -> None:
    """What was logged as responses and goes on as a thread is the same conversation."""
    before = only(llm_logs.responses(tmp_path / "before.db", threads=False))
    path = llm_logs.responses(tmp_path / "after.db")
    after = Logs(path)
    after.add("threads", id="01old", name="Is 91 prime?")
    call = {"type": "tool_call", "name": "factor", "arguments": {"n": 91}}
    answer = {"type": "tool_result", "name": "factor", "output": "<think>7 13</think>"}
    after.message("m1", None, "system", text("Be brief."))
    after.message("m2", "m1", "user", text("From a file.</think>\n<think>Is 91 prime?"))
    after.message("m3", "m2", "assistant", text("<think>7 x 13</think>Let me check."), call)
    after.message("m4", "m3", "tool", answer)
    after.message("m5", "m4", "assistant", thought("So it is not."), text("No.</think>"))
    after.message("m6", "m5", "user", text("And 97?"))
    after.message("m7", "m6", "assistant", text("Yes."))
    after.turn("t1", "01old", "m6", "m7", model="m", datetime_utc="2026-04-01T00:00:00+00:00")
    after.close()
    moved = only(path)

    assert [item.key for item in moved.items][:5] == [item.key for item in before.items]
    assert len(moved.items) == 7
    assert moved.report.skipped == ()


def test_any_text_of_a_log_comes_back_as_it_was(tmp_path: Path) -> None:
    """NUL, half of a pair in JSON, and bytes that are no text; the store mends the last two."""
    logs = Logs(tmp_path / "logs.db")
    logs.add("threads", id="t")
    logs.message(
        "m1", None, "user", text(dirty.NUL), {"type": "text", "text_ref": [{"literal": dirty.LONE}]}
    )
    logs.turn("t1", "t", None, "m1", model="m")
    path = logs.close()
    with sqlite3.connect(path) as file:
        file.execute("UPDATE parts SET text = CAST(x'ff61' AS TEXT) WHERE position = 0")
        file.execute("UPDATE parts SET position = 2 WHERE position = 0")
        file.execute(
            "INSERT INTO parts (message_hash, position, type, text) VALUES ('m1', 0, 'text', ?)",
            (dirty.NUL,),
        )
    file.close()

    assert messages(path)[0].text == f"{dirty.NUL}\ud83d\udcffa"


def test_a_file_to_0_31_has_no_threads_and_is_read(tmp_path: Path) -> None:
    """The tables that came later are not asked for."""
    path = llm_logs.responses(tmp_path / "logs.db", threads=False)
    with sqlite3.connect(path) as file:
        file.execute("ALTER TABLE responses DROP COLUMN reasoning")
        file.execute("ALTER TABLE responses DROP COLUMN resolved_model")
        for table in ("tool_results_attachments", "system_fragments"):
            file.execute(f"DROP TABLE {table}")
    file.close()

    assert len(only(path).items) == 5


def test_the_file_is_not_changed(tmp_path: Path) -> None:
    """Read-only is read-only: not a byte, and no file next to it."""
    path = llm_logs.thread(tmp_path / "logs.db")
    before = path.read_bytes()
    list(formats.conversations(path, format="llm"))

    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["logs.db"]


def test_a_broken_row_is_refused_by_its_place(tmp_path: Path) -> None:
    """A part that is no JSON; a message whose predecessor is gone."""
    path = llm_logs.thread(tmp_path / "logs.db")
    with sqlite3.connect(path) as file:
        file.execute("UPDATE parts SET payload = '{' WHERE message_hash = 'm4'")
    with pytest.raises(InvalidCall, match=r"^conversation 02new: .*no JSON"):
        list(formats.conversations(path, format="llm"))

    with file:
        file.execute("DELETE FROM messages WHERE hash = 'm2'")
    file.close()
    with pytest.raises(InvalidCall, match="predecessor is not there"):
        list(formats.conversations(path, format="llm"))


REFUSED: list[tuple[Callable[[Path], Path], str]] = [
    (llm_logs.responses, "responses SET prompt = x'ff00'"),
    (llm_logs.responses, "fragments SET content = x'61'"),
    (llm_logs.responses, "responses SET conversation_id = x'61'"),
    (llm_logs.thread, "parts SET text = x'61'"),
    (llm_logs.thread, "parts SET payload = '[5]'"),
    (llm_logs.thread, """parts SET payload = '{"text_ref":[{}]}'"""),
    (llm_logs.thread, """parts SET payload = '{"attachment":5}'"""),
]
READ: list[tuple[Callable[[Path], Path], str]] = [
    (llm_logs.responses, "responses SET system = 5"),
    (llm_logs.responses, "fragments SET content = NULL"),
    (llm_logs.responses, "responses SET input_tokens = 'many'"),
]


def changed(path: Path, change: str) -> Path:
    with sqlite3.connect(path) as file:
        file.execute(f"UPDATE {change}")
    file.close()
    return path


@pytest.mark.parametrize(("write", "change"), REFUSED)
def test_a_value_of_another_type_is_refused_with_its_conversation(
    tmp_path: Path, write: Callable[[Path], Path], change: str
) -> None:
    """SQLite takes any value in any column."""
    path = changed(write(tmp_path / "logs.db"), change)
    with pytest.raises(InvalidCall, match=r"conversation|01old|response|message") as refused:
        list(formats.conversations(path, format="llm"))
    assert refused.value.hint


@pytest.mark.parametrize(("write", "change"), READ)
def test_a_value_that_can_be_read_is_read(
    tmp_path: Path, write: Callable[[Path], Path], change: str
) -> None:
    """A number in the place of a text, and nothing in the place of one."""
    assert messages(changed(write(tmp_path / "logs.db"), change))


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("responses", "datetime_utc"),
        ("responses", "response_json"),
        ("messages", "provider_metadata"),
        ("turns", "datetime_utc"),
    ],
)
def test_a_file_that_lacks_a_column_is_read_without_it(
    tmp_path: Path, table: str, column: str
) -> None:
    """As of a version that did not have it yet."""
    make = llm_logs.responses if table == "responses" else llm_logs.thread
    path = make(tmp_path / "logs.db")
    with sqlite3.connect(path) as file:
        file.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    file.close()

    assert sum(len(one.items) for one in formats.conversations(path, format="llm")) > 0


def test_only_a_logs_database_is_read(tmp_path: Path) -> None:
    """A file that is none, one that is not there, and lines."""
    other = tmp_path / "other.txt"
    other.write_text("hello " * 1_000)
    with pytest.raises(InvalidCall, match="cannot be read"):
        list(formats.conversations(other, format="llm"))
    with pytest.raises(InvalidCall, match="there is no such file"):
        list(formats.conversations(tmp_path / "none.db", format="llm"))
    with pytest.raises(InvalidCall, match="from its file"):
        list(formats.conversations(["{}"], format="llm"))
