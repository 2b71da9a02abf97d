"""Secrets never reach what is stored, and what a provider wants back is never touched."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.errors import InvalidCall, SettingError
from reasoning_store.ingress.masking import Masker, StreamMasker
from reasoning_store.ingress.secrets import RULES, SecretMasker
from tests.ingress.secrets_to_hide import EXAMPLES, KEYS, PEM, PLANTED, TEXTS, VALUE, Stars
from tests.properties import each


def written(kind: str, key: str) -> str:
    """Return a key as it is in a text: credentials only ever stand in an address."""
    return f"postgres://{key}@db/app" if kind == "url_credentials" else key


# Keys that are known by their prefix


@each("kind, key", EXAMPLES)
@each(
    "before, after",
    [
        ("", ""),
        ("the key is ", ", keep it"),
        ('{"key":"', '"}'),
        ("KEY=", "\n"),
        ("first\\n", "\\nlast"),
        ("a%3D", "%26b"),
        ("(", ")."),
        ("[masked:jwt]", " again"),
    ],
)
def test_a_key_is_replaced_by_its_kind(kind: str, key: str, before: str, after: str) -> None:
    """Wherever a word begins, and all of it goes."""
    text = before + written(kind, key) + after

    assert SecretMasker().mask(text) == before + written(kind, f"[masked:{kind}]") + after


def test_every_kind_has_an_example() -> None:
    """A rule without a key that it finds is not a rule."""
    assert {rule.kind for rule in RULES} == set(KEYS)


@each(
    "text",
    [
        "task-list-of-things-to-do-2024-and-more",
        "the sk-learn-contrib-estimators-package is fine",
        "desk-0123456789abcdef0123456789abcdef",
        "commit 3c59dc048e8850243be8079a5c74d079c59dc048",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "gAAAAABmT0d3c2lnbmF0dXJlX3RoYXRfaXNfbG9uZ19hbmRfcmFuZG9t",
        "see https://example.com:8080/@user and http://localhost:3000/a?b=c@d",
        "mail me at someone@example.com: it is ok",
        "begin with -----BEGIN PRIVATE KEY----- and then the base64 of it",
        "AKIA is a prefix, AIza too, and eyJ.eyJ. is none",
        "password = swordfish, token = none, secret = yes",
        "<think>sk-</think> ghp_short xoxb-1",
        "",
    ],
)
def test_what_is_no_key_is_left_as_it_is(text: str) -> None:
    """Nothing is guessed from entropy or from words such as password."""
    assert SecretMasker().mask(text) == text


def test_a_key_longer_than_any_real_one_is_masked_whole() -> None:
    """Only the first characters decide; the rest of the word goes with them."""
    assert SecretMasker().mask(f"a sk-ant-{'x' * 9_000} b") == "a [masked:anthropic_key] b"


def test_a_private_key_that_was_cut_off_is_masked() -> None:
    """A reply that ends in the middle of a key has the key in it all the same."""
    cut = PEM[: len(PEM) // 2]

    assert SecretMasker().mask(f"here: {cut}") == "here: [masked:private_key]"
    assert SecretMasker().mask(f"{cut}\nSorry, I stop.") == "[masked:private_key]\nSorry, I stop."


def test_two_keys_side_by_side_are_both_masked() -> None:
    """What stands right after a secret is looked at as if it began a word."""
    key = KEYS["aws_key_id"][0]
    text = f"{VALUE}{key} {KEYS['private_key'][0]}{key}"

    assert SecretMasker([VALUE]).mask(text) == (
        "[masked:value_1][masked:aws_key_id] [masked:private_key][masked:aws_key_id]"
    )


def test_prefixes_can_be_left_out() -> None:
    """An application that has other rules for them registers its values alone."""
    masker = SecretMasker([VALUE], prefixes=False)
    key = KEYS["aws_key_id"][0]

    assert masker.mask(f"{key} {VALUE}") == f"{key} [masked:value_1]"


# Registered values


@each(
    "spelling",
    [
        VALUE,
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        quote(VALUE, safe=""),
        quote(VALUE, safe="").lower().replace("%c3%bc", "%c3%bc"),
        quote(VALUE),
        quote(VALUE, safe="!'()*"),
        quote_plus(VALUE),
        base64.b64encode(VALUE.encode()).decode(),
        base64.urlsafe_b64encode(VALUE.encode()).decode(),
        base64.b64encode(VALUE.encode()).decode().rstrip("="),
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
        html.escape(VALUE),
        html.escape(VALUE).encode("ascii", "xmlcharrefreplace").decode(),
        html.escape(VALUE).replace("+", "&#43;"),
        html.escape(VALUE).replace("+", "&#x2B;"),
        json.dumps(VALUE)[1:-1].replace("\\u00fc", "\\u00FC"),
        json.dumps(VALUE)[1:-1].replace("/", "\\/"),
        json.dumps(VALUE, ensure_ascii=False)[1:-1].replace("/", "\\/"),
    ],
)
def test_a_value_is_found_in_every_spelling(spelling: str) -> None:
    """JSON, URLs and base64 do not hide it."""
    assert SecretMasker([VALUE]).mask(f"a {spelling} b") == "a [masked:value_1] b"


@each("before", range(7))
@each("after", range(4))
def test_base64_of_a_text_around_a_value_is_masked(before: int, after: int) -> None:
    """Basic authentication encodes a name and the secret together."""
    value = "correct horse"
    encoded = base64.b64encode(b"u" * before + value.encode() + b"!" * after).decode()
    begins, ends = 8 * before // 6, -(-8 * (before + len(value)) // 6)
    first, last = SecretMasker([value]).mask(encoded).split("[masked:value_1]")

    assert first == encoded[:begins]
    assert last.rstrip("=") == encoded[ends:].rstrip("=")


@each("line_break", ["\n", "\r\n", "\\n", "\\r\\n"])
@each("before", range(0, 80, 7))
def test_base64_in_lines_of_76_is_masked(before: int, line_break: str) -> None:
    """As mail writes it, and in JSON, whose writer may escape slashes."""
    value = "correct horse ? battery ? staple ? and many more words that need two lines"
    encoded = base64.b64encode(b"u" * before + value.encode() + b"?" * 90).decode()
    begins, ends = 8 * before // 6, -(-8 * (before + len(value)) // 6)
    lines = line_break.join(encoded[at : at + 76] for at in range(0, len(encoded), 76))

    for text in (lines, lines.replace("/", "\\/")):
        hidden = SecretMasker([value]).mask(text).replace("\\/", "/").replace(line_break, "")
        first, last = hidden.split("[masked:value_1]")

        # A character of the neighbours', which holds bits of the value, may be left by a break.
        assert first in (encoded[:begins], encoded[: begins + 1])
        assert last in (encoded[ends:], encoded[ends - 1 :])


def test_the_escapes_of_other_writers_of_json_do_not_hide_a_value() -> None:
    """.NET escapes a plus sign, Go and PHP what HTML would read, and each its own way."""
    for value, spelling in (
        ("pass+word+1", r"pass\u002Bword\u002B1"),
        ("it's it+\u00e9", r"it\u0027s it\u002B\u00E9"),
        ("<secret&co>", r"\u003csecret\u0026co\u003e"),
        ("<secret/co>", r"\u003Csecret\/co\u003E"),
        ("\U0001f600secrets", r"\uD83D\uDE00secrets"),
    ):
        assert SecretMasker([value]).mask(spelling) == "[masked:value_1]", spelling


def test_a_value_that_begins_another_leaves_no_rest_of_it() -> None:
    """The longer one is tried first."""
    masker = SecretMasker(["swordfish", "swordfish-and-chips"])

    assert masker.mask("swordfish-and-chips swordfish") == "[masked:value_2] [masked:value_1]"


@pytest.mark.parametrize("values", [["1234567"], ["long enough", ""], [b"12345678"], "one string"])
def test_a_short_value_is_refused(values: Any) -> None:
    """It would be found everywhere; the error says which one it is and not what it is."""
    with pytest.raises(SettingError) as error:
        SecretMasker(values)

    assert "1234567" not in str(error.value)


@pytest.mark.parametrize("wrong", [{"values": None}, {"values": 5}, {"key": "a text"}], ids=str)
def test_what_makes_no_masker_is_refused_at_once(wrong: dict[str, Any]) -> None:
    """And not by the first secret that it meets."""
    with pytest.raises(SettingError, match=f"not {type(next(iter(wrong.values()))).__name__}"):
        SecretMasker(**wrong)


def test_what_is_no_text_is_not_masked() -> None:
    """The content of an SDK's object is None where it has none."""
    with pytest.raises(InvalidCall, match="not NoneType"):
        SecretMasker().mask(None)  # type: ignore[arg-type]


