"""llm's logs: each conversation of its database, with the reasoning that it keeps.

A thread is read from its messages (``llm_layouts``); a conversation of before there were
threads from its responses. One that began then and has a thread now is read from the thread,
which repeats what was before.

Knows where a conversation's history stands. It must not know SQL (``llm_file``) or a
provider's form (``llm_parts``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from reasoning_store.errors import UsageError
from reasoning_store.importers import llm_layouts
from reasoning_store.importers.documents import Source
from reasoning_store.importers.llm_file import opened
from reasoning_store.importers.reading import Who
from reasoning_store.importers.values import Conversation
from reasoning_store.ingress.normalizer import Tags


def check(path: str | os.PathLike[str]) -> None:
    """Refuse a file that is no logs database."""
    with opened(path):
        pass


def conversations(
    source: Source,
    *,
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    tags: Tags = "always",
    name: str | None = None,
) -> Iterator[Conversation]:
    """Return the conversations of a logs database, the oldest first.

    ``provider``, ``model`` and ``base_url`` say who answered, where they are to stand for
    what the database says. ``name`` is taken as by the other readers, and not needed: every
    conversation has an id here.
    """
    if not isinstance(source, str | os.PathLike):
        raise UsageError("a logs database is read from its file", hint="give its path")
    who = Who(provider=provider, model=model, base_url=base_url, tags=tags)
    with opened(source) as file:
        for row in file.conversations():
            tip = file.tip(row["id"])
            if tip is None:
                yield llm_layouts.responses(file, row, who)
            else:
                yield llm_layouts.thread(file, row, tip, who)
