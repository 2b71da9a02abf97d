"""What counting promises: exact offline, in linear time, and never the end of an append."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import warnings
import zlib
from collections.abc import Callable, Sized
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reasoning_store.tokens as tokenizers
from reasoning_store.conversation.errors import SettingError
from reasoning_store.tokens import (
    Count,
    Counter,
    Exactness,
    counter,
    worst,
)
from reasoning_store.tokens import vocabularies as shipped
from reasoning_store.tokens.counter import (
    HARD_CUT_TOKENS,
    MOST_CHARS,
    WHOLE_CHARS,
    TiktokenCounter,
    pieces,
)
from reasoning_store.tokens.estimate import estimate
from tests.properties import each, examples

if TYPE_CHECKING:
    import tiktoken

ROOT = Path(__file__).resolve().parents[2]
BOTH = pytest.mark.parametrize("encoding", tokenizers.ENCODINGS)
IN_THE_WORLD: dict[str, str] = json.loads(
    (Path(__file__).parent / "scripts.json").read_text("utf-8")
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


@cache
def reference(encoding: str) -> tiktoken.Encoding:
    """tiktoken itself, for whole-text counts."""
    return shipped.load(shipped.VOCABULARIES[encoding])


def tokens_of(encoding: str, text: str) -> list[int]:
    return reference(encoding).encode_ordinary(text)


class Fake:
    """Stands where tiktoken's encoding does; remembers what it was handed."""

    def __init__(self, encode: Callable[[str], Sized] = lambda text: text) -> None:
        self.encode = encode
        self.handed: list[str] = []

    def encode_ordinary(self, text: str) -> Sized:
        self.handed.append(text)
        return self.encode(text)


def counter_with(encode: Callable[[str], Sized]) -> TiktokenCounter:
    return TiktokenCounter("o200k_base", lambda: Fake(encode))


# --- Offline ------------------------------------------------------------------------------

FIRST_COUNT = """
import json, os, socket, sys

asked, wrote = [], []
def watch(event, arguments):
    if event.startswith("socket."):
        asked.append(event)
    elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        wrote.append(str(arguments[0]))
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"):
        wrote.append(event)
def unplugged(*arguments, **options):
    raise OSError("the network is unplugged")
socket.socket = socket.create_connection = socket.getaddrinfo = unplugged
environment = dict(os.environ)
sys.addaudithook(watch)

import warnings
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    from reasoning_store.tokens import counter
    first, second = (counter(sys.argv[1]).count("Is 91 prime?") for _ in range(2))

registry = sys.modules.get("tiktoken.registry")
print(json.dumps({
    "first": first, "second": second, "asked": asked, "wrote": wrote,
    "warned": [[warning.category.__name__, str(warning.message)] for warning in warned],
    "environment kept": environment == dict(os.environ),
    "registered": [len(registry.ENCODINGS), registry.ENCODING_CONSTRUCTORS is not None]
                  if registry else None,
}))
"""


