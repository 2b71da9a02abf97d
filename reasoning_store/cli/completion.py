"""The words that a shell is offered to complete: sessions, profiles, providers, settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from reasoning_store import ReasoningStoreError
from reasoning_store.cli import store_access
from reasoning_store.cli.command import current_call
from reasoning_store.cli.terminal_text import one_line

if TYPE_CHECKING:
    from reasoning_store.results import Owner


def complete_session(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return _complete_stored(context, incomplete, store_access.session_names)


def complete_profile(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return _complete_stored(
        context, incomplete, lambda owner: [one.name for one in owner.settings.profiles.all()]
    )


def _complete_stored(
    context: click.Context, incomplete: str, read_names: Callable[[Owner], Iterable[str]]
) -> list[CompletionItem]:
    """Offer names that an owner's sessions or profiles have."""
    try:
        with store_access.open_to_read(current_call(context)) as store:
            owner = store.for_owner(context.params.get("owner") or "")
            return _matching_words(read_names(owner), incomplete)
    except ReasoningStoreError:
        return []  # a shell has no place for an error


def complete_provider(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from reasoning_store.wire import contract_lookup

    hosts = contract_lookup.tables_of(None).hosts.values()
    return _matching_words(dict.fromkeys(host.id for host in hosts), incomplete)


def complete_key(incomplete: str, end: str = "") -> list[CompletionItem]:
    """Offer the keys of settings, with ``reasoning.`` if the word begins so."""
    from reasoning_store.conversation import settings

    whole = [f"{key}{end}" for key in settings.KEYS]
    short = [key.removeprefix(settings.PREFIX) for key in whole]
    return _matching_words(whole if incomplete.startswith("r") else short, incomplete)


def complete_value(key: str, incomplete: str, before: str = "") -> list[CompletionItem]:
    from reasoning_store.conversation import settings

    return _matching_words((before + word for word in settings.words(full_key(key))), incomplete)


def complete_change(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer KEY=, and after it the values."""
    key, equals, _ = incomplete.partition("=")
    return complete_value(key, incomplete, f"{key}=") if equals else complete_key(incomplete, "=")


def _matching_words(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Return the words that begin so, without those that hold control characters."""
    return [
        CompletionItem(word)
        for word in words
        if word.startswith(incomplete) and one_line(word) == word
    ]


def full_key(key: str) -> str:
    """Return a setting's whole key; a person may leave ``reasoning.`` out."""
    return key if "." in key else f"reasoning.{key}"
