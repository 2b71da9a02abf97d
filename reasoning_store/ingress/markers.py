"""Delimiters of thinking inside plain text: tag names, literal markers, and their patterns.

Theory. A delimiter is a string that a model writes to turn from one channel to the other.
Two kinds exist. A *tag* is ``<name>`` or ``</name>`` with a little tolerance; a *marker*
is a model family's own string, taken exactly. The meaning of a delimiter depends only on
whether a thinking block is open, so two lists of them are enough:

    outside a block   opens, closes (stray), answers and drops are delimiters
    inside a block    closes, answers and ends are delimiters

Each list becomes two patterns: one finds the next delimiter, the other finds out whether the end of
the text may still grow into one. A delimiter is decided as soon as it is complete, the shortest
first where one begins another, so no later character changes the meaning of an earlier one; that is
why the pieces in which a text arrives cannot matter.

The contracts of ``wire`` name the families of a model; ``tags`` acts on the delimiters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from reasoning_store.conversation.errors import SettingError

DEFAULT_TAGS: tuple[str, ...] = ("think", "thinking", "thought", "reasoning", "reflection")
"""The names that models put around their thoughts."""

LONGEST_RUN = 16
"""White space allowed in each place of a tag; more of it is text, so a tag has a length."""

LONGEST_NAME = 64

_SPACE = r"[ \t\r\n\f\v]"
_SPACES = f"{_SPACE}{{0,{LONGEST_RUN}}}+"
_CONSTRAINT = f"[\\w.:-]{{0,{LONGEST_NAME}}}+"
_LENGTHS = {_SPACES: LONGEST_RUN, _CONSTRAINT: LONGEST_NAME}
"""The pieces of a delimiter that are longer than a character."""
_NOT_IN_NAMES = re.compile(r"[<>/\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The delimiters of one model family, each exact and case-sensitive.

    ``opens`` begin a block, ``closes`` end it and are removed where they are stray.
    ``answers`` wrap the visible part from the front: removed, and they end a block that
    was left open. ``drops`` are removed from visible text and are thought text inside a
    block. ``ends`` end a block and are text outside one. ``tags`` are further tag names.
    ``labels`` are removed directly after a delimiter, also without their line end before a close;
    so is a second open. A ``*`` in a delimiter stands for a
    constraint of harmony, or for nothing.
    """

    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    source: str


FAMILIES: dict[str, Family] = {
    "cohere": Family(
        opens=("<|START_THINKING|>",),
        closes=("<|END_THINKING|>",),
        answers=("<|START_RESPONSE|>", "<|START_TEXT|>"),
        drops=("<|END_RESPONSE|>", "<|END_TEXT|>"),
        source="Command A Reasoning and Command A+ (START_TEXT); the prompt may open the block",
    ),
    "ernie": Family(
        tags=("think",),
        drops=("<response>", "</response>"),
        source="ERNIE 4.5 chat template; the prompt opens the block",
    ),
    "gemma": Family(
        # A server that forces the close leaves out the line end, writes the open twice, or lets
        # the model write the name of the channel after the close.
        opens=("<|channel>",),
        closes=("<channel|>",),
        labels=("thought\n",),
        source="Gemma 4 chat template; llama.cpp tests/test-chat.cpp; ollama/ollama/pull/17626",
    ),
    # Granite 3.2 turns channels with plain English sentences. Those are words that an
    # answer may contain, so they are in no family.
    "granite": Family(
        tags=("think",),
        drops=("<response>", "</response>"),
        source="Granite 3.3 chat template",
    ),
    # A commentary message without a recipient is for the user, so it is visible. One
    # with a recipient is a tool call: its header is no literal and is left as it came,
    # like the <|call|> that ends it. Structured output names its form in the header.
    "harmony": Family(
        opens=(
            "<|channel|>analysis*<|message|>",
            "<|start|>assistant<|channel|>analysis*<|message|>",
        ),
        closes=("<|end|>", "<|return|>"),
        answers=(
            "<|channel|>final*<|message|>",
            "<|start|>assistant<|channel|>final*<|message|>",
            "<|channel|>commentary*<|message|>",
            "<|start|>assistant<|channel|>commentary*<|message|>",
        ),
        ends=("<|call|>",),
        source="OpenAI harmony response format (gpt-oss)",
    ),
    "hunyuan": Family(
        tags=("think",),
        drops=("<answer>", "</answer>"),
        source="Hunyuan A13B chat template",
    ),
    "kimi": Family(
        opens=("\u25c1think\u25b7",),
        closes=("\u25c1/think\u25b7",),
        source="Kimi-VL chat template",
    ),
    "kimi_k3": Family(
        opens=("<|open|>think<|sep|>",),
        closes=("<|close|>think<|sep|>",),
        answers=("<|open|>response<|sep|>",),
        drops=("<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>"),
        source="Kimi K3 chat template; the prompt usually opens the block",
    ),
    "medgemma": Family(
        opens=("<unused94>thought",),
        closes=("<unused95>",),
        source="MedGemma and other tunes of Gemma 3",
    ),
    "minimax_m3": Family(tags=("mm:think",), source="MiniMax M3 chat template"),
    "mistral": Family(
        opens=("[THINK]",),
        closes=("[/THINK]",),
        source="Mistral tokenizer v13 (Magistral, Small 4)",
    ),
    "seed": Family(tags=("seed:think",), source="Seed-OSS chat template"),
}


