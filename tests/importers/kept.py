"""The files of ``kept/``: a small history of each program, made by hand after its layout.

The name of a folder is that of the format. ``transcript`` prints a conversation as its messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import reasoning_store as rs
from reasoning_store.conversation.blocks import Block, MediaBlock, RawBlock
from reasoning_store.formats import Conversation, SourceBranch

FOLDER = Path(__file__).parent / "kept"
FILES: Mapping[str, Path] = {
    f"{path.parent.name}/{path.name}": path for path in sorted(FOLDER.glob("*/*"))
}


def of_format(format: str) -> Path:
    """Return the first file of a format."""
    return next(path for path in FILES.values() if path.parent.name == format)


def transcript(line: Iterable[rs.Message]) -> list[str]:
    """Return each message as a line: its role, and each block with what it says."""
    return [
        f"{message.role}: " + " | ".join(described(block) for block in message.blocks)
        for message in line
    ]


def described(block: Block) -> str:
    match block:
        case rs.TextBlock():
            return block.text
        case rs.ThinkingBlock():
            seals = [name for name in ("signature", "encrypted") if getattr(block, name)]
            return f"({' '.join([block.thought or '...', *seals])})"
        case rs.ToolCallBlock():
            return f"{block.name}({block.parameters})"
        case rs.ToolResponseBlock():
            error = " failed" if block.is_error else ""
            return f"{block.tool_name}{error} -> {block.result}"
        case MediaBlock():
            return f"[{block.kind} {block.name or block.url or block.ref}]"
        case RawBlock():
            return f"[raw {block.data.get('type')}]"


def messages(line: SourceBranch) -> list[rs.Message]:
    return [item.message for item in line.items]


def lines_of(one: Conversation) -> list[list[str]]:
    """Return the transcript of each line of a conversation."""
    return [transcript(messages(line)) for line in one.lines]
