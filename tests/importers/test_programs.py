"""What is read of each program's history: every message of every branch, with its thoughts."""

from __future__ import annotations

import json
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.importers import formats
from tests.properties import each

from . import kept

KEEP = {"reasoning.includeInContext": True}
READ = {
    "codex": [
        [
            "system: Sandbox: read-only.",
            "user: <environment_context>\n  <cwd>/home/ada/primes</cwd>\n</environment_context>",
            "user: Is 91 prime?",
            "assistant: (**Factoring** encrypted) | I will factor it. | "
            "exec_command({'cmd': 'factor 91'})",
            "tool: exec_command -> 91: 7 13",
            "assistant: (... encrypted) | "
            "apply_patch({'input': '*** Begin Patch\\n*** End Patch'})",
            "tool: apply_patch -> Done",
            "assistant: No: 91 is 7 x 13.",
            "user: And 1001?",
            "assistant: It is 7 x 143.",
        ],
        [
            "user: And 97?",
            "assistant: 97 is prime.",
            "user: Thanks",
            "assistant: Welcome.",
        ],
    ],
    "chatgpt": [
        [
            "system: I count primes. | Be brief.",
            "user: [image 91.png] | Is the number in the picture prime? | [file notes.pdf]",
            "assistant: (Reading the picture\n\nIt says 91.) | (Factoring) | "
            "python({'text': 'print(91 % 7)'})",
            "tool: python -> 0",
            "assistant: No: 91 = 7 x 13.",
            "user: And 97?",
            "assistant: No.",
        ],
        ["user: Thanks", "assistant: Wel"],
        ["assistant: Yes, 97 is prime."],
    ],
    "claude-ai": [
        [
            "user: Which of these is prime? | [file numbers.txt] | [file picture.png]",
            "assistant: (A tool knows.) | One moment. | repl({'code': 'factor(91)'})",
            "tool: repl -> 7 x 13",
            "assistant: (So 97.) | 97 is.",
            "user: And 1001?",
            "assistant: 7 x 143.",
        ],
        ["assistant: No: 1001 = 7 x 11 x 13."],
    ],
    "open-webui": [
        [
            "user: Is 91 prime? | [file numbers.txt]",
            "assistant: (A tool knows.\n\nIf 7 < 91, try 7.) | Let me see. | factor({'n': 91})",
            "tool: factor -> 7 13",
            "assistant: No: 91 = 7 x 13.",
            "user: And 97?",
            "assistant: (97 has no small factor) | It is prime.",
        ],
        ["assistant: Yes."],
    ],
    "librechat": [
        [
            "user: Is 91 prime? | [image 91.png]",
            "assistant: (A tool knows.) | factor({'n': 91})",
            "tool: factor -> 7 13",
            "assistant: No: 7 x 13.",
            "user: And 97?",
            "assistant: (No small factor.) | It is prime.",
        ],
        ["assistant: No."],
    ],
    "langchain": [
        [
            "system: Be brief.",
            "user: Is 91 prime? | [image https://example.com/91.png]",
            "assistant: (A tool knows. signature) | (... encrypted) | One moment. | "
            "factor({'n': 91})",
            "tool: factor -> 7 13",
            "assistant: (7 x 13) | No.",
            "user: And 97?",
            "assistant: (No factor. encrypted) | Yes.",
        ]
    ],
    "llama-index": [
        [
            "system: Be brief.",
            "user: Is 91 prime? | [image https://example.com/91.png]",
            "assistant: (A tool knows. signature) | One moment. | factor({'n': 91})",
            "tool: factor -> 7 13",
            "assistant: (7 x 13) | No.",
        ]
    ],
    "pydantic-ai": [
        [
            "system: Be brief.",
            "user: Is 91 prime? | [image https://example.com/91.png]",
            "assistant: (A tool knows. signature) | (... encrypted) | One moment. | "
            "factor({'n': 91})",
            "tool: factor -> 7 13",
            "assistant: No: 7 x 13.",
            "user: And 97?",
            "assistant: (... encrypted) | Yes.",
        ]
    ],
    "ai-sdk": [
        [
            "user: Is 91 prime? | [image 91.png]",
            "assistant: (A tool knows. signature) | (... encrypted) | One moment. | "
            "factor({'n': 91})",
            "tool: factor -> {'factors': [7, 13]}",
            "assistant: No: 7 x 13.",
            "user: And 97?",
            "assistant: (No factor.\n\nSo it is. encrypted) | Yes. | save({'n': 97})",
            "tool: save failed -> The disk is full.",
        ]
    ],
    "sharegpt": [
        [
            "system: Be brief.",
            "user: Is 91 prime?",
            "assistant: factor({'n': 91})",
            "tool: factor -> 7 13",
            "assistant: (7 x 13) | No.",
        ]
    ],
}
"""The lines of the first conversation of each format's fullest file."""