_Spelled: TypeAlias = tuple[str, ...]
"""A delimiter as the patterns of its pieces, a character each but for those of a constraint."""


class Scan(NamedTuple):
    """One list of delimiters: ``find`` the next one, or text that ``might`` become one."""

    find: re.Pattern[str]
    might: re.Pattern[str]


class Grammar(NamedTuple):
    """The patterns that the filter needs."""

    outside: Scan
    inside: Scan
    opening: Scan
    """Only delimiters that open a block."""
    trigger: str
    """The one character that every delimiter starts with, or empty where they differ."""
    triggers: re.Pattern[str]
    """Any character that a delimiter starts with."""
    reach: int
    """The most characters that may be held: one less than the longest delimiter."""
    label: Scan | None = None
    """The texts that are removed directly after a delimiter."""


def compile_grammar(tags: Iterable[str] | None, markers: Iterable[str]) -> Grammar:
    """Return the patterns for tag names and marker families; a bad one is a SettingError."""
    names = DEFAULT_TAGS if tags is None else check_tag_names(tags)
    families = _check_sequence("markers", markers)
    for family in families:
        if not isinstance(family, str) or family not in FAMILIES:
            raise SettingError(
                f"unknown marker family; known are {', '.join(FAMILIES)}", key="markers"
            )
    return _compile_grammar(names, families)


def check_tag_names(tags: Iterable[str]) -> tuple[str, ...]:
    """Return names that tags can have; a bad one is a SettingError."""
    names = _check_sequence("tags", tags)
    for name in names:
        if not isinstance(name, str) or not name or _NOT_IN_NAMES.search(name):
            raise SettingError(
                "a tag name is a text without '<', '>', '/' and white space", key="tags"
            )
        if len(name) > LONGEST_NAME:
            raise SettingError(f"a tag name has at most {LONGEST_NAME} characters", key="tags")
    return names


