"""What counting promises: exact offline, in linear time, and never the end of an append."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reasoning_store.tokens as tokenizers
from reasoning_store.tokens import (
    Count,
    counter,
)
from reasoning_store.tokens import vocabularies as shipped
from reasoning_store.tokens.counter import (
    HARD_CUT_TOKENS,
    MOST_CHARS,
    MOST_COUNTED,
    WHOLE_CHARS,
    Counter,
    pieces,
)
from tests.properties import each, examples
from tests.tokens.counting import (
    BOTH,
    IN_THE_WORLD,
    ROOT,
    Fake,
    first_count,
    reference,
    tokens_of,
)

# Counted once from the published .tiktoken files by another program (the `regex` module for
# the pattern, merging in plain Python), which shares no code with the package or tiktoken.
KNOWN = [
    # text, cl100k_base, o200k_base
    ("", 0, 0),
    ("Is 91 prime?", 5, 5),
    ("91 = 7 * 13, so it is not a prime number.", 16, 16),
    ("<|endoftext|>", 7, 7),
    ("<think>7*13</think>No.", 10, 10),
    ("I'LL say we've done it, don't you?", 13, 11),
    ('{"name": "get_weather", "arguments": {"city": "Z\xfcrich", "days": 3}}', 24, 24),
    ("def f(x):\n    return x ** 2\n\n\nprint(f(12345))\n", 17, 17),
    ("\u4f60\u597d\uff0c\u4e16\u754c\uff01", 7, 4),
    ("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", 7, 5),
    ("\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", 10, 4),
    ("\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", 13, 5),
    ("\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f600", 14, 9),
    ("a\n\n \n  b\t\tc   d", 9, 8),
    ("\x00\x1f\xad\ufeff", 4, 4),
    ("   ", 1, 1),
    ("https://example.org/a/b?c=d&e=%20#f", 14, 14),
    ("\ufffd\ufffd", 1, 1),
]


# --- Offline ------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("variable", ["none", "TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_the_first_count_is_exact_with_the_network_unplugged(
    encoding: str, variable: str, tmp_path: Path
) -> None:
    """No network, no home, no cache: exact, and no trace of it on the machine."""
    empty = tmp_path / "cache"
    empty.mkdir()

    found = first_count(encoding, tmp_path, variables={variable: str(empty)})

    assert found == {
        "first": [5, "exact"],
        "second": [5, "exact"],
        "asked": [],
        "wrote": [],
        "warned": [],
        "environment kept": True,
        "registered": [0, False],
    }
    assert list(empty.iterdir()) == []


def test_a_cache_of_tiktoken_is_neither_believed_nor_changed(tmp_path: Path) -> None:
    """A wrong file in tiktoken's cache, which tiktoken would delete, is left where it is."""
    folder = tmp_path / "cache"
    folder.mkdir()
    wrong = folder / "fb374d419588a4632f3f557e76b4b70aebbca790"
    wrong.write_bytes(b"IQ== 0\n")

    found = first_count("o200k_base", tmp_path, variables={"TIKTOKEN_CACHE_DIR": str(folder)})

    assert found["first"] == [5, "exact"]
    assert wrong.read_bytes() == b"IQ== 0\n"


def test_importing_reads_no_vocabulary() -> None:
    """Neither the package nor this room imports tiktoken or decompresses anything."""
    code = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda e, a: opened.append(str(a[0])) if e == 'open' else None)\n"
        "import reasoning_store, reasoning_store.tokens as t\n"
        "t.counter('o200k_base'), t.counter('cl100k_base')\n"
        "print('tiktoken' in sys.modules, [p for p in opened if p.endswith('.zlib')])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout == "False []\n"


# --- The vocabularies ---------------------------------------------------------------------