def fullest(format: str) -> Any:
    """Return the first conversation of the file of a format with the most messages."""
    found = [
        next(iter(formats.conversations(path)))
        for path in kept.FILES.values()
        if path.parent.name == format
    ]
    return max(found, key=lambda one: one.report.messages)


@each("format", READ)
def test_every_branch_is_read_with_its_thoughts(format: str) -> None:
    """In the order in which a model said it, seals and calls in their places."""
    assert kept.lines_of(fullest(format)) == READ[format]


@pytest.mark.parametrize(
    ("format", "last"),
    [
        ("codex", "Welcome."),
        ("chatgpt", "Yes, 97 is prime."),
        ("claude-ai", "No: 1001 = 7 x 11 x 13."),
        ("open-webui", "Yes."),
        ("librechat", "It is prime."),
    ],
)
def test_the_branch_that_the_program_shows_is_the_current_one(format: str, last: str) -> None:
    """The others are a branch away."""
    one = fullest(format)
    with rs.Store("sqlite://") as store:
        store.import_conversations([one])
        session = store.session(one.id)

        assert session.history()[-1].message.text == last
        assert len(session.branches()) == len(READ[format])


def test_a_conversation_that_was_archived_stays_so() -> None:
    """It is not in the usual list here either."""
    with rs.Store("sqlite://") as store:
        for format in ("chatgpt", "open-webui"):
            store.import_conversations(formats.conversations(kept.of_format(format)))

        assert {one.title for one in store.sessions().items} == {"Primes"}
        assert {one.title for one in store.sessions(archived=True).items} == {"Hello", "Seven"}


def test_a_session_of_codex_goes_on_with_its_sealed_reasoning() -> None:
    """Its provider is known, and what each reply cost."""
    one = fullest("codex")
    with rs.Store("sqlite://") as store:
        store.import_conversations([one])
        session = store.session(one.id)
        request = session.build_request(
            provider="openai",
            model="gpt-5.2",
            api="openai.responses",
            settings=KEEP,
        )
        usage = session.history()[3].message.usage

    sealed = [item for item in request.body["input"] if item.get("encrypted_content")]
    assert [item["encrypted_content"] for item in sealed] == ["Y2lwaGVyMQ==", "Y2lwaGVyMg=="]
    assert usage is not None
    assert (usage.input, usage.cached, usage.output, usage.reasoning) == (100, 40, 30, 12)


@each("format", ["claude-code", "codex"])
def test_a_last_line_that_is_cut_off_is_left_out_and_another_is_refused(format: str) -> None:
    """The program was killed or is writing; what was written before it is whole."""
    lines = max(
        (
            path.read_text("utf-8").splitlines()
            for path in kept.FILES.values()
            if path.parent.name == format
        ),
        key=len,
    )
    cut = lines[-1][:20]
    whole, *_ = formats.conversations([*lines, cut], format=format)

    skipped = whole.report.skipped[-1]
    assert (skipped.place, "cut off" in skipped.reason) == (f"line {len(lines) + 1}", True)
    with pytest.raises(InvalidCall, match=f"^line {len(lines)}: not JSON"):
        list(formats.conversations([*lines[:-1], cut, lines[-1]], format=format))


@each("format", ["langchain", "pydantic-ai", "llama-index", "ai-sdk"])
def test_a_signature_that_a_framework_dumped_goes_back_to_its_provider(format: str) -> None:
    """In the form of the provider, whichever the framework's is."""
    one = fullest(format)
    with rs.Store("sqlite://") as store:
        store.import_conversations([one])
        request = store.session(one.id).build_request(
            provider="anthropic", model="claude-opus-5", settings=KEEP
        )

    replies = [one["content"] for one in request.body["messages"] if one["role"] == "assistant"]
    assert replies[0][0] == {
        "type": "thinking",
        "thinking": "A tool knows.",
        "signature": "c2ln",
    }


