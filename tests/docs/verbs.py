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
    origin = rs.Origin(provider="deepseek", model="deepseek-flash")
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


def store_scrub(store: rs.Store, session: rs.Session) -> None:
    session.erase()
    assert store.scrub() == ()  # no file may still hold the erased bytes


def owner_identify(store: rs.Store, session: rs.Session) -> None:
    asked = store.identify([rs.user("Is 7 prime?")])
    client = asked.store([rs.user("Is 7 prime?")])
    asked.append_reply(client, rs.assistant("Yes: 7 has no divisor but 1 and itself."))
    sent = [rs.user("Is 7 prime?"), client.history()[-1].message, rs.user("And 8?")]
    found = store.identify(sent)
    assert (found.match, found.session_id, found.first_new) == ("chain", client.id, 2)


def owner_report(store: rs.Store, session: rs.Session) -> None:
    (row,) = store.report(by="model")[1:]  # the first is of messages without a model
    assert (row.model, row.output, row.reasoning) == ("deepseek-flash", 60, 48)


def owner_export_lines(store: rs.Store, session: rs.Session) -> None:
    with rs.Store("sqlite://") as other:
        other.import_lines(store.export_lines("primes"))
        assert other.session("primes").history() == session.history()


def owner_import_lines(store: rs.Store, session: rs.Session) -> None:
    lines = list(store.export_lines("primes"))
    with rs.Store("sqlite://") as other:
        assert other.import_lines(lines).messages == 4
        assert other.import_lines(lines).messages == 0  # all of them are there already

    store.for_owner("ada").import_lines(lines)  # all of the lines are for this owner
    assert store.for_owner("ada").session("primes").head() == 4


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
    context = session.context(provider="deepseek", model="deepseek-flash", system="Be brief.")
    assert context.usage().effective < context.usage().raw
    assert context.request().kwargs["messages"][0]["content"] == "Be brief."


def session_build_request(store: rs.Store, session: rs.Session) -> None:
    session.append(rs.user("And 101?"))
    request = session.build_request(provider="deepseek", model="deepseek-flash")
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


def session_rename(store: rs.Store, session: rs.Session) -> None:
    session.rename("Primes below 100")
    assert session.title == "Primes below 100"


def session_set_metadata(store: rs.Store, session: rs.Session) -> None:
    session.set_metadata({"project": "north"})
    (found,) = store.sessions(metadata={"project": "north"}).items
    assert found.id == "primes"


def session_archive(store: rs.Store, session: rs.Session) -> None:
    session.archive()
    assert store.sessions().items == []
    session.archive(archived=False)


def session_compact(store: rs.Store, session: rs.Session) -> None:
    plan = session.compression(limit=45)
    made = session.compact(plan, summary="91 is no prime.")
    assert made is not None
    assert (made.first, made.last) == (1, 2)


def session_compactions(store: rs.Store, session: rs.Session) -> None:
    session.compact(session.compression(limit=45), summary="91 is no prime.")
    assert [one.kind for one in session.compactions()] == ["summary"]


def session_undo(store: rs.Store, session: rs.Session) -> None:
    made = session.compact(session.compression(limit=45), summary="91 is no prime.")
    assert made is not None
    session.undo(made.id)  # the messages are sent again
    assert session.compactions() == []


def session_branches(store: rs.Store, session: rs.Session) -> None:
    session.edit(3, rs.user("And 99?"))
    first, second = session.branches()
    assert (first.head, second.parent, second.is_current) == (4, 1, True)


def session_branch(store: rs.Store, session: rs.Session) -> None:
    session.edit(3, rs.user("And 99?"))
    assert session.branch(1).history()[2].message.text == "And 97?"


def session_delete(store: rs.Store, session: rs.Session) -> None:
    session.delete()
    assert store.sessions().items == []


def context_request(store: rs.Store, session: rs.Session) -> None:
    context = session.context(provider="moonshot", model="kimi-k2-thinking", limit=128_000)
    assert context.request().body["model"] == "kimi-k2-thinking"


def context_usage(store: rs.Store, session: rs.Session) -> None:
    context = session.context(provider="moonshot", model="kimi-k2-thinking", limit=128_000)
    assert context.usage().limit == 128_000