@BOTH
def test_pattern_special_tokens_and_digest_are_those_of_tiktoken(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our constants are the ones in the installed tiktoken's own source."""
    openai_public: Any = importlib.import_module("tiktoken_ext.openai_public")
    expected: dict[str, str] = {}

    def note(_address: str, expected_hash: str) -> dict[bytes, int]:
        expected["sha256"] = expected_hash
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", note)
    theirs = openai_public.ENCODING_CONSTRUCTORS[encoding]()
    ours = shipped.VOCABULARIES[encoding]

    assert theirs == {
        "name": ours.name,
        "pat_str": ours.pattern,
        "mergeable_ranks": {},
        "special_tokens": dict(ours.special_tokens),
    }
    assert ours.sha256 == expected["sha256"]


@BOTH
def test_a_shipped_file_holds_the_published_file_byte_for_byte(encoding: str) -> None:
    """The compact form loses nothing: it hashes to what tiktoken expects."""
    vocabulary = shipped.VOCABULARIES[encoding]

    tokens = shipped.unpack(shipped.read(vocabulary), vocabulary.size)

    assert vocabulary.size == len(tokens) == len(set(tokens))
    assert hashlib.sha256(shipped.published(tokens)).hexdigest() == vocabulary.sha256


def test_the_shipped_files_are_small_and_carry_their_licence() -> None:
    """Both together are under 1.1 MB, and tiktoken's licence lies next to them."""
    folder = ROOT / "reasoning_store" / "tokens" / "data"

    size = sum(v.stat().st_size for v in folder.glob("*.zlib"))
    notice = (folder / "NOTICE").read_text("ascii")

    assert 0 < size < 1_100_000
    assert "openai/tiktoken" in notice
    assert "MIT License" in notice


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make", ROOT / "tools/make_vocabularies.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_checked_in_script_writes_what_the_package_reads(tmp_path: Path) -> None:
    """From the published file to a data file and back through the package's own reader."""
    vocabulary = shipped.VOCABULARIES["cl100k_base"]
    tokens = shipped.unpack(shipped.read(vocabulary), vocabulary.size)

    script().make(vocabulary, shipped.published(tokens), tmp_path)

    packed = (tmp_path / vocabulary.file_name).read_bytes()
    assert shipped.unpack(packed, vocabulary.size) == tokens


def test_the_checked_in_script_refuses_any_other_file(tmp_path: Path) -> None:
    """A carrier with other bytes makes no data file."""
    vocabulary = shipped.VOCABULARIES["cl100k_base"]

    with pytest.raises(SystemExit, match="not the file that tiktoken expects"):
        script().make(vocabulary, b"IQ== 0\n", tmp_path)

    assert list(tmp_path.iterdir()) == []


# --- Exact counts -------------------------------------------------------------------------


@each("text, cl100k, o200k", KNOWN)
def test_known_texts_have_their_known_counts(text: str, cl100k: int, o200k: int) -> None:
    """Numbers that another program took from the published files."""
    assert counter("cl100k_base").count(text) == Count(cl100k, "exact")
    assert counter("o200k_base").count(text) == Count(o200k, "exact")


@BOTH
def test_what_looks_like_a_special_token_is_text(encoding: str) -> None:
    """A user may write <|endoftext|>; it is counted, never refused, never one token."""
    for special in shipped.VOCABULARIES[encoding].special_tokens:
        found = counter(encoding).count(f"a {special} b")

        assert found.exactness == "exact"
        assert found.tokens > 3


# --- Pieces -------------------------------------------------------------------------------

FRAGMENTS = st.one_of(
    st.sampled_from(
        "don't I'LL it's 'S '\u017f 'll HTTPServer the of ing == // \r\n \n\n ``` 123 4567 (a) "
        "\u4f60\u597d \u3002 \uff0c \u3042 \u30a2 \u30fc \uac00 \u0e01\u0e33 \u05d0 \u0663 \u2160 "
        "<|endoftext|>".split(" ")
    ),
    st.sampled_from(
        list(" \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u2003\u2028\u3000/'\".,:;_-#{}[]|0123456789aAzZsS")
    ),
    st.sampled_from(
        list("\u0301\u0489\u20dd\u200d\ufe0f\u01c5\u02b0\u212a\u3007\u00bd\u4e00\U0001f600")
    ),
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from(["  ", "   ", "\t\t", " \n ", "\n  "]),
)


MIXED = st.lists(FRAGMENTS, max_size=60).map("".join)


@given(text=MIXED, whole=st.integers(1, 20), more=st.integers(0, 20))
@example(text="x//\n/y", whole=1, more=9)
@example(text="we'\u017fll'll", whole=1, more=9)
@example(text="a\x1c b", whole=1, more=9)
@examples(600)
def test_pieces_are_the_whole(text: str, whole: int, more: int) -> None:
    """Wherever a safe cut falls, both encodings give the tokens of the uncut text."""
    cut = list(pieces(text, whole=whole, most=whole + more))

    assert text == "".join(piece for piece, _ in cut)
    for encoding in tokenizers.ENCODINGS:
        tokens: list[int] = []
        start = end = 0
        for piece, hard in cut:
            end += len(piece)
            if hard:  # a hard cut promises nothing: what lies around it is compared uncut
                continue
            tokens += tokens_of(encoding, text[start:end])
            start = end
        assert tokens == tokens_of(encoding, text)


@given(text=MIXED, seed=st.integers(0, 2**32))
@examples(25)
def test_a_long_text_counts_as_tiktoken_counts_it_whole(text: str, seed: int) -> None:
    """At the real sizes too, with natural text around whatever Hypothesis found."""
    order = random.Random(seed)
    parts = [text, *IN_THE_WORLD.values(), *(known for known, _, _ in KNOWN)]
    long = "".join(order.choice(parts) for _ in range(1500))

    for encoding in tokenizers.ENCODINGS:
        found = counter(encoding).count(long)

        assert found == Count(len(tokens_of(encoding, long)), "exact")


@each("name", sorted(IN_THE_WORLD))
def test_long_text_of_every_kind_is_exact(name: str) -> None:
    """No script and no format has to be cut hard."""
    text = (IN_THE_WORLD[name] + "\n") * (100_000 // len(IN_THE_WORLD[name]))

    for encoding in tokenizers.ENCODINGS:
        assert counter(encoding).count(text) == Count(len(tokens_of(encoding, text)), "exact")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("Chinese without a space", "\u4eba\u751f\u800c\u81ea\u7531\uff0c" * 30_000),
        ("minified JSON", '{"key":"value","n":[1,22,333]},' * 8_000),
        ("base64", hashlib.sha256(b"").hexdigest() * 3_000),
        ("lines without a space", "abcdefgh\n" * 20_000),
    ],
)
def test_text_without_spaces_is_exact(kind: str, text: str) -> None:
    """A space is only one of the places where a cut is safe."""
    for encoding in tokenizers.ENCODINGS:
        found = counter(encoding).count(text)

        assert found == Count(len(tokens_of(encoding, text)), "exact"), kind


