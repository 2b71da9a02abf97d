"""The session key: frozen, and different for different names."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given

from reasoning_store.ledger import keys

from .histories import any_name

VECTOR = [
    (("", ""), 8330023318930524229),
    (("user-7", "chat-42"), 3452144379284380379),
    (("\u00e9", "\u0301"), 5278747828455134596),
]


@pytest.mark.parametrize(("names", "key"), VECTOR)
def test_the_key_of_a_session_never_changes(names: tuple[str, str], key: int) -> None:
    """A stored row is found only by the key that it was stored under."""
    assert key == keys.session_key(*names)


def test_the_key_is_what_the_design_says() -> None:
    """First 8 bytes of BLAKE2b over the length-prefixed UTF-8 parts, top bit cleared."""
    raw = (6).to_bytes(8, "big") + b"user-7" + (7).to_bytes(8, "big") + b"chat-42"
    expected = int.from_bytes(blake2b(raw).digest()[:8], "big") & ~(1 << 63)

    assert expected == keys.session_key("user-7", "chat-42")


@given(any_name, any_name)
def test_every_string_has_a_key_of_63_bits(owner: str, session_id: str) -> None:
    """Also the empty one."""
    assert 0 <= keys.session_key(owner, session_id) < 1 << 63


@given(any_name, any_name)
def test_what_is_moved_between_the_names_changes_the_key(one: str, other: str) -> None:
    """Lengths are part of it: nothing slides from the owner into the id."""
    assert keys.session_key(one + other, "") != keys.session_key(one, other) or not other
    assert keys.session_key(one, other) != keys.owner_key(one + other)


def test_ids_sort_by_time_and_are_of_version_7() -> None:
    """A list of messages sorted by id is close to sorted by time."""
    made = [keys.new_id() for _ in range(1000)]

    assert len(made) == len(set(made))
    assert {"7"} == {one[14] for one in made}
    assert {True} == {one[19] in "89ab" for one in made}
    assert made[0][:8] <= made[-1][:8]