def context_what_if(store: rs.Store, session: rs.Session) -> None:
    context = session.context(provider="moonshot", model="kimi-k2-thinking", limit=128_000)
    assert len(context.what_if().rows) == 8


def context_compression(store: rs.Store, session: rs.Session) -> None:
    context = session.context(provider="moonshot", model="kimi-k2-thinking", limit=128_000)
    assert context.compression(reserve=8_000).action == "none"


def context_record(store: rs.Store, session: rs.Session) -> None:
    session.append(rs.user("And 101?"))
    context = session.context(provider="moonshot", model="kimi-k2-thinking", limit=128_000)
    stream = [{"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]}]
    with context.record(stream) as reply:
        list(reply)
    assert session.history()[-1].message.text == "Yes."


def recording_feed(store: rs.Store, session: rs.Session) -> None:
    session.append(rs.user("And 101?"))
    event = {"choices": [{"index": 0, "delta": {"content": "Yes."}}]}
    with session.record(provider="deepseek", model="deepseek-flash") as reply:
        (chunk,) = reply.feed(event)
        reply.finish()
    assert isinstance(chunk, rs.TextChunk)
    assert session.history()[-1].message.text == "Yes."


def session_settings_unset(store: rs.Store, session: rs.Session) -> None:
    session.settings.set("reasoning.includeInContext", True)
    session.settings.unset("reasoning.includeInContext")
    assert session.settings.resolved()["reasoning.includeInContext"].layer == "default"


def session_settings_use(store: rs.Store, session: rs.Session) -> None:
    store.settings.profiles.set("terse", {"reasoning.effort": "low"})
    session.settings.use("terse")
    assert session.settings.resolved()["reasoning.effort"].value == "low"


def session_settings_resolved(store: rs.Store, session: rs.Session) -> None:
    found = session.settings.resolved()["reasoning.stripFromContext"]
    assert (found.value, found.layer) == ("none", "default")


def owner_settings_set(store: rs.Store, session: rs.Session) -> None:
    store.settings.set("reasoning.effort", "low")  # for all sessions of the owner
    assert session.settings.resolved()["reasoning.effort"].layer == "owner"


def owner_settings_unset(store: rs.Store, session: rs.Session) -> None:
    store.settings.set("reasoning.effort", "low")
    store.settings.unset("reasoning.effort")
    assert store.settings.resolved()["reasoning.effort"].layer == "default"


def profiles_set(store: rs.Store, session: rs.Session) -> None:
    store.settings.profiles.set("terse", {"reasoning.effort": "low"})
    assert store.settings.profiles.get("terse").settings == {"reasoning.effort": "low"}


def profiles_change(store: rs.Store, session: rs.Session) -> None:
    profiles = store.settings.profiles
    profiles.set("terse", {"reasoning.effort": "low"})
    included = {"reasoning.includeInContext": True}
    changed = profiles.change("terse", included, unset=["reasoning.effort"])
    assert changed.settings == included


def profiles_all(store: rs.Store, session: rs.Session) -> None:
    store.settings.profiles.set("terse", {"reasoning.effort": "low"})
    assert [one.name for one in store.settings.profiles.all()] == ["terse"]


def profiles_drop(store: rs.Store, session: rs.Session) -> None:
    store.settings.profiles.set("terse", {"reasoning.effort": "low"})
    store.settings.profiles.drop("terse")
    assert store.settings.profiles.all() == []


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
    count = rs.effective_tokens(session.history(), provider="deepseek", model="deepseek-flash")
    assert count.effective < count.raw


def explain_refusal(store: rs.Store, session: rs.Session) -> None:
    found = rs.explain_refusal("anthropic", "Invalid `signature` in `thinking` block")
    assert found is not None
    assert found.settings == ("reasoning.stripFromContext=all", "reasoning.floor=off")


def user(store: rs.Store, session: rs.Session) -> None:
    message = rs.user("Is 91 prime?")
    assert (message.role, message.text) == ("user", "Is 91 prime?")


def assistant(store: rs.Store, session: rs.Session) -> None:
    message = rs.assistant(rs.ThinkingBlock(thought="7 * 13 = 91."), "No.")
    assert message.thinking[0].thought == "7 * 13 = 91."


def system(store: rs.Store, session: rs.Session) -> None:
    assert rs.system("You are brief.").role == "system"


def tool(store: rs.Store, session: rs.Session) -> None:
    message = rs.tool(rs.ToolResponseBlock(call_id="call_1", tool_name="next_prime", result=97))
    assert message.role == "tool"


def stream_normalizer_feed(store: rs.Store, session: rs.Session) -> None:
    normalizer = rs.StreamNormalizer(provider="deepseek", model="deepseek-flash")
    event = {"choices": [{"index": 0, "delta": {"reasoning_content": "7 * 13"}}]}
    (chunk,) = [
        one for one in normalizer.feed(event) if isinstance(one, rs.ReasoningChunk) and one.text
    ]
    assert chunk.text == "7 * 13"


def stream_normalizer_finish(store: rs.Store, session: rs.Session) -> None:
    normalizer = rs.StreamNormalizer(provider="deepseek", model="deepseek-flash")
    choice = {"index": 0, "delta": {"content": "No."}, "finish_reason": "stop"}
    normalizer.feed({"choices": [choice]})
    assert normalizer.finish().text == "No."


def tag_filter_feed(store: rs.Store, session: rs.Session) -> None:
    tags = rs.TagFilter()
    runs = [run for piece in ("<th", "ink>7 * 13</think>", "No.") for run in tags.feed(piece)]
    runs += tags.finish()
    assert "".join(run.text for run in runs if run.kind == "visible") == "No."


def secret_masker_mask(store: rs.Store, session: rs.Session) -> None:
    masked = rs.SecretMasker().mask("my key is sk-ant-api03-" + "a" * 80)
    assert "aaaa" not in masked


def select(store: rs.Store, session: rs.Session) -> None:
    selection = rs.select(session.history(), provider="deepseek", model="deepseek-flash")
    assert [verdict.kept for verdict in selection.verdicts] == [False, False]


def what_if(store: rs.Store, session: rs.Session) -> None:
    table = rs.what_if(session.history(), provider="deepseek", model="deepseek-flash")
    assert len(table.rows) == 8


def ui_messages(store: rs.Store, session: rs.Session) -> None:
    page = rs.ui_messages(session.history())
    assert [part["type"] for part in page[1]["parts"]] == ["step-start", "reasoning", "text"]


def write_message(store: rs.Store, session: rs.Session) -> None:
    (body,) = rs.write_message(session.get(2), provider="deepseek", model="deepseek-flash")
    assert body["content"] == "No, 91 is 7 x 13."


def refusal(store: rs.Store, session: rs.Session) -> None:
    from reasoning_store.testing import refusal

    call = {"id": "1", "type": "function", "function": {"name": "next_prime", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "The next prime?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "97"},
    ]
    body = {"model": "kimi-k2-thinking", "messages": messages}
    assert "reasoning_content is missing" in str(refusal(body, provider="moonshot"))


def stream(store: rs.Store, session: rs.Session) -> None:
    from reasoning_store.testing import stream

    message = rs.assistant(rs.ThinkingBlock(thought="7 * 13", source_field="think_tags"), "No.")
    with_tags = stream(message, api="openai.chat", pieces=4)
    texts = [event["choices"][0]["delta"].get("content") or "" for event in with_tags]
    assert "".join(texts) == "<think>7 * 13</think>No."


def response(store: rs.Store, session: rs.Session) -> None:
    from reasoning_store.testing import response

    body = response(rs.assistant("No."), api="anthropic.messages")
    assert rs.normalize_response(body, provider="anthropic").text == "No."


def sse(store: rs.Store, session: rs.Session) -> None:
    from reasoning_store.testing import sse, stream

    events = stream(rs.assistant("No."), api="openai.chat")
    assert sse(events, api="openai.chat").startswith(b"data: ")


def carries(store: rs.Store, session: rs.Session) -> None:
    from reasoning_store.testing import carries

    assert carries(rs.assistant("No."), "openai.chat")
