"""ERR-002: if nothing can count, the number is an estimate; and one counter serves a process."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import warnings
import zlib
from collections.abc import Callable, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
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
from reasoning_store.tokens.estimate import estimate
from tests.properties import each, examples
from tests.tokens.counting import (
    BOTH,
    IN_THE_WORLD,
    ROOT,
    Fake,
    first_count,
    tokens_of,
)

if TYPE_CHECKING:
    import tiktoken


def counter_with(encode: Callable[[str], Sized]) -> Counter:
    return Counter("o200k_base", lambda: Fake(encode))


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
    count = Counter(encoding, lambda: shipped.build(vocabulary, packed)).count

    with pytest.warns(RuntimeWarning, match=f"tokens of {encoding} are estimated") as warned:
        found = [count(text) for text in IN_THE_WORLD.values()]

    assert len(warned) == 1
    assert found == [Count(estimate(t, encoding), "estimated") for t in IN_THE_WORLD.values()]


def test_err_002_where_warnings_are_errors_the_log_has_the_notice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ERR-002: the count goes on, and its reason is written down."""
    vocabulary = shipped.VOCABULARIES["o200k_base"]
    count = Counter("o200k_base", lambda: shipped.build(vocabulary, b"")).count
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count("Is 91 prime?").exactness == "estimated"

    assert "tokens of o200k_base are estimated" in caplog.text


@given(at=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
@examples(40)
def test_err_002_no_flipped_byte_is_believed(at: float, flip: int) -> None:
    """A byte changed anywhere in the file is noticed before a count is made with it."""
    vocabulary = shipped.VOCABULARIES["cl100k_base"]
    packed = bytearray(shipped.read(vocabulary))
    packed[int(at * len(packed))] ^= flip

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = Counter("cl100k_base", lambda: shipped.build(vocabulary, bytes(packed))).count(
            "Is 91 prime?"
        )

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
        found = Counter("o200k_base", lambda: shipped.load(vocabulary)).count("Hello")

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
        found = Counter("o200k_base", load).count("Hello")

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


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal here")
@each("error", [TimeoutError(), SoftTimeLimit()])
def test_a_time_limit_of_a_signal_handler_reaches_the_application(error: Exception) -> None:
    """It is raised from a load, a count and a long count, and every later count is exact."""

    def handle(*_signal: object) -> None:
        raise error

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

    count = Counter("o200k_base", load).count
    before = signal.signal(signal.SIGUSR1, handle)
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
        found = Counter("o200k_base", load).count("Hello")

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

    interrupted = Counter("o200k_base", load)
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

    found = hammer(Counter("cl100k_base", load).count, "Is 91 prime?")

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
        found = hammer(Counter("o200k_base", load).count, "Is 91 prime?")

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