@pytest.mark.parametrize(
    ("format", "message"),
    [
        (
            "pydantic-ai",
            {
                "kind": "response",
                "parts": [
                    {"part_kind": "thinking", "content": "A tool knows."},
                    {
                        "part_kind": "tool-call",
                        "tool_name": "factor",
                        "args": '{"n":  91}',
                        "tool_call_id": "c1",
                    },
                ],
            },
        ),
        (
            "langchain",
            {
                "type": "ai",
                "data": {
                    "content": "",
                    "additional_kwargs": {
                        "reasoning_details": [{"type": "reasoning.text", "text": "A tool knows."}],
                        "tool_calls": [{"id": "c1", "function": {"arguments": '{"n":  91}'}}],
                    },
                    "tool_calls": [{"name": "factor", "args": {"n": 91}, "id": "c1"}],
                },
            },
        ),
    ],
    ids=["pydantic-ai", "langchain"],
)
def test_arguments_that_a_framework_dumped_as_a_text_stay_as_they_came(
    format: str, message: dict[str, Any]
) -> None:
    """And their value is read; the thought before the call is a block."""
    (one,) = formats.conversations([json.dumps([message])], format=format)
    (reply,) = [item.message for item in one.items]
    (call,) = reply.tool_calls

    assert [block.thought for block in reply.thinking] == ["A tool knows."]
    assert (call.id, call.name, call.parameters) == ("c1", "factor", {"n": 91})
    assert call.arguments == '{"n":  91}'


def test_bytes_that_pydantic_ai_dumped_are_a_medium() -> None:
    """They are in the alphabet of base64 for addresses."""
    picture = {"kind": "binary", "media_type": "image/png", "data": "__79"}
    part = {"part_kind": "user-prompt", "content": ["What is it?", picture]}
    (one,) = formats.conversations(
        [json.dumps([{"kind": "request", "parts": [part]}])], format="pydantic-ai"
    )

    assert one.items[0].message.blocks == (
        rs.TextBlock(text="What is it?"),
        rs.MediaBlock(kind="image", mime_type="image/png", data=b"\xff\xfe\xfd"),
    )


def test_a_regeneration_after_the_first_import_is_a_branch(url: str) -> None:
    """An export that has grown inside of its tree adds what is new, and moves to it."""
    export = json.loads(kept.of_format("chatgpt").read_text("utf-8"))
    before = json.loads(json.dumps(export[0]))
    for later in ("n11", "n12", "n13"):
        del before["mapping"][later]
    before["mapping"]["n9"]["children"].remove("n11")
    before["mapping"]["n8"]["children"].remove("n12")
    before["current_node"] = "n10"
    with rs.Store(url) as store:
        for value, new in ((before, 7), (export[0], 3), (export[0], 0)):
            read = list(formats.conversations([json.dumps(value)], format="chatgpt"))
            dry = store.import_conversations(read, dry_run=True)
            done = store.import_conversations(read)
            assert (dry.new, done.new, done.refused) == (new, new, [])
        session = store.session("69a5-primes")

        assert session.history()[-1].message.text == "Yes, 97 is prime."
        assert session.branch(1).history()[-1].message.text == "No."
        assert len(session.branches()) == 3


def test_a_reply_that_was_stopped_is_interrupted() -> None:
    """As it is of a stream that is left early."""
    (line,) = [line for line in fullest("chatgpt").lines if len(line.items) == 2]

    assert line.items[-1].message.status == "interrupted"


def test_items_of_a_reply_are_read_in_the_place_of_its_text() -> None:
    """Newer versions of Open WebUI keep both."""
    _, newer = formats.conversations(kept.of_format("open-webui"))

    assert kept.lines_of(newer) == [
        [
            "user: Is 7 prime?",
            "assistant: (Seven. signature) | factor({'n': 7})",
            "tool: factor -> 7",
            "assistant: Yes.",
        ]
    ]
