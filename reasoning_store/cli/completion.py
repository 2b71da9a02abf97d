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


def complete_api(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from reasoning_store.results import Contracts

    return _matching_words(Contracts.default().protocols, incomplete)


def complete_provider(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from reasoning_store.results import Contracts

    return _matching_words(Contracts.default().providers, incomplete)


def complete_change(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer KEY=, and after it the values."""
    from reasoning_store.conversation import settings

    key, equals, _ = incomplete.partition("=")
    if not equals:
        return _matching_words(_keys("=", incomplete), incomplete)
    values = (f"{key}={word}" for word in settings.words(full_key(key)))
    return _matching_words(values, incomplete)


def complete_setting(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the session first, and what the words of the command name."""
    is_named = any(map(context.params.get, ("words", "profile", "default")))
    sessions = [] if is_named else complete_session(context, parameter, incomplete)
    own = {"set": complete_change, "use": complete_profile}.get(context.info_name or "")
    if own is not None:
        return sessions + own(context, parameter, incomplete)
    return sessions + _matching_words(_keys("", incomplete), incomplete)


def _keys(end: str, incomplete: str) -> Iterable[str]:
    """Return the keys of settings, with ``reasoning.`` if the word begins so."""
    from reasoning_store.conversation import settings

    prefix = "" if incomplete.startswith("r") else settings.PREFIX
    return (f"{key.removeprefix(prefix)}{end}" for key in settings.KEYS)


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
