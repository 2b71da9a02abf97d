"""A framework's message comes back exactly, and an erasure of reasoning takes its thoughts."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.integrations import foreign_forms
from tests.properties import examples
from tests.strategies import json_values, texts

THOUGHT: Final = "a thought of the model"
SEALED: Final = "the seal of the thought"
MESSAGE: Final = rs.assistant(
    rs.ThinkingBlock(thought=THOUGHT, signature=SEALED),
    rs.ThinkingBlock(thought="brief", encrypted="another sealed thought"),
    rs.TextBlock(text="the answer of the model"),
    rs.TextBlock(text="", provider_metadata={"thoughtSignature": "a seal on an empty text"}),
    rs.ToolCallBlock(
        id="c1",
        name="w",
        parameters={"city": "Oslo", "days": [1, 2.0, True]},
        provider_metadata={"thoughtSignature": "a seal that is on a call"},
    ),
    rs.MediaBlock(kind="image", mime_type="image/png", data=b"\xff\xfe" * 20),
    metadata={"score": 1},
)
SECRETS: Final = (
    THOUGHT,
    SEALED,
    "brief",
    "another sealed thought",
    "a seal that is on a call",
)
HELD: Final = (*SECRETS, "the answer of the model", "//7//v/+//7//v/+")
_VALUES = st.one_of(
    json_values(),
    st.sampled_from(HELD),
    st.just({"city": "Oslo", "days": [1, 2.0, True]}),
    st.binary(max_size=4),
    st.builds("{}{}{}".format, texts(), st.sampled_from(HELD), texts()),
    st.sampled_from([{"$block": ["text", 0, "text"]}, {"$thought": 0}, {"$pieces": []}, {}]),
)
FORMS = st.recursive(
    _VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
    max_leaves=12,
)


def is_thought(path: foreign_forms.Path, value: Any) -> bool:
    """Whether a value says so, as the parts of frameworks do."""
    return isinstance(value, dict) and value.get("type") == "thinking"


@examples(200)
@given(form=FORMS)
def test_a_message_comes_back_exactly(form: Any) -> None:
    """Whatever its form, and wherever the values of its blocks are in it."""
    read = foreign_forms.with_form(MESSAGE, "framework", form, is_thought)
    rebuilt = foreign_forms.rebuild(read, "framework")

    assert rebuilt is not None
    assert repr(rebuilt.form) == repr(form)
    assert rebuilt.is_whole
    assert json.loads(json.dumps(read.metadata)) == read.metadata


FORM: Final[dict[str, Any]] = {
    "id": "m1",
    "parts": [
        {"type": "thinking", "thinking": THOUGHT, "signature": SEALED, "index": 0},
        {"type": "thinking", "thinking": "brief", "note": "a word about the thought"},
        {"type": "text", "text": "the answer of the model"},
        {"type": "call", "args": {"city": "Oslo"}, "extras": {"s": "a seal that is on a call"}},
    ],
    "raw": f"<think>{THOUGHT}</think>the answer of the model",
    "copy": THOUGHT,
}


@pytest.mark.parametrize("name", ["thought", "seal", "residue"])
def test_an_erasure_of_reasoning_leaves_nothing_of_a_thought(name: str, url: str) -> None:
    """Not in the parts, not in a copy of it, not in a text that held it."""
    secrets = {"thought": THOUGHT, "seal": SEALED, "residue": "a word about the thought"}
    read = foreign_forms.with_form(MESSAGE, "framework", FORM, is_thought)
    with rs.Store(url) as store:
        session = store.session("chat-42", create=True)
        session.append(read)
        assert foreign_forms.rebuild(session.get(1).message, "framework") == (
            FORM,
            True,
            frozenset(),
        )
        session.erase(only="reasoning")
        left = foreign_forms.rebuild(session.get(1).message, "framework")
        exported = "".join(store.export_lines())

    assert secrets[name] not in exported
    assert left is not None
    assert not left.is_whole
    assert left.form == {
        "id": "m1",
        "parts": [FORM["parts"][2], {"type": "call", "args": {"city": "Oslo"}}],
        "raw": "the answer of the model",
    }


def test_a_thought_is_stored_once() -> None:
    """The form refers to the block, in the part of the thought and elsewhere."""
    read = foreign_forms.with_form(MESSAGE, "framework", FORM, is_thought)
    held = ("the answer of the model", THOUGHT, SEALED, "a seal that is on a call")

    assert [value for value in held if value in json.dumps(read.metadata)] == []


def test_thoughts_can_be_left_out_one_by_one() -> None:
    """As a selection withholds them; the stored message stays as it is."""
    read = foreign_forms.with_form(MESSAGE, "framework", FORM, is_thought)
    rebuilt = foreign_forms.rebuild(read, "framework", withheld={1})

    assert rebuilt is not None
    assert rebuilt.form["parts"] == [FORM["parts"][0], *FORM["parts"][2:]]
    assert not rebuilt.is_whole


def test_a_message_of_no_framework_has_no_form() -> None:
    """It is written by its blocks then."""
    assert foreign_forms.rebuild(MESSAGE, "framework") is None