def first_count(
    encoding: str, scratch: Path, *, package: Path = ROOT, variables: dict[str, str] | None = None
) -> Any:
    """The first count of a new process that has no network, no cache and no one's home."""
    for name in ("home", "tmp"):
        (scratch / name).mkdir(exist_ok=True)
    keep = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    environment = keep | {
        "HOME": str(scratch / "home"),
        "USERPROFILE": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "TEMP": str(scratch / "tmp"),
        "PYTHONPATH": str(package),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", FIRST_COUNT, encoding],
        env=environment | (variables or {}),
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [*(scratch / "home").iterdir(), *(scratch / "tmp").iterdir()] == []
    return json.loads(done.stdout)


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


@pytest.mark.parametrize("text", ["word " * 2_000_000, "a" * 10_000_000, " x" * 5_000_000])
def test_ten_megabytes_are_handed_over_in_bounded_pieces(text: str) -> None:
    """The work is linear: every character is handed over once, in pieces of bounded length."""
    fake = Fake(lambda piece: piece)

    found = TiktokenCounter("o200k_base", lambda: fake).count(text)

    lengths = [len(piece) for piece in fake.handed]
    assert len(text) == sum(lengths)
    assert max(lengths) <= MOST_CHARS
    assert len(lengths) <= len(text) // WHOLE_CHARS + 1
    assert len(text) <= found.tokens <= len(text) + HARD_CUT_TOKENS * len(lengths)


@BOTH
def test_a_count_is_the_same_again(encoding: str) -> None:
    """The same text has the same count, from another counter too."""
    for text in (*IN_THE_WORLD.values(), " " * 200_000):
        fresh = TiktokenCounter(encoding, lambda: reference(encoding))

        assert counter(encoding).count(text) == counter(encoding).count(text) == fresh.count(text)


# --- ERR-002 ------------------------------------------------------------------------------


@each("name", sorted(IN_THE_WORLD))
@BOTH
def test_err_002_an_estimate_is_never_lower_than_the_count(encoding: str, name: str) -> None:
    """In every script and format: whole, and cut at any place into pieces of any size."""
    text = IN_THE_WORLD[name]
    assert estimate(text, encoding) >= len(tokens_of(encoding, text))

    for size in (1, 2, 5, 12, 40):
        for start in range(0, len(text) - size):
            piece = text[start : start + size]
            assert estimate(piece, encoding) >= len(tokens_of(encoding, piece)), ascii(piece)


@BOTH
def test_err_002_an_estimate_is_not_out_of_all_proportion(encoding: str) -> None:
    """High, but of use: under three times the count of English, of code and of Chinese."""
    for name in ("English", "Python", "JSON", "Chinese, simplified", "German"):
        text = IN_THE_WORLD[name]

        assert estimate(text, encoding) < 3 * len(tokens_of(encoding, text)) + 3


@given(text=st.text(max_size=40))
def test_err_002_an_estimate_is_bounded_by_the_bytes(text: str) -> None:
    """Whatever the characters: a number from 0 to the length in bytes."""
    for encoding in tokenizers.ENCODINGS:
        found = estimate(text, encoding)

        assert bool(text) <= found <= len(text.encode())


def test_err_002_an_estimate_of_ten_megabytes_adds_up() -> None:
    """The estimate of a text is no more than the sum over its parts: it is linear."""
    part = IN_THE_WORLD["English"] + "\n"

    assert estimate(part * 50_000, "o200k_base") <= 50_000 * estimate(part, "o200k_base")


def broken(how: str, vocabulary: shipped.Vocabulary) -> bytes:
    packed = shipped.read(vocabulary)
    middle = len(packed) // 2
    match how:
        case "truncated":
            return packed[:middle]
        case "a flipped byte":
            return packed[:middle] + bytes([packed[middle] ^ 1]) + packed[middle + 1 :]
        case "empty":
            return b""
        case "not compressed":
            return b"IQ== 0\n" * 1000
        case "another vocabulary":
            other = {"cl100k_base": "o200k_base", "o200k_base": "cl100k_base"}[vocabulary.name]
            return shipped.read(shipped.VOCABULARIES[other])
        case _:  # well formed, one token another: only the digest can tell
            data = bytearray(zlib.decompress(packed))
            data[-1] ^= 1
            return zlib.compress(bytes(data))


HOW = ["truncated", "a flipped byte", "empty", "not compressed", "another vocabulary", "a token"]


@pytest.mark.parametrize("how", HOW)
@BOTH
def test_err_002_a_broken_vocabulary_degrades_with_one_warning(encoding: str, how: str) -> None:
    """Whatever is wrong with the file: every count is an estimate, the warning comes once."""
    vocabulary = shipped.VOCABULARIES[encoding]
    packed = broken(how, vocabulary)
    count = TiktokenCounter(encoding, lambda: shipped.build(vocabulary, packed)).count

    with pytest.warns(RuntimeWarning, match=f"tokens of {encoding} are estimated") as warned:
        found = [count(text) for text in IN_THE_WORLD.values()]

    assert len(warned) == 1
    assert found == [Count(estimate(t, encoding), "estimated") for t in IN_THE_WORLD.values()]


@given(at=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
@examples(40)
def test_err_002_no_flipped_byte_is_believed(at: float, flip: int) -> None:
    """A byte changed anywhere in the file is noticed before a count is made with it."""
    vocabulary = shipped.VOCABULARIES["cl100k_base"]
    packed = bytearray(shipped.read(vocabulary))
    packed[int(at * len(packed))] ^= flip

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = TiktokenCounter(
            "cl100k_base", lambda: shipped.build(vocabulary, bytes(packed))
        ).count("Is 91 prime?")

    # A change in what the format leaves unused may leave every token as it was.
    assert (len(warned), found.exactness) in {(1, "estimated"), (0, "exact")}
    assert found.tokens == (
        5 if found.exactness == "exact" else estimate("Is 91 prime?", "cl100k_base")
    )


@pytest.mark.parametrize("how", ["missing", "truncated", "a flipped byte"])
def test_err_002_an_installation_with_a_broken_file_still_counts(how: str, tmp_path: Path) -> None:
    """In a process of its own: the broken encoding degrades, no connection is tried, the
    other one stays exact."""
    copy = tmp_path / "site" / "reasoning_store"
    shutil.copytree(ROOT / "reasoning_store", copy, ignore=shutil.ignore_patterns("__pycache__"))
    vocabulary = shipped.VOCABULARIES["o200k_base"]
    data = copy / "tokens" / "data" / vocabulary.file_name
    data.unlink()
    if how != "missing":
        data.write_bytes(broken(how, vocabulary))

    degraded = first_count("o200k_base", tmp_path, package=copy.parent)
    other = first_count("cl100k_base", tmp_path, package=copy.parent)

    assert [estimate("Is 91 prime?", "o200k_base"), "estimated"] == degraded["first"]
    assert degraded["first"] == degraded["second"]
    assert [category for category, _ in degraded["warned"]] == ["RuntimeWarning"]
    assert (degraded["asked"], degraded["wrote"]) == ([], [])
    assert (other["first"], other["warned"]) == ([5, "exact"], [])


def test_err_002_without_tiktoken_counts_are_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiktoken that cannot be imported is one more thing that may fail."""
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    vocabulary = shipped.VOCABULARIES["o200k_base"]

    with pytest.warns(RuntimeWarning, match="ModuleNotFoundError"):
        found = TiktokenCounter("o200k_base", lambda: shipped.load(vocabulary)).count("Hello")

    assert found.exactness == "estimated"


class PanicException(BaseException):
    """What pyo3 raises looks like this: its name, and no Exception."""


def test_err_002_a_panic_is_an_estimate_and_the_next_text_is_counted() -> None:
    """A panic over one text costs that text its exactness, and nothing else."""

    def encode(text: str) -> Sized:
        if "bad" in text:
            raise PanicException("called `Result::unwrap()` on an `Err` value")
        return text

    count = counter_with(encode).count

    with pytest.warns(RuntimeWarning, match="after PanicException") as warned:
        found = [count("bad one"), count("good"), count("bad two"), count("good " * 9000 + "bad")]

    assert len(warned) == 1
    assert [c.exactness for c in found] == ["estimated", "exact", "estimated", "estimated"]


def test_err_002_a_panic_while_loading_is_an_estimate() -> None:
    """tiktoken's constructor is Rust too."""

    def load() -> Fake:
        raise PanicException("no regex")

    with pytest.warns(RuntimeWarning, match="after PanicException: no regex"):
        found = TiktokenCounter("o200k_base", load).count("Hello")

    assert found.exactness == "estimated"


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, RecursionError])
def test_err_002_any_failure_of_the_encoder_is_an_estimate(error: type[Exception]) -> None:
    """Counting never stops an append."""

    def encode(text: str) -> Sized:
        raise error(text)

    with pytest.warns(RuntimeWarning):
        found = counter_with(encode).count("Hello")

    assert found.exactness == "estimated"


