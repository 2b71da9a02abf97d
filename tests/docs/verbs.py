"""An example for each of the main verbs. The reference shows their bodies; a test runs them.

A function is named for the class and the verb. It gets a new store, in which the session
``primes`` has two questions with their replies.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import reasoning_store as rs

HELPERS = {"conversation", "examples"}
Example = Callable[[rs.Store, rs.Session], None]


def conversation(store: rs.Store) -> rs.Session:
    session = store.session("primes", create=True, title="Small primes")
    origin = rs.Origin(provider="deepseek", model="deepseek-reasoner")
    used = rs.Usage(input=20, output=30, reasoning=24)
    thoughts = [rs.ThinkingBlock(thought=text) for text in ("7 * 13 = 91.", "Nothing up to 9.")]
    session.append(rs.user("Is 91 prime?"))
    session.append(rs.assistant(thoughts[0], "No, 91 is 7 x 13.", origin=origin, usage=used))
    session.append(rs.user("And 97?"))
    session.append(rs.assistant(thoughts[1], "Yes.", origin=origin, usage=used))
    return session


def examples() -> list[Example]:
    """Return every example of this module."""
    return [
        thing
        for name, thing in globals().items()
        if isinstance(thing, FunctionType) and name not in HELPERS
    ]


# Stores


def store_for_owner(store: rs.Store, session: rs.Session) -> None:
    mine = store.for_owner("user-7")
    mine.session("chat-42", create=True)
    assert [one.id for one in mine.sessions().items] == ["chat-42"]


def store_report(store: rs.Store, session: rs.Session) -> None:
    (row,) = store.report(by="model")[1:]  # the first is of messages without a model
    assert (row.model, row.output, row.reasoning) == ("deepseek-reasoner", 60, 48)


def store_export_lines(store: rs.Store, session: rs.Session) -> None:
    with rs.Store("sqlite://") as other:
        other.import_lines(store.export_lines("primes"))
        assert other.session("primes").history() == session.history()


def store_verify(store: rs.Store, session: rs.Session) -> None:
    assert store.verify().ok


def store_backup(store: rs.Store, session: rs.Session) -> None:
    store.backup("primes.backup.db", overwrite=True)
    assert Path("primes.backup.db").exists()


def owner_session(store: rs.Store, session: rs.Session) -> None:
    made = store.session("chat-42", create=True, title="Chat", metadata={"from": "web"})
    assert store.session("chat-42").title == made.title


def owner_find_session(store: rs.Store, session: rs.Session) -> None:
    session.append(rs.user("And 101?"), id="m-17")  # an id of your own
    found = store.find_session("m-17")
    assert found is not None
    assert (found.id, found.get("m-17").position) == ("primes", 5)


def store_owners(store: rs.Store, session: rs.Session) -> None:
    store.for_owner("user-7").session("chat-42", create=True)
    assert sorted(store.owners().items) == ["", "user-7"]


def owner_sessions(store: rs.Store, session: rs.Session) -> None:
    page = store.sessions(title="prime", limit=20)
    assert [(one.id, one.preview) for one in page.items] == [("primes", "Yes.")]
    assert page.next is None  # else: store.sessions(after=page.next)


def owner_search(store: rs.Store, session: rs.Session) -> None:
    (hit,) = store.search("13", within="thinking").items
    assert (hit.session, hit.position, hit.marked()) == ("primes", 2, "7 * **13** = 91.")


def owner_thoughts(store: rs.Store, session: rs.Session) -> None:
    latest, _ = store.thoughts(model="deepseek*").items
    assert latest.text == "Nothing up to 9."


def owner_budget(store: rs.Store, session: rs.Session) -> None:
    budget = store.budget(limit=50, warn_at=0.8)
    assert (str(budget), budget.state) == ("48/50", "warning")


def owner_delete(store: rs.Store, session: rs.Session) -> None:
    assert store.delete().sessions == 1  # all of this owner


def owner_erase(store: rs.Store, session: rs.Session) -> None:
    assert store.erase().copies == ()  # no file holds the bytes any more


# Sessions


def session_append(store: rs.Store, session: rs.Session) -> None:
    stored = session.append(rs.user("And 101?"), idempotency_key="request-7")
    again = session.append(rs.user("And 101?"), idempotency_key="request-7")
    assert (stored.position, again.position, again.is_new) == (5, 5, False)


def session_update_metadata(store: rs.Store, session: rs.Session) -> None:
    session.update_metadata({"revision": 1}, expected={"revision": None})
    session.append(rs.user("And 101?"), update_metadata={"revision": 2}, expected={"revision": 1})
    assert session.metadata == {"revision": 2}


def session_head(store: rs.Store, session: rs.Session) -> None:
    assert session.head() == 4


def session_record(store: rs.Store, session: rs.Session) -> None:
    session.append(rs.user("And 101?"))
    stream = [
        {"choices": [{"index": 0, "delta": {"reasoning_content": "Nothing up to 10."}}]},
        {"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]},
    ]  # what the provider's SDK yields
    with session.record(stream, provider="deepseek") as reply:
        said = "".join(chunk.text for chunk in reply if isinstance(chunk, rs.TextChunk))
    assert said == "Yes."
    assert session.history()[-1].message.thinking[0].thought == "Nothing up to 10."


def session_history(store: rs.Store, session: rs.Session) -> None:
    for item in session.history(limit=2):
        print(item.position, item.message.role, item.message.text)
    assert len(session.history()) == 4


def session_get(store: rs.Store, session: rs.Session) -> None:
    reply = session.get(2)  # by position, or by id
    assert session.get(reply.id).message.thinking[0].thought == "7 * 13 = 91."


def session_annotate(store: rs.Store, session: rs.Session) -> None:
    session.annotate(2, {"rating": 1})
    assert session.get(2).annotations == {"rating": 1}


def session_follow(store: rs.Store, session: rs.Session) -> None:
    for chunk in session.follow():  # in any process; at once over if no reply is arriving
        print(chunk)


def session_stop(store: rs.Store, session: rs.Session) -> None:
    assert not session.stop()  # no reply is arriving


def session_context(store: rs.Store, session: rs.Session) -> None:
    context = session.context(provider="deepseek", model="deepseek-reasoner", system="Be brief.")
    assert context.usage().effective < context.usage().raw
    assert context.request().kwargs["messages"][0]["content"] == "Be brief."


def session_build_request(store: rs.Store, session: rs.Session) -> None:
    session.append(rs.user("And 101?"))
    request = session.build_request(provider="deepseek", model="deepseek-reasoner")
    # client.chat.completions.create(**request.kwargs, stream=True)
    assert [verdict.rule for verdict in request.verdicts] == ["include", "include"]
    assert request.tokens.effective < request.tokens.raw


def session_usage(store: rs.Store, session: rs.Session) -> None:
    usage = session.usage(limit=1_000)
    assert usage.effective < usage.raw  # thinking is left out
    assert str(usage) == f"{usage.effective}/1000"


def session_what_if(store: rs.Store, session: rs.Session) -> None:
    print(session.what_if())  # a table: each setting, its tokens, whether the provider takes it
    assert len(session.what_if().rows) == 8


def session_compression(store: rs.Store, session: rs.Session) -> None:
    plan = session.compression(limit=40, reserve=8)
    assert plan.action == "summarize"
    assert plan.to_summarize is not None
    made = session.compact(plan, summary="91 is not prime.")  # a model wrote it
    assert made is not None
    session.undo(made.id)


def session_budget(store: rs.Store, session: rs.Session) -> None:
    budget = session.budget(limit=50)
    assert (budget.state, budget.crossed) == ("warning", ("warning",))
    assert session.budget(limit=50).crossed == ()  # each mark is named once


def session_fork(store: rs.Store, session: rs.Session) -> None:
    other = session.fork(at=3)
    other.append(rs.user("And 93?"))
    assert [len(one.history()) for one in (session, other)] == [4, 3]


def session_edit(store: rs.Store, session: rs.Session) -> None:
    session.edit(3, rs.user("And 93?"))
    assert [one.message.text for one in session.history()][-1] == "And 93?"
    assert session.branch(1).get(3).message.text == "And 97?"


def session_regenerate(store: rs.Store, session: rs.Session) -> None:
    session.regenerate(4)
    assert session.history()[-1].message.text == "And 97?"  # now record another reply


def session_pop_turn(store: rs.Store, session: rs.Session) -> None:
    session.pop_turn()
    assert len(session.history()) == 2


def session_drop_tail(store: rs.Store, session: rs.Session) -> None:
    dropped = session.drop_tail(at=2)
    assert [one.position for one in dropped] == [2, 3, 4]


def session_activate(store: rs.Store, session: rs.Session) -> None:
    session.regenerate(4)
    session.activate(1)  # the first version is the one that opens
    assert len(store.session("primes").history()) == 4


def session_erase(store: rs.Store, session: rs.Session) -> None:
    session.erase(2, only="reasoning")
    assert session.get(2).message.text == "No, 91 is 7 x 13."
    assert session.get(2).message.thinking == ()


def session_settings_set(store: rs.Store, session: rs.Session) -> None:
    session.settings.set("reasoning.includeInContext", True)
    held = session.settings.resolved()["reasoning.includeInContext"]
    assert (held.value, held.layer) == (True, "session")


# Without a store


def build_request(store: rs.Store, session: rs.Session) -> None:
    messages = [rs.user("Is 91 prime?")]
    request = rs.build_request(messages, provider="anthropic", model="claude-opus-4-8")
    # client.messages.create(**request.kwargs)
    assert request.body["messages"][0]["role"] == "user"


def normalize_response(store: rs.Store, session: rs.Session) -> None:
    reply = {"role": "assistant", "content": "No.", "reasoning_content": "7 * 13 = 91."}
    body = {"choices": [{"index": 0, "message": reply, "finish_reason": "stop"}]}
    message = rs.normalize_response(body, provider="deepseek")
    assert (message.thinking[0].thought, message.text) == ("7 * 13 = 91.", "No.")


def split_reasoning(store: rs.Store, session: rs.Session) -> None:
    split = rs.split_reasoning("<think>7 * 13 = 91.</think>No.")
    assert (split.visible, split.thoughts) == ("No.", ("7 * 13 = 91.",))


def visible_parts(store: rs.Store, session: rs.Session) -> None:
    parts = rs.visible_parts(session.get(2), {"reasoning.includeInResponse": False})
    assert [part.type for part in parts] == ["text"]


def effective_tokens(store: rs.Store, session: rs.Session) -> None:
    count = rs.effective_tokens(session.history(), provider="deepseek", model="deepseek-reasoner")
    assert count.effective < count.raw


def explain_refusal(store: rs.Store, session: rs.Session) -> None:
    found = rs.explain_refusal("anthropic", "Invalid `signature` in `thinking` block")
    assert found is not None
    assert found.setting == "reasoning.stripFromContext=all"