def _check_sequence(key: str, value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        kind = "one text" if isinstance(value, str) else type(value).__name__
        raise SettingError(f"{key} is a sequence of names, not {kind}", key=key)
    return tuple(value)


@lru_cache(maxsize=64)
def _compile_grammar(names: tuple[str, ...], families: tuple[str, ...]) -> Grammar:
    rows = [FAMILIES[family] for family in families]
    names = tuple(dict.fromkeys((*names, *(tag for row in rows for tag in row.tags))))
    opens, closes, answers, drops, ends = (
        [spelled for row in rows for literal in getattr(row, kind) for spelled in _spell(literal)]
        for kind in ("opens", "closes", "answers", "drops", "ends")
    )
    every = [*opens, *closes, *answers, *drops, *ends]
    triggers = {spelled[0][-1] for spelled in every} | ({"<"} if names or not every else set())
    lengths = [len("<>/") + 3 * LONGEST_RUN + len(name) for name in names]
    lengths += [sum(_LENGTHS.get(piece, 1) for piece in spelled) for spelled in every]
    return Grammar(
        outside=_compile_scan(
            names, [f"<{_SPACES}(?:/{_SPACES})?"], [*opens, *closes, *answers, *drops]
        ),
        inside=_compile_scan(names, [f"<{_SPACES}", f"/{_SPACES}"], [*closes, *answers, *ends]),
        opening=_compile_scan(names, [f"<{_SPACES}"], opens),
        trigger="".join(triggers) if len(triggers) == 1 else "",
        triggers=re.compile("|".join(map(re.escape, sorted(triggers)))),
        reach=max(lengths, default=1) - 1,
        label=_compile_labels([label for row in rows for label in row.labels], closes),
    )


def _spell(literal: str) -> list[_Spelled]:
    """Return the forms of a delimiter, each as the patterns of its pieces."""
    before, star, after = (tuple(map(re.escape, part)) for part in literal.partition("*"))
    constraint = (_SPACES, *map(re.escape, "<|constrain|>"), _CONSTRAINT, _SPACES)
    return [before + after, before + constraint + after] if star else [before]


def _compile_scan(
    names: tuple[str, ...], beginning: list[str], literals: Iterable[_Spelled]
) -> Scan:
    """Return the two patterns of one list; ``beginning`` has the first pieces of its tags."""
    literals = sorted(set(literals), key=len)
    whole = ["".join(literal) for literal in literals]
    begun = [_beginnings(literal[:-1]) for literal in literals]
    if names:
        spelled = [[_letter_pattern(char) for char in name] for name in names]
        any_name = "|".join("".join(letters) for letters in spelled)
        any_part = "|".join(_beginnings([*letters, _SPACES]) for letters in spelled)
        whole.insert(0, f"{''.join(beginning)}(?:{any_name}){_SPACES}>")
        begun.insert(0, _beginnings([*beginning, f"(?:{any_part})"]))
    never = "(?!)"
    return Scan(
        find=re.compile("|".join(whole) or never),
        might=re.compile(rf"(?:{'|'.join(begun) or never})\Z"),
    )


def _compile_labels(labels: list[str], closes: list[_Spelled]) -> Scan | None:
    """Return the patterns of the texts that are removed directly after a delimiter."""
    if not labels:
        return None
    spelled = [tuple(map(re.escape, label)) for label in labels]
    bare = [tuple(map(re.escape, label.rstrip())) for label in labels]
    whole = _compile_scan((), [], spelled)
    ended = _compile_scan((), [], [label + close for label in bare for close in closes])
    before_close = f"(?:{'|'.join(map(''.join, bare))})(?={'|'.join(map(''.join, closes))})"
    return Scan(
        find=re.compile(f"{whole.find.pattern}|{before_close}"),
        might=re.compile(f"{whole.might.pattern}|{ended.might.pattern}"),
    )


def _letter_pattern(char: str) -> str:
    """Return the pattern of a letter: both cases in ASCII (not U+212A for k), else itself."""
    if char.isascii() and char.isalpha():
        return f"[{char.lower()}{char.upper()}]"
    return re.escape(char)


def _beginnings(pieces: Sequence[str]) -> str:
    """Return a pattern for every beginning of these pieces that has at least the first."""
    pattern = ""
    for piece in reversed(pieces):
        pattern = f"{piece}(?:{pattern})?" if pattern else piece
    return pattern


NO_DELIMITERS = _compile_grammar((), ())
"""The patterns that find nothing."""