def test_the_warning_does_not_quote_the_text() -> None:
    """What an error says about a text may hold the text; the warning holds its type only."""

    def encode(text: str) -> Sized:
        raise ValueError(text)

    with pytest.warns(RuntimeWarning) as warned:
        counter_with(encode).count("my secret")

    assert "secret" not in str(warned[0].message)
    assert "ValueError" in str(warned[0].message)


class SoftTimeLimit(Exception):
    """A task queue's time limit looks like this."""


def raise_error(error: BaseException, *_signal: object) -> None:
    raise error


class Handler:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, *_signal: object) -> None:
        raise self.error


HANDLERS: dict[str, Callable[[BaseException], Callable[..., None]]] = {
    "a function": lambda error: lambda *_signal: raise_error(error),
    "a partial": lambda error: partial(raise_error, error),
    "a method": lambda error: Handler(error).__call__,
    "an object": Handler,
}


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal here")
@each("how", HANDLERS)
@each("error", [TimeoutError(), SoftTimeLimit(), RuntimeError("time is up")])
def test_an_exception_of_a_signal_handler_reaches_the_application(
    how: str, error: Exception
) -> None:
    """It is raised from a load, a count and a long count, and every later count is exact."""
    armed = ["load", "count", "long count"]

    def interrupted(step: str) -> None:
        if step in armed:
            armed.remove(step)
            signal.raise_signal(signal.SIGUSR1)

    def encode(text: str) -> Sized:
        interrupted("long count" if len(text) > 99 else "count")
        return text

    def load() -> Fake:
        interrupted("load")
        return Fake(encode)

    count = TiktokenCounter("o200k_base", load).count
    before = signal.signal(signal.SIGUSR1, HANDLERS[how](error))
    try:
        for text in ("load", "count", "long " * 9000):
            with pytest.raises(type(error)) as raised:
                count(text)
            assert raised.value is error
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert [count("one"), count("one " * 9000)] == [Count(3, "exact"), Count(36_000, "exact")]


