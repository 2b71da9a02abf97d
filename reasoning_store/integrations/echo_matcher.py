"""Echo matching: a client's request gets back the thinking that the client lost.

Clients send back role, text and calls of a conversation, and lose the thoughts. The store knows
the conversation again by numbers, or by the session that the client names (``Owner.identify``).
The replies that lack their thinking get the stored one back where the settings and the provider
want it. The new messages and the reply are stored. A reply that is not known stays as it is: no
thinking is ever invented.

Its only I/O is the store's. The HTTP transport of ``http.py`` is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import reasoning_store as rs
from reasoning_store.display.text_renderer import answers_without_sections
from reasoning_store.integrations.client_bodies import (
    BodyForm,
    find_form,
    is_reference,
    referenced_ids,
    resolve_references,
)
from reasoning_store.integrations.client_messages import ClientMessage
from reasoning_store.integrations.clients import (
    Client,
    Titles,
    asks_for_title,
    find_title,
    read_client,
    read_title,
)
from reasoning_store.integrations.exchange import Exchange
from reasoning_store.integrations.store_access import Settings, check_owner, read_settings
from reasoning_store.results import ClientConversation, Owner


class EchoMatcher:
    """Knows, restores and records the conversations of one store or owner.

    ``settings`` are laid over the session's for these requests. ``provider`` names the host if its
    address does not. ``on_store_error="pass"`` lets the chat go on if the store fails; ``"fail"``
    raises.
    """

    def __init__(
        self,
        store: Owner,
        *,
        settings: Settings = None,
        provider: str | None = None,
        on_store_error: str = "pass",
        titles: Titles | None = None,
    ) -> None:
        """``titles`` wait for their chats; all matchers of one owner have the same."""
        if on_store_error not in ("pass", "fail"):
            raise rs.InvalidCall(
                'on_store_error: "pass" or "fail"', hint='on_store_error="pass" is the default'
            )
        self._store = check_owner(store)
        self._settings = read_settings(settings)
        self._provider = provider
        self._raises = on_store_error == "fail"
        self._titles = titles or Titles()

    def begin(
        self,
        body: Mapping[str, Any],
        *,
        path: str,
        base_url: str | None = None,
        session_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        unstored: str | None = None,
        takes_reply_id: bool = False,
    ) -> Exchange | None:
        """Return the exchange of a request's body; ``None`` if it has no conversation.

        ``headers`` are the request's: with the body they show
        its client, and the group that its conversation belongs to. ``unstored`` says why nothing is
        stored; thinking is put back all the same. With ``takes_reply_id`` the message of the
        reply gets its provider's id, and the caller follows the order of ``Exchange``.
        """
        form = find_form(path)
        if form is None or not form.list_of(body):
            return None
        names = {
            "provider": self._provider,
            "api": form.api,
            "model": form.model_of(body, path),
            "base_url": base_url,
        }
        exchange = Exchange(
            body,
            form,
            names=names,
            raises=self._raises,
            takes_reply_id=takes_reply_id,
            unstored=unstored,
        )
        try:
            self._match(exchange, form, session_id, read_client(headers or {}, body))
        except rs.ReasoningStoreError as error:
            exchange.fail(error)
        return exchange

    def _match(
        self,
        exchange: Exchange,
        form: BodyForm,
        session_id: str | None,
        sender: Client,
    ) -> None:
        parts = form.list_of(exchange.body)
        whole: Sequence[Any] = parts
        if named := referenced_ids(parts):
            whole = resolve_references(parts, self._store.find_items(named))
        client = [
            # The host has the thinking of a reply that the client refers to.
            one._replace(has_thinking=True)
            if any(map(is_reference, parts[one.first : one.last + 1]))
            else one
            for one in form.read(whole)
        ]
        leading = next((n for n, one in enumerate(client) if one.message.role != "system"), 0)
        client = client[leading:]
        messages, system = [one.message for one in client], form.system_of(exchange.body)
        if exchange.unstored is None and session_id is None and asks_for_title(system, messages):
            exchange.read_reply(partial(self._rename, sender), unstored="title")
            return
        found = self._store.identify(
            messages, system=system, session_id=session_id, group=sender.group
        )
        exchange.conversation = found
        self._restore(exchange, form, parts, client, found)
        new = client[found.first_new :]
        if exchange.unstored is None:
            if found.session is not None:
                self._use_title(sender.group, found.session)
            exchange.make_facts = partial(
                self._make_facts, sender, messages, exchange.names["model"]
            )
            replies = [one for one in client[: found.first_new] if one.message.role == "assistant"]
            answered = [part for one in replies[-1:] for part in whole[one.first : one.last + 1]]
            since = whole[new[0].first :] if new else ()
            exchange.keep(form.import_messages(since, after=answered))
            if self._raises:
                exchange.store_request()

    def _make_facts(
        self, sender: Client, messages: Sequence[rs.Message], model: str | None
    ) -> dict[str, Any]:
        """Return the title and the metadata of the session that is made for a client."""
        return {
            "title": self._titles.take(sender.group) or find_title(messages),
            "metadata": sender.metadata | ({"model": model} if model else {}),
        }

    def _rename(self, sender: Client, reply: rs.Message) -> None:
        """Give the latest conversation of a client's group the title that a reply has."""
        title = read_title(reply.text)
        if sender.group is None or title is None:
            return
        self._titles.add(sender.group, title)  # the chat may not be stored yet
        for session in self._store.sessions(metadata={"group": sender.group}, limit=1).items:
            self._use_title(sender.group, session)

    def _use_title(self, group: str | None, session: rs.Session) -> None:
        if (title := self._titles.take(group)) is not None:
            session.rename(title)

    def _restore(
        self,
        exchange: Exchange,
        form: BodyForm,
        parts: list[Any],
        client: Sequence[ClientMessage],
        found: ClientConversation,
    ) -> None:
        lacking = {
            index
            for index, one in enumerate(client)
            if one.message.role == "assistant" and not one.has_thinking
        }
        rendered = {
            index: answers
            for index, one in enumerate(client)
            if one.message.role == "assistant"
            and (answers := answers_without_sections(one.message.text))
        }
        sent = found.restore(
            lacking | rendered.keys(),
            whole=rendered.keys(),
            settings=self._settings,
            **exchange.names,
        )
        exchange.missed = {index: why for index, why in found.missed.items() if index in lacking}
        changed = list(parts)
        for index in sorted(lacking | rendered.keys(), reverse=True):
            one, stored = client[index], sent.get(index)
            own = changed[one.first : one.last + 1]
            exchange.left_out += stored is not None and stored.is_left_out and index in lacking
            message = stored and stored.message
            if message and index in rendered:
                own = form.replace_text(own, message.text)
            if stored and message and stored.written:
                own = form.restore(own, stored.written)
                exchange.restored += bool(message.thinking)
            else:
                own = form.unbind(own)
            changed[one.first : one.last + 1] = own
        if changed != parts:
            exchange.replace_parts(changed)
