"""A message is masked part by part, and what is sealed stays as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
    assistant,
    user,
)
from reasoning_store.conversation.json_values import DEEPEST
from reasoning_store.conversation.validation import tool
from reasoning_store.ingress.masking import Masker, mask_message
from reasoning_store.ingress.secrets import SecretMasker
from tests.ingress.secrets_to_hide import KEYS, TEXTS, VALUE, Stars
from tests.properties import each


def everything(message: Message) -> str:
    return json.dumps(codec.message_to_json(message), ensure_ascii=False)


# Messages

KEY = KEYS["secret_key"][0]


HIDDEN = "[masked:secret_key]"


def test_a_message_without_secrets_is_the_same_object() -> None:
    """Nothing is copied for nothing."""
    message = assistant(
        ThinkingBlock(thought="hm", source_field="reasoning"),
        TextBlock(text="Hello", provider_metadata={"phase": "final"}),
        ToolCallBlock(id="c1", name="f", parameters={"a": [1, None]}, arguments='{"a": [1, null]}'),
        RawBlock(data={"type": "other", "n": 1.5}),
        usage=Usage(input=1, raw={"prompt_tokens": 1}),
        metadata={"unknownChunks": 1},
    )

    assert mask_message(message, SecretMasker()) is message


@each(
    "message",
    [
        user(f"my key is {KEY}"),
        assistant(ThinkingBlock(thought=f"The key {KEY} is odd.")),
        assistant(ThinkingBlock(thought="a", provider_metadata={"detail": {"format": KEY}})),
        assistant(TextBlock(text="a", provider_metadata={"citations": [{"url": KEY}]})),
        assistant(ToolCallBlock(id="c", name="f", parameters={"k": [{"deep": KEY}]})),
        assistant(ToolCallBlock(id="c", name="f", arguments=f'{{"k":"{KEY}"}}')),
        assistant(ToolCallBlock(id="c", name="f", arguments=f'{{"k":"{KEY}')),
        tool(ToolResponseBlock(call_id="c", result=f"export KEY={KEY}")),
        tool(ToolResponseBlock(call_id="c", result=[{"out": KEY}, {KEY: 1}])),
        tool(ToolResponseBlock(call_id="c", result=json.dumps({"out": KEY}))),
        user(MediaBlock(kind="file", mime_type="text/plain", name=f"{KEY}.txt", url="s3://a")),
        user(MediaBlock(kind="file", mime_type="text/plain", url=f"https://a/?key={KEY}")),
        assistant(RawBlock(data={"type": "other", "data": KEY})),
        assistant(RawBlock(data=["list", KEY])),
        assistant("a", metadata={"unknownEvents": [{"data": KEY}], "error": {"message": KEY}}),
        assistant("a", usage=Usage(input=1, raw={"note": KEY})),
        assistant("a", finish_reason=f"stop {KEY}"),
        assistant("a", origin=Origin(model=f"m/{KEY}", base_url=f"https://a/{KEY}/v1")),
        user(MediaBlock(kind="file", mime_type="text/plain", ref=f"{KEY}.txt")),
        assistant(RawBlock(data={}, kind=KEY)),
    ],
)
def test_a_secret_is_gone_from_every_part_of_a_message(message: Message) -> None:
    """What is stored, counted and exported has the placeholder in its place."""
    hidden = everything(mask_message(message, SecretMasker()))

    assert KEY not in hidden
    assert HIDDEN in hidden


SEALED: list[Block] = [
    ThinkingBlock(thought=f"uses {KEY}", signature="c2ln", provider_metadata={"note": KEY}),
    ThinkingBlock(encrypted=KEY, provider_metadata={"summary": [KEY]}),
    ThinkingBlock(encrypted=KEY, redacted=True),
    ThinkingBlock(thought=KEY, redacted=True),
    RawBlock(data={"type": "compaction", "id": "c1", "encrypted_content": KEY}),
    RawBlock(data={"type": "newer", "thought": KEY, "signature": "c2ln"}, kind="newer"),
]


@each("block", SEALED)
def test_a_sealed_block_is_never_altered(block: Block) -> None:
    """A provider refuses a changed one, so it stays the very same object."""
    message = mask_message(assistant(f"beside it {KEY}", block), SecretMasker())

    assert message.blocks == (TextBlock(text=f"beside it {HIDDEN}"), block)
    assert message.blocks[1] is block


@each(
    "name",
    [
        "id",
        "item_id",
        "thoughtSignature",
        "encrypted_content",
        "signature",
        "data",
        "textSignature",
    ],
)
def test_opaque_values_next_to_text_and_calls_stay(name: str) -> None:
    """Gemini signs text and calls, OpenAI names items: those go back as they came."""
    metadata = {name: KEY, "vercel": {"google": {name: [KEY]}}, "note": KEY}
    kept = {name: KEY, "vercel": {"google": {name: [KEY]}}, "note": HIDDEN}
    message = assistant(
        TextBlock(text=KEY, provider_metadata=metadata),
        ToolCallBlock(id=KEY, name=KEY, parameters={}, provider_metadata=metadata),
    )

    assert mask_message(message, SecretMasker()).blocks == (
        TextBlock(text=HIDDEN, provider_metadata=kept),
        ToolCallBlock(id=KEY, name=KEY, parameters={}, provider_metadata=kept),
    )


@each(
    "arguments, wanted",
    [
        (f'{{ "k" : "{KEY}" ,\t"n": 1.50}}', f'{{ "k" : "{HIDDEN}" ,\t"n": 1.50}}'),
        ('{"k":"\\u0073k-' + "k1" * 20 + '"}', f'{{"k":"{HIDDEN}"}}'),
        (f'{{"{KEY}":1,"{KEY[:-1]}":2}}', f'{{"{HIDDEN}":1,"{HIDDEN} (2)":2}}'),
        ('{"pin": 12345678, "other": 123456}', '{"pin":"[masked:value_1]","other":123456}'),
        ('["12345678", 0.12345678]', '["[masked:value_1]","0.[masked:value_1]"]'),
        ("12345678", '"[masked:value_1]"'),
        ('{"a":"123","b":"2"}', '"{\\"a\\":\\"[masked:value_2]:\\"2\\"}"'),
        ('{"cut": "12345678', '{"cut": "[masked:value_1]'),
    ],
)
def test_arguments_that_were_json_are_json_still(arguments: str, wanted: str) -> None:
    """Escapes, keys, numbers and even punctuation can hold a secret."""
    masker = SecretMasker(["12345678", '123","b"'])
    message = assistant(ToolCallBlock(id="c", name="f", arguments=arguments))
    block = mask_message(message, masker).blocks[0]

    assert block == ToolCallBlock(id="c", name="f", arguments=wanted)


def test_a_plain_result_stays_plain_text() -> None:
    """A number that a tool answers as text is not turned into JSON."""
    message = tool(ToolResponseBlock(call_id="c", result="12345678"))
    wanted = ToolResponseBlock(call_id="c", result="[masked:value_1]")

    assert mask_message(message, SecretMasker(["12345678"])).blocks == (wanted,)


def test_keys_that_come_to_be_alike_are_kept_apart() -> None:
    """Masking loses no entry."""
    first, second = KEYS["secret_key"][:2]
    result = {first: 1, HIDDEN: 2, second: 3}
    message = mask_message(tool(ToolResponseBlock(call_id="c", result=result)), SecretMasker())

    assert message.blocks[0] == ToolResponseBlock(
        call_id="c", result={f"{HIDDEN} (2)": 1, HIDDEN: 2, f"{HIDDEN} (3)": 3}
    )


def test_a_value_as_deep_as_may_be_is_masked() -> None:
    """Depth is no way out."""
    value: Any = KEY
    for _ in range(DEEPEST):
        value = [value]
    message = tool(ToolResponseBlock(call_id="c", result=value))
    block = mask_message(message, SecretMasker()).blocks[0]
    assert isinstance(block, ToolResponseBlock)
    found = block.result
    while isinstance(found, list):
        found = found[0]

    assert found == HIDDEN


def test_an_application_brings_its_own_masker() -> None:
    """All it needs is ``lookback`` and ``mask``."""
    masker: Masker = Stars()

    assert mask_message(user("**secret"), masker) == user("**")


SEALS = st.sampled_from(["signature", "encrypted", "redacted"])


@given(TEXTS, TEXTS, SEALS, st.dictionaries(st.text(max_size=3), TEXTS, max_size=2))
def test_whatever_a_message_holds_the_sealed_stays_and_the_secret_goes(
    text: str, thought: str, seal: str, metadata: dict[str, str]
) -> None:
    """Sealed blocks are the same bytes; every other part has no planted value left."""
    sealed = ThinkingBlock(
        thought=thought,
        signature=f"{thought}x" if seal == "signature" else None,
        encrypted=f"{thought}x" if seal == "encrypted" else None,
        redacted=seal == "redacted",
        provider_metadata=metadata,
    )
    message = assistant(
        sealed,
        ThinkingBlock(thought=thought, provider_metadata=metadata),
        TextBlock(text=text),
        ToolCallBlock(id="c", name="f", parameters={"a": text}, arguments=json.dumps({"a": text})),
        metadata={"unknownEvents": [metadata]},
    )
    masker = SecretMasker([VALUE, "swordfish"])
    hidden = mask_message(message, masker)
    shown = hidden.blocks[3]
    assert isinstance(shown, ToolCallBlock)

    assert hidden.blocks[0] is sealed
    assert json.loads(shown.arguments or "") == shown.parameters
    assert mask_message(hidden, masker) is hidden
    assert VALUE not in everything(replace(hidden, blocks=hidden.blocks[1:]))
    assert "swordfish" not in everything(replace(hidden, blocks=hidden.blocks[1:]))


def test_a_model_name_that_holds_a_secret_is_in_no_file(tmp_path: Path) -> None:
    """Neither while the reply arrives nor afterwards, nor with the request that it answers."""
    with rs.Store(f"sqlite:///{tmp_path}/chat.db", masker=SecretMasker()) as store:
        session = store.session("s", create=True)
        event = {"choices": [{"delta": {"content": "Hi."}, "finish_reason": KEY}]}
        reply = session.record([event, event], model=f"m/{KEY}", provider="openai")
        next(iter_ := iter(reply))
        during = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        list(iter_)
        (item,) = session.history()
    after = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert item.message.finish_reason == HIDDEN
    assert item.message.origin is not None
    assert item.message.origin.model == f"m/{HIDDEN}"
    assert HIDDEN.encode() in during
    assert KEY.encode() not in during + after