def test_an_exception_class_of_the_applications_is_no_failure() -> None:
    """What another thread raises into this one has no handler; its class is the application's."""

    def encode(text: str) -> Sized:
        raise SoftTimeLimit

    with pytest.raises(SoftTimeLimit):
        counter_with(encode).count("Hello")


def test_err_002_where_warnings_are_errors_the_first_count_is_an_estimate() -> None:
    """The label is notice enough: a broken tokenizer stops no append."""

    def load() -> Fake:
        raise OSError("no such file")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = TiktokenCounter("o200k_base", load).count("Hello")

    assert found.exactness == "estimated"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_is_not_swallowed(stop: type[BaseException]) -> None:
    """What is not a failure goes through, from a count and from a load; a load begins again."""
    loads: list[int] = []

    def encode(text: str) -> Sized:
        raise stop

    def load() -> Fake:
        loads.append(1)
        if len(loads) == 1:
            raise stop
        return Fake()

    interrupted = TiktokenCounter("o200k_base", load)
    with pytest.raises(stop):
        counter_with(encode).count("Hello")
    with pytest.raises(stop):
        interrupted.count("Hello")

    assert interrupted.count("Hello") == Count(5, "exact")
    assert len(loads) == 2


@pytest.mark.parametrize("wrong", [None, b"Hello", 3])
def test_what_is_no_text_is_a_mistake_and_no_estimate(wrong: Any) -> None:
    """A caller's mistake is raised; it does not turn into a number and a warning."""
    with pytest.raises(TypeError):
        counter().count(wrong)