def test_a_text_up_to_the_longest_piece_is_never_cut_hard() -> None:
    """64 Ki characters of one kind are one piece, and exact."""
    assert list(pieces("a" * MOST_CHARS)) == [("a" * MOST_CHARS, False)]
    assert [hard for _, hard in pieces("a" * (MOST_CHARS + 1))] == [True, False]
    assert counter().count("a" * MOST_CHARS).exactness == "exact"


@given(
    run=st.sampled_from(["a", "ab", "etaoin", "\u05d0\u05d1\u05d2", " ", " \t\u3000", "=-*", "\n"]),
    seed=st.integers(0, 2**32),
    length=st.integers(2, 300),
    data=st.data(),
)
@examples(300)
def test_a_hard_cut_never_counts_fewer(run: str, seed: int, length: int, data: Any) -> None:
    """What a cut through a run may lose is less than what is added for it."""
    text = "".join(random.Random(seed).choices(run, k=length))
    at = data.draw(st.integers(1, length - 1))

    for encoding in tokenizers.ENCODINGS:
        halves = len(tokens_of(encoding, text[:at])) + len(tokens_of(encoding, text[at:]))

        assert len(tokens_of(encoding, text)) <= halves + HARD_CUT_TOKENS


@each("run", [" ", "\t", "\u3000", " \t", "a", "\u4e00", "=", "\n", "\ud800"], thinned=3)
@BOTH
def test_a_million_of_one_kind_is_counted_without_a_panic(encoding: str, run: str) -> None:
    """The runs at which tiktoken panics, and their like: a number, labelled as what it is."""
    text = run * (1_000_000 // len(run))

    for million in (text, text + "x"):
        found = counter(encoding).count(million)

        assert found.exactness == "estimated"
        assert 1_000_000 / 160 < found.tokens < 3_000_000


@BOTH
def test_the_longest_piece_of_any_whitespace_is_no_panic(encoding: str) -> None:
    """64 Ki of each whitespace character, with what may follow it, stay exact."""
    for space in "\t\n\x0b\x0c\r \x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000":
        for end in ("", "x", "1", "!", "\n"):
            text = space * (MOST_CHARS - len(end)) + end
            assert counter(encoding).count(text).exactness == "exact"


@pytest.mark.parametrize("text", ["word " * 800_000, "a" * 4_000_000, " x" * 2_000_000])
def test_four_megabytes_are_handed_over_in_bounded_pieces(text: str) -> None:
    """The work is linear: every character is handed over once, in pieces of bounded length."""
    fake = Fake(lambda piece: piece)

    found = Counter("o200k_base", lambda: fake).count(text)

    lengths = [len(piece) for piece in fake.handed]
    assert len(text) == sum(lengths)
    assert max(lengths) <= MOST_CHARS
    assert len(lengths) <= len(text) // WHOLE_CHARS + 1
    assert len(text) <= found.tokens <= len(text) + HARD_CUT_TOKENS * len(lengths)


def test_a_text_that_fits_no_context_window_is_estimated() -> None:
    """By its beginning, so that no text takes longer to count than the longest that is counted."""
    fake = Fake(lambda piece: piece)
    few, many = ("word " * (MOST_COUNTED // 5 + more) for more in (0, 3 * MOST_COUNTED // 5))
    count = Counter("o200k_base", lambda: fake).count

    assert count(few) == (len(few), "exact")
    fake.handed.clear()
    assert count(many) == (len(many), "estimated")
    assert sum(map(len, fake.handed)) == MOST_COUNTED


@BOTH
def test_a_count_is_the_same_again(encoding: str) -> None:
    """The same text has the same count, from another counter too."""
    for text in (*IN_THE_WORLD.values(), " " * 200_000):
        fresh = Counter(encoding, lambda: reference(encoding))

        assert counter(encoding).count(text) == counter(encoding).count(text) == fresh.count(text)
