"""The two vocabularies: what they must be, and how they get from a file into tiktoken.

A broken file raises here; ``counter`` then estimates.

A data file holds only the order of the tokens: the 256 bytes, which come first, then for each
further token the ranks of two earlier ones that make it up. (There are always two: that is how such
a vocabulary was learned.) The ranks are in six runs, high, middle and low bytes of the first
halves, then of the second ones, all compressed with zlib, which every Python has. That is a fifth
of the published ``.tiktoken`` file, and returns it byte for byte; its sha256 is checked.
``tools/make_vocabularies.py`` makes the files.

The tokens go to ``tiktoken.Encoding(...)`` directly. tiktoken's own loading is never
used: it reads environment variables, deletes a cached file that it does not like, and
then opens a connection.
"""

from __future__ import annotations

import struct
import zlib
from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

# tiktoken imports it, and Python refuses that once the main thread has ended.
with suppress(RuntimeError):
    import concurrent.futures.thread  # noqa: F401

DATA_FOLDER = "data"
DATA_SUFFIX = ".tokens.zlib"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The data that identify an encoding. They are tiktoken's; a test compares the two."""

    name: str
    size: int
    """How many ordinary tokens there are; their ranks are 0 to ``size - 1``."""
    sha256: str
    """Of the published ``.tiktoken`` file."""
    pattern: str
    special_tokens: Mapping[str, int]

    @property
    def file_name(self) -> str:
        return self.name + DATA_SUFFIX


VOCABULARIES: Mapping[str, Vocabulary] = {
    vocabulary.name: vocabulary
    for vocabulary in (
        Vocabulary(
            name="cl100k_base",
            size=100_256,
            sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
            pattern=(
                r"'(?i:[sdmt]|ll|ve|re)"
                r"|[^\r\n\p{L}\p{N}]?+\p{L}++"
                r"|\p{N}{1,3}+"
                r"| ?[^\s\p{L}\p{N}]++[\r\n]*+"
                r"|\s++$"
                r"|\s*[\r\n]"
                r"|\s+(?!\S)"
                r"|\s"
            ),
            special_tokens={
                "<|endoftext|>": 100257,
                "<|fim_prefix|>": 100258,
                "<|fim_middle|>": 100259,
                "<|fim_suffix|>": 100260,
                "<|endofprompt|>": 100276,
            },
        ),
        Vocabulary(
            name="o200k_base",
            size=199_998,
            sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
            pattern=(
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
                r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
                r"|\p{N}{1,3}"
                r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
                r"|\s*[\r\n]+"
                r"|\s+(?!\S)"
                r"|\s+"
            ),
            special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
        ),
    )
}


def load(vocabulary: Vocabulary) -> tiktoken.Encoding:
    """Make the encoding from the file that ships with this package."""
    return build(vocabulary, read(vocabulary))


def read(vocabulary: Vocabulary) -> bytes:
    """Return the packed file, wherever the package is installed, a zip included."""
    from importlib.resources import files

    return files(__package__).joinpath(DATA_FOLDER, vocabulary.file_name).read_bytes()


def build(vocabulary: Vocabulary, packed: bytes) -> tiktoken.Encoding:
    """Return the encoding of a packed file; ``ValueError`` unless it is the published one."""
    import tiktoken

    tokens = unpack(packed, vocabulary.size)
    if sha256(published(tokens)).hexdigest() != vocabulary.sha256:
        raise ValueError(f"{vocabulary.file_name} is not the vocabulary that tiktoken expects")
    return tiktoken.Encoding(
        name=vocabulary.name,
        pat_str=vocabulary.pattern,
        mergeable_ranks={token: rank for rank, token in enumerate(tokens)},
        special_tokens=dict(vocabulary.special_tokens),
    )


def unpack(packed: bytes, size: int) -> list[bytes]:
    """Return the tokens of a packed file, in rank order."""
    data = zlib.decompress(packed)
    merged = size - 256
    if len(data) != 256 + 6 * merged:
        raise ValueError(f"the file is not one of {size} tokens")
    runs = [data[start : start + merged] for start in range(256, len(data), merged)]
    tokens = [bytes([byte]) for byte in data[:256]]
    for left, right in zip(_ranks(*runs[:3]), _ranks(*runs[3:]), strict=True):
        tokens.append(tokens[left] + tokens[right])
    return tokens


def _ranks(high: bytes, middle: bytes, low: bytes) -> tuple[int, ...]:
    numbers = bytearray(4 * len(low))
    numbers[0::4], numbers[1::4], numbers[2::4] = low, middle, high
    return struct.unpack(f"<{len(low)}I", numbers)


def published(tokens: Sequence[bytes]) -> bytes:
    """Return the text of the ``.tiktoken`` file: a line of base64 token and rank for each."""
    return b"".join(
        b"%s %d\n" % (b2a_base64(token, newline=False), rank) for rank, token in enumerate(tokens)
    )
