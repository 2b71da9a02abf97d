"""Seals of thoughts outside of thinking blocks: on a text, a call, a picture.

Providers send ciphertext or a signature of a thought on other blocks, to get it back with them.
An erasure of reasoning removes these too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import is_
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
)

OF_THOUGHTS: Final = frozenset(
    """
    thinkingSignature thoughtSignature thought_signature thoughtSignatures thought_signatures
    reasoning_opaque reasoningEncryptedContent thoughtForms
    """.split()
)
"""Names of fields that seal a thought, or belong to a seal."""
ALL: Final = OF_THOUGHTS | frozenset(
    """
    signature textSignature encrypted encryptedContent encrypted_content
    redactedData redacted_data redactedContent redacted_content
    """.split()
)
"""Names under which providers put what only they can read, or what proves the rest."""
_BESIDE: Final = ALL - {"textSignature"}  # which holds the id and the phase of a text
_DEEPEST: Final = 8


def without_reasoning(message: Message) -> Message:
    """Return a message without its thoughts and seals; the same one if it has neither."""
    kept = [_left(block) for block in message.blocks if not _is_thought(block)]
    blocks = tuple(block for block in kept if block is not None)
    metadata = _without(message.metadata, OF_THOUGHTS)
    same = len(blocks) == len(message.blocks) and all(map(is_, blocks, message.blocks))
    if same and metadata is message.metadata:
        return message
    return replace(message, blocks=blocks, metadata=metadata)


def without_seal(block: Block) -> Block:
    """Return a block without its seal; the same one if it has none."""
    if isinstance(block, ThinkingBlock):
        return replace(block, signature=None, encrypted=None) if block.opaque else block
    about = _without(block.provider_metadata, _BESIDE)
    same = about is block.provider_metadata
    return block if same else replace(block, provider_metadata=about)


def _is_thought(block: Block) -> bool:
    """Whether a block is a thought, also of a kind that is kept as it came."""
    if isinstance(block, RawBlock):
        return isinstance(block.data, Mapping) and block.data.get("thought") is True
    return isinstance(block, ThinkingBlock)


def _left(block: Block) -> Block | None:
    """Return a block without seals; None for an empty text that only carried its seal."""
    sealed, block = block, without_seal(block)
    is_bare = isinstance(block, TextBlock) and not block.text and block.provider_metadata is None
    if is_bare and block is not sealed:
        return None
    if isinstance(block, RawBlock):
        data = _without(block.data, OF_THOUGHTS)
        return block if data is block.data else replace(block, data=data)
    return block


def _without(value: Any, names: frozenset[str], depth: int = 0) -> Any:
    """Return JSON without the values under some names; containers left empty are removed."""
    if depth == _DEEPEST or not isinstance(value, Mapping | list | tuple) or not value:
        return value
    if not isinstance(value, Mapping):
        items = [_without(item, names, depth + 1) for item in value]
        return value if all(map(is_, items, value)) else items
    kept = {
        key: _without(item, names, depth + 1) for key, item in value.items() if key not in names
    }
    if len(kept) == len(value) and all(kept[key] is value[key] for key in value):
        return value
    left = {key: item for key, item in kept.items() if item is not None or value[key] is None}
    return left or None