def test_with_a_key_equal_secrets_have_equal_placeholders() -> None:
    """The digest is keyed, so that a short secret cannot be found by trying."""
    one, other = KEYS["secret_key"][:2]
    masker = SecretMasker([VALUE], key=b"kept elsewhere")
    first, again, second, value = masker.mask(f"{one} {one} {other} {VALUE}").split(" ")

    assert first == again != second
    assert first.startswith("[masked:secret_key:")
    assert value.startswith("[masked:value_1:")
    assert SecretMasker([VALUE], key=b"another").mask(one) != first
    assert SecretMasker([VALUE]).mask(first) == first


MASKERS = st.sampled_from(
    [
        SecretMasker(),
        SecretMasker([VALUE, "swordfish"]),
        SecretMasker([VALUE, "swordfish"], prefixes=False),
        SecretMasker(["swordfish", VALUE], key=b"kept elsewhere"),
        SecretMasker(["correct horse battery", "\u5bc6\u7801 is \u5341\u4e8c"]),
    ]
)


# Promises for any text


@given(MASKERS, TEXTS)
def test_masking_twice_is_masking_once(masker: SecretMasker, text: str) -> None:
    """A placeholder is never masked again, and never makes a secret of its neighbours."""
    once = masker.mask(text)

    assert masker.mask(once) == once