# --- One for the process ------------------------------------------------------------------


def hammer(count: Callable[[str], Count], text: str, *, threads: int = 16) -> list[Count]:
    """The counts of many threads that all begin at once."""
    begin = threading.Barrier(threads)
    found: list[Count] = []

    def work() -> None:
        begin.wait()
        found.extend(count(text) for _ in range(20))

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found


def test_threads_that_begin_together_load_once_and_agree() -> None:
    """One vocabulary a process, however many threads ask for the first count."""
    loads: list[int] = []

    def load() -> tiktoken.Encoding:
        loads.append(1)
        return shipped.load(shipped.VOCABULARIES["cl100k_base"])

    found = hammer(TiktokenCounter("cl100k_base", load).count, "Is 91 prime?")

    assert len(loads) == 1
    assert {Count(5, "exact")} == set(found)
    assert len(found) == 320


def test_threads_that_fail_together_warn_once() -> None:
    """One load, one warning, the same estimate for all."""
    loads: list[int] = []

    def load() -> Fake:
        loads.append(1)
        raise OSError("no such file")

    with pytest.warns(RuntimeWarning) as warned:
        found = hammer(TiktokenCounter("o200k_base", load).count, "Is 91 prime?")

    assert (len(loads), len(warned)) == (1, 1)
    assert {"estimated"} == {count.exactness for count in found}


@BOTH
def test_a_counter_is_made_once_for_a_process(encoding: str) -> None:
    """Asking again gives the same one, with its vocabulary loaded."""
    assert counter(encoding) is counter(encoding)
    assert counter(encoding).encoding == encoding


def test_the_default_encoding_is_o200k_base() -> None:
    """And it is one of the two that ship."""
    assert tokenizers.DEFAULT_ENCODING == counter().encoding == "o200k_base"
    assert tokenizers.ENCODINGS == ("cl100k_base", "o200k_base")


@each("name", ["", "gpt-4o", "O200K_BASE", "p50k_base", None, ["o200k_base"]])
def test_an_unknown_encoding_is_refused_with_the_allowed_ones(name: Any) -> None:
    """ERR-001: the message says what may be written instead."""
    with pytest.raises(SettingError, match="cl100k_base, o200k_base") as refused:
        counter(name)

    assert refused.value.key == "encoding"
    assert refused.value.hint


_BEHIND_THE_END = """
import sys, threading
if sys.argv[1] == "imported before":
    import reasoning_store.tokens

main = threading.current_thread()

def count():
    main.join()
    from reasoning_store.tokens import counter
    print(counter().count("Is 91 prime?").exactness)

threading.Thread(target=count).start()
"""


@pytest.mark.parametrize(
    ("when", "exactness"), [("imported before", "exact"), ("imported there", "estimated")]
)
def test_a_thread_that_outlives_the_main_one_counts_exactly(when: str, exactness: str) -> None:
    """What it stores is counted once, and for good; it can be stored in any case."""
    done = subprocess.run(
        [sys.executable, "-c", _BEHIND_THE_END, when], capture_output=True, text=True, timeout=60
    )

    assert done.stdout == f"{exactness}\n", done.stderr


def test_another_counter_can_stand_in() -> None:
    """The protocol asks for a name and a count; nothing has to be inherited."""

    class Words:
        encoding = "words"

        def count(self, text: str) -> Count:
            return Count(len(text.split()), "exact")

    mine: Counter = Words()

    assert mine.count("Is 91 prime?") == Count(3, "exact")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ((), "exact"),
        (("exact", "exact"), "exact"),
        (("exact", "reported"), "reported"),
        (("estimated", "reported", "exact"), "estimated"),
    ],
)
def test_the_label_of_a_sum_is_its_worst(
    labels: tuple[Exactness, ...], expected: Exactness
) -> None:
    """estimated outweighs reported outweighs exact; nothing at all is exact."""
    assert worst(*labels) == expected
