"""OpenAI's Conversations API on the store, with the official SDK unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import openai
import pytest

import reasoning_store as rs
from tests.docs.provider import Provider, weather

ITEMS: list[Any] = [
    {"type": "message", "role": "user", "content": "How is Oslo?"},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Need the weather tool."}],
        "encrypted_content": "gAAAAB",
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "w", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "4 C"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "phase": "final_answer",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It is 4 C.", "annotations": []}],
    },
]


def test_items_come_back_as_they_were_given(client: openai.OpenAI, store: rs.Store) -> None:
    """In both orders, page by page, with ids; thoughts are stored once, as blocks."""
    made = client.conversations.create(items=ITEMS, metadata={"topic": "weather"})
    listed = client.conversations.items.list(made.id, order="asc", limit=2)
    items = [one.to_dict() for one in listed]
    first = client.conversations.items.list(made.id, limit=1).data[0]

    assert made.metadata == {"topic": "weather"}
    for given, item in zip(ITEMS, items, strict=True):
        wanted = {name: one for name, one in given.items() if name != "content"}
        assert wanted.items() <= item.items()
    assert items[0]["content"] == [{"type": "input_text", "text": "How is Oslo?"}]
    assert all(item["id"] for item in items)
    assert first.id == "msg_1"
    assert client.conversations.items.retrieve("rs_1", conversation_id=made.id).id == "rs_1"
    history = store.session(made.id).history()
    assert [one.message.role for one in history] == ["user", "assistant", "tool", "assistant"]
    assert history[1].message.thinking[0].thought == "Need the weather tool."
    assert store.session(made.id).erase(only="reasoning")
    assert "weather tool" not in str(
        [i.to_dict() for i in client.conversations.items.list(made.id)]
    )


def test_a_conversation_is_changed_and_deleted(client: openai.OpenAI) -> None:
    """What is not there is a 404 of OpenAI's."""
    made = client.conversations.create()
    item: Any = {**ITEMS[0], "status": None}
    added = client.conversations.items.create(made.id, items=[item])
    changed = client.conversations.update(made.id, metadata={"topic": "new"})
    popped = client.conversations.items.delete(added.data[0].id or "", conversation_id=made.id)

    assert changed.metadata == {"topic": "new"}
    assert added.data[0].to_dict()["status"] == "completed"
    assert popped.id == made.id
    assert client.conversations.items.list(made.id).data == []
    assert client.conversations.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError, match="not found"):
        client.conversations.retrieve(made.id)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_response_continues_a_conversation(
    client: openai.OpenAI, provider: Provider, stream: bool
) -> None:
    """Its items are there at once; the next request carries them, thinking included."""
    made = client.conversations.create()
    asked: dict[str, Any] = {"model": "gpt-5.2", "conversation": made.id}
    tool = {"type": "function", "name": "get_weather", "parameters": {}, "strict": False}

    def ask(**more: Any) -> Any:
        if not stream:
            return client.responses.create(**asked, **more)
        found = None
        for event in client.responses.create(**asked, **more, stream=True):
            if event.type == "response.completed":
                found = event.response
                break  # at once
        return found

    reply = ask(input="How is Oslo?", tools=[tool])
    items = client.conversations.items.list(made.id, order="asc").data
    call = next(item for item in reply.output if item.type == "function_call")
    ask(input=[{"type": "function_call_output", "call_id": call.call_id, "output": "4 C"}])

    assert [item.type for item in items] == ["message", "reasoning", "function_call"]
    sent = provider.asked[-1].body
    assert "conversation" not in sent
    assert [item.get("type", "message") for item in sent["input"]] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert provider.refused == []


def test_the_items_of_a_stored_reply_are_added_once(client: openai.OpenAI) -> None:
    """A client that asks with the conversation's items, and adds those of the reply."""
    question: Any = {"role": "user", "content": "How is Tromso?"}
    made = client.conversations.create(items=[question, *ITEMS[1:4]])
    listed = client.conversations.items.list(made.id, order="asc").data
    asked = [*(item.to_dict() for item in listed), {"role": "user", "content": "And Bodo?"}]
    reply = client.responses.create(model="gpt-5.2", input=asked)  # type: ignore[arg-type]
    again: Any = [asked[-1], *(item.to_dict() for item in reply.output)]
    client.conversations.items.create(made.id, items=again)
    client.conversations.items.create(made.id, items=[question])

    items = client.conversations.items.list(made.id, order="asc").data
    assert [item.type for item in items] == [
        *(item.type for item in listed),
        "message",
        *(item.type for item in reply.output),
        "message",
    ]


def test_a_response_is_named_as_the_previous_one(client: openai.OpenAI, provider: Provider) -> None:
    """The provider gets the conversation, which it need not know; an unknown id is passed on."""
    provider.script = lambda asked: replace(weather(asked), seed=len(provider.asked))
    first = client.responses.create(model="gpt-5.2", input="How is Bergen?")
    client.responses.create(model="gpt-5.2", input="Sure?", previous_response_id=first.id)
    sent = provider.asked[-1].body
    client.responses.create(model="gpt-5.2", input="Sure?", previous_response_id="resp_other")

    assert "previous_response_id" not in sent
    assert "How is Bergen?" in str(sent["input"])
    assert provider.asked[-1].body["previous_response_id"] == "resp_other"


def test_input_tokens_are_counted_with_the_conversation(client: openai.OpenAI) -> None:
    """Our effective count of what would be sent."""
    made = client.conversations.create(items=ITEMS)
    alone = client.responses.input_tokens.count(model="gpt-5.2", input="And Bergen?")
    all_of_it = client.responses.input_tokens.count(
        model="gpt-5.2", input="And Bergen?", conversation=made.id
    )

    assert 0 < alone.input_tokens < all_of_it.input_tokens


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/conversations", {"items": [None]}, 400),
        ("/conversations", {"items": [{"role": "user", "content": "x"}] * 21}, 400),
        ("/conversations", {"items": {}}, 400),
        ("/conversations", {"items": [{"type": {}, "id": "a"}]}, 400),
        ("/conversations", {"items": [{"id": 1, "role": "user", "content": "x"}]}, 400),
        ("/conversations", {"metadata": {"a": 1}}, 400),
        ("/conversations", {"metadata": []}, 400),
        ("/responses/input_tokens", {"input": [None], "model": "m"}, 400),
        ("/responses/input_tokens", {"conversation": "a", "previous_response_id": "b"}, 400),
        ("/conversations/nowhere/items", {"items": []}, 404),
    ],
)
def test_bad_input_is_an_error_of_openais(
    client: openai.OpenAI, path: str, body: dict[str, Any], status: int
) -> None:
    """With all four keys."""
    with pytest.raises(openai.APIStatusError) as refused:
        client.post(path, body=body, cast_to=object)

    assert refused.value.status_code == status
    assert isinstance(refused.value.body, dict)
    assert {*refused.value.body} == {"message", "type", "param", "code"}