@given(TEXTS)
def test_no_registered_value_is_left(text: str) -> None:
    """Not as it is, and not as base64 or in a URL."""
    hidden = SecretMasker([VALUE, "swordfish"]).mask(text)

    assert VALUE not in hidden
    assert quote(VALUE, safe="") not in hidden
    assert base64.b64encode(VALUE.encode()).decode() not in hidden
    assert "swordfish" not in hidden


def in_pieces(text: str, cuts: Iterable[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


@given(MASKERS, TEXTS, st.lists(st.integers(0, 5_000), max_size=40))
def test_a_text_in_pieces_is_masked_like_the_whole(
    masker: SecretMasker, text: str, cuts: list[int]
) -> None:
    """However it is split, the pieces handed out join to the masked whole, growing only."""
    stream, whole, out = StreamMasker(masker), masker.mask(text), ""
    for piece in in_pieces(text, cuts):
        out += stream.feed(piece)
        assert whole.startswith(out)

    assert out + stream.finish() == whole


@each("masker", [SecretMasker(["swordfish"]), Stars()])
@each("size", [1, 7, 1_000, 100_000])
def test_a_long_text_in_pieces_is_masked_like_the_whole(masker: Masker, size: int) -> None:
    """The stream lets go of what is settled, and nothing is lost or shown by that."""
    text = "".join(f"{n} sword**secretfish {PLANTED[n % len(PLANTED)]}, " for n in range(300))
    stream, whole = StreamMasker(masker), masker.mask(text)
    out = [stream.feed(text[start : start + size]) for start in range(0, len(text), size)]

    assert "".join(out) + stream.finish() == whole


@given(st.text("ab* \n", max_size=400), st.lists(st.integers(0, 400), max_size=20))
def test_released_text_stays_a_lookback_before_the_newest_text(text: str, cuts: list[int]) -> None:
    """At least ``lookback`` characters behind, and not much more than twice that."""
    masker = Stars()
    stream = StreamMasker(masker)
    fed = given_out = 0
    for piece in in_pieces(text, cuts):
        fed += len(piece)
        given_out += len(stream.feed(piece))
        assert given_out <= max(0, fed - masker.lookback)
        assert given_out >= fed - 3 * masker.lookback - max(map(len, in_pieces(text, cuts)))


@each(
    "text",
    ["It will rain. ", "\u4eca\u5929\u4e0b\u96e8\u3002", "See https://a.example/b and ", "a\tb\t"],
)
@each("values", [[], ["swordfish"], ["correct horse battery"]])
def test_a_live_text_is_held_no_longer_than_a_secret_can_begin_in_it(
    text: str, values: list[str]
) -> None:
    """A follower sees each word of a short reply once the next one begins."""
    assert StreamMasker(SecretMasker(values)).feed(text) == text


@each("text", ["My key: sk-", "-----BEGIN ", "https://\u5bc6", "it is correct "])
def test_a_text_in_which_a_secret_may_begin_waits(text: str) -> None:
    """Whatever it becomes: the words before it are out, and it is not."""
    stream = StreamMasker(SecretMasker(["correct horse battery"]))

    assert len(stream.feed(text)) < len(text)
    assert stream.feed("no. ") + stream.finish() != ""


def test_a_stream_masker_can_be_used_again() -> None:
    """After the rest of one text was taken, the next piece begins another."""
    stream = StreamMasker(SecretMasker())
    text = "so much to say. " * 100

    assert stream.feed(text) + stream.finish() == text
    assert stream.feed("sk-") + stream.finish() == "sk-"
    assert stream.feed("k" * 40) + stream.finish() == "k" * 40


def test_the_reach_of_the_shipped_masker_is_small() -> None:
    """A draft is hundreds of characters behind, not thousands, whatever the longest key."""
    assert SecretMasker(["swordfish"]).lookback < 500
    assert SecretMasker(prefixes=False).lookback == 0


HOSTILE = [
    *("sk-", " sk-", " sk-ant-", "eyJ", "eyJaaaaaaaa.", " eyJaaaaaaaa.", "://", "://a:", "AKIA"),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n", "-", "%3D", "\\n", " "),
    *("swordfis", "swordfish", PEM[:-10], "A" * 64 + "\n", "[masked:", "gh", "xox", "a"),
]


class Counting:
    """A masker that counts the characters it is asked to look at."""

    def __init__(self) -> None:
        self._masker = SecretMasker(["swordfish"])
        self.lookback = self._masker.lookback
        self.seen = 0

    def mask(self, text: str) -> str:
        self.seen += len(text)
        return self._masker.mask(text)

    def settled(self, text: str) -> int:
        self.seen += len(text)
        return self._masker.settled(text)


@each("unit", HOSTILE)
def test_a_hostile_text_is_looked_at_in_proportion_to_its_length(unit: str) -> None:
    """Sixteen times the text is not two hundred and fifty-six times the work."""

    def looked_at(size: int) -> int:
        text = "-----BEGIN PRIVATE KEY-----\n" + (unit * (size // len(unit) + 1))[:size]
        masker = Counting()
        stream = StreamMasker(masker)
        pieces = [stream.feed(text[at : at + 1_024]) for at in range(0, len(text), 1_024)]
        pieces.append(stream.finish())
        assert "".join(pieces) == SecretMasker(["swordfish"]).mask(text)
        return masker.seen

    assert looked_at(160_000) < 40 * looked_at(10_000)
