"""Theory of reasoning arrays: the fields of their entries, and which fragments are one entry.

Some hosts of the Chat Completions family send an array with the plain string:
``reasoning_details``, ``thinking_blocks``, ``reasoning_items``. An entry's type determines
where its readable text is, its signature, its ciphertext (``_ALIASES``). Its other fields are
its ``detail``, stored in ``providerMetadata``, so that ``entry`` can write the same entry
again. The array goes back whole and in its order, so its blocks are a group.

Streamed, an entry comes in fragments. Those of one type and index are one entry, because a
summary and its ciphertext share an index. A signature seals the text before it, so text after
it begins another entry. Text and ciphertext are appended, all other fields are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import ThinkingBlock
from reasoning_store.conversation.chunks import Chunk, ReasoningChunk
from reasoning_store.conversation.errors import ReasoningStoreError
from reasoning_store.wire.event_fields import is_index, plain_value
from reasoning_store.wire.openai_chat.snapshots import Snapshots


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The names in an entry of one type for the fields of a thinking block."""

    text: str | None = None
    parts: str | None = None
    """The type of the parts, where the text is a list of them, joined by blank lines."""
    signature: str | None = None
    data: str | None = None
    redacted: bool = False
    whole: bool = False
    """Whether such an entry always comes in one piece."""

    @cached_property
    def payload(self) -> frozenset[str]:
        return frozenset(name for name in (self.text, self.signature, self.data) if name)


_ALIASES: Final[Mapping[str, Mapping[str, Shape]]] = {
    "reasoning_details": {
        "reasoning.text": Shape(text="text", signature="signature"),
        "reasoning.summary": Shape(text="summary"),
        "reasoning.encrypted": Shape(data="data"),
    },
    "thinking_blocks": {
        "thinking": Shape(text="thinking", signature="signature"),
        "redacted_thinking": Shape(data="data", redacted=True, whole=True),
    },
    "reasoning_items": {
        "reasoning": Shape(
            text="summary", parts="summary_text", data="encrypted_content", whole=True
        ),
    },
}
ALIASES: Final = frozenset(_ALIASES)
"""The arrays that this module reads."""

_PLAIN: Final[Mapping[str, dict[str, Any]]] = {
    alias: {"sourceField": alias, "group": alias} for alias in _ALIASES
}
_COMMON: Final = frozenset({"type", "id", "format", "index"})
_BETWEEN_PARTS: Final = "\n\n"


class _Fragment(NamedTuple):
    """An entry, or a piece of one, of the form that its type has."""

    alias: str
    kind: str
    shape: Shape
    item: Mapping[str, Any]
    text: str
    signature: str
    data: str


@dataclass(slots=True)
class _Entry:
    """The state of one entry between its fragments."""

    alias: str
    number: int
    id: str | None = None
    signature: str | None = None
    known: dict[str, Any] = field(default_factory=dict)
    untold: dict[str, Any] = field(default_factory=dict)
    snapshots: Snapshots | None = None
    spoke: bool = False
    ciphertext: list[str] = field(default_factory=list)
    size: int = 0
    size_given: int = 0

    @property
    def waits(self) -> bool:
        """Whether a fragment has come that gave no chunk."""
        pending = self.snapshots is not None and self.snapshots.waiting
        return bool(self.size_given < self.size or pending)

    def add_fragment(self, piece: _Fragment) -> None:
        """Note the fields that are not its payload, for ``entry`` to write them again."""
        shape, item, known = piece.shape, piece.item, self.known
        for name, value in item.items():
            if name in shape.payload:
                continue
            if name not in known or (value is not None and known[name] != value):
                known[name] = self.untold[name] = value
        if shape.parts and not _is_plain(item, shape, piece.text):
            self.untold[shape.text or ""] = item[shape.text or ""]

    def seals(self, piece: _Fragment) -> dict[str, Any]:
        """Return the signature and ciphertext that are certain with this piece."""
        found: dict[str, Any] = {}
        if piece.signature:
            found["signature"] = self.signature = piece.signature
        if piece.data and (ciphertext := self._grow_ciphertext(piece.data)) is not None:
            found["encrypted"] = ciphertext
        if piece.data and piece.shape.redacted:
            found["redacted"] = True
        return found

    def _grow_ciphertext(self, data: str) -> str | None:
        """Return the ciphertext so far, or nothing: a chunk for each growth would be quadratic."""
        self.ciphertext.append(data)
        self.size += len(data)
        if self.size < 2 * self.size_given:
            return None
        self.size_given = self.size
        return "".join(self.ciphertext)


class Entries:
    """The arrays of one choice. ``whole``: they do not come in fragments."""

    def __init__(
        self,
        numbers: Iterator[int],
        *,
        provider: str,
        choice: int,
        whole: bool = False,
        cumulative: bool = False,
    ) -> None:
        self._numbers = numbers
        self._provider = provider
        self._choice = choice
        self._whole = whole
        self._cumulative = cumulative
        self._entries: dict[tuple[str, str, int | None], _Entry] = {}
        self._last: _Entry | None = None
        self.waiting: dict[int, _Entry] = {}
        """Entries with a fragment that gave no chunk yet."""

    def read(self, alias: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """Add the chunks of one alias's value, and to ``wrong`` the entries without their form."""
        for raw in value if isinstance(value, list) else [value]:
            item = plain_value(raw)
            if not (isinstance(item, dict) and self._read(alias, item, out)):
                wrong.append({alias: raw})

    def rest(self, out: list[Chunk]) -> None:
        """Add the chunks that waited: undecided pieces, the end of ciphertexts."""
        for entry in self.waiting.values():
            if entry.snapshots is not None and entry.snapshots.waiting:
                out.append(self._chunk(entry, entry.snapshots.rest(), {}))
            if entry.size_given < entry.size:
                entry.size_given = entry.size
                out.append(self._chunk(entry, "", {"encrypted": "".join(entry.ciphertext)}))
        self.waiting.clear()

    def _read(self, alias: str, item: dict[str, Any], out: list[Chunk]) -> bool:
        kind = item.get("type")
        if kind is None:
            kind = _guess_type(alias, item)
        if not isinstance(kind, str):
            return False
        shape = _ALIASES[alias].get(kind)
        if shape is None:
            return self._hold_back(alias, item, out)
        text = _text(item, shape)
        signature, data = _string(item, shape.signature), _string(item, shape.data)
        if text is None or signature is None or data is None:
            return False
        self._add_fragment(_Fragment(alias, kind, shape, item, text, signature, data), out)
        return True

    def _add_fragment(self, piece: _Fragment, out: list[Chunk]) -> None:
        entry, text = self._entry(piece), piece.text
        entry.add_fragment(piece)
        seals = entry.seals(piece)
        if self._cumulative and text:
            entry.snapshots = entry.snapshots or Snapshots()
            text = entry.snapshots.new_text(text)
        if entry.waits:
            self.waiting[entry.number] = entry
        if text and "encrypted" in seals:
            # The text may be a copy of another field's; the ciphertext is not.
            out.append(self._chunk(entry, text, None))
            text = ""
        # An entry's other fields go with its payload: alone they are no thought.
        if text or seals or (entry.untold and entry.spoke):
            out.append(self._chunk(entry, text, seals))

    def _entry(self, piece: _Fragment) -> _Entry:
        """Return the entry that a fragment belongs to, a new one where it begins one."""
        if self._whole or piece.shape.whole:
            self._last = _Entry(piece.alias, next(self._numbers))
            return self._last
        index, name = piece.item.get("index"), piece.item.get("id")
        name = name if isinstance(name, str) else None
        key = (piece.alias, piece.kind, index if is_index(index) else None)
        entry = self._entries.get(key)
        if (
            entry is None
            or (name and entry.id and name != entry.id)
            or (piece.text and entry.signature and entry.signature != piece.signature)
            or (key[2] is None and entry is not self._last)
        ):
            entry = self._entries[key] = _Entry(piece.alias, next(self._numbers))
        entry.id = entry.id or name
        self._last = entry
        return entry

    def _hold_back(self, alias: str, item: Mapping[str, Any], out: list[Chunk]) -> bool:
        """An entry of a type that we have no shape for: its payload is opaque to us."""
        payload = {name: value for name, value in item.items() if name not in _COMMON}
        try:
            encrypted = codec.dumps(payload)
        except ReasoningStoreError:
            return False
        entry = _Entry(alias, next(self._numbers))
        entry.untold = {name: value for name, value in item.items() if name in _COMMON}
        out.append(self._chunk(entry, "", {"encrypted": encrypted}))
        return True

    def _chunk(self, entry: _Entry, text: str, seals: Mapping[str, Any] | None) -> ReasoningChunk:
        """One piece of an entry; where there are no ``seals`` at all, the text and no more."""
        entry.spoke = True
        metadata: dict[str, Any] = _PLAIN[entry.alias]
        if seals is not None and (seals or entry.untold):
            metadata = {**metadata, **seals}
            if entry.untold:
                metadata["providerMetadata"] = {"detail": entry.untold}
                entry.untold = {}
        return ReasoningChunk(
            provider=self._provider,
            text=text,
            content_index=entry.number,
            metadata=metadata,
            choice=self._choice,
        )


def entry(block: ThinkingBlock) -> dict[str, Any] | None:
    """Return the entry that a block was read from, or ``None`` for a block from elsewhere."""
    shapes = _ALIASES.get(block.source_field or "")
    if shapes is None:
        return None
    detail = (block.provider_metadata or {}).get("detail")
    item = dict(detail) if isinstance(detail, Mapping) else {}
    kind = item.get("type")
    if kind is None:
        kind = item["type"] = _usual_type(shapes, block)
    shape = shapes.get(str(kind))
    if shape is None:
        payload = _payload(block)
        return None if payload is None else {**item, **payload}
    if shape.parts:
        thought = [{"type": shape.parts, "text": block.thought}] if block.thought else []
        item.setdefault("summary", thought)
    elif shape.text:
        item[shape.text] = block.thought
    if shape.signature and block.signature:
        item[shape.signature] = block.signature
    if shape.data and block.encrypted:
        item[shape.data] = block.encrypted
    return item


def _payload(block: ThinkingBlock) -> Mapping[str, Any] | None:
    """Return the content of an entry of an unknown type, or ``None`` if it is another entry."""
    try:
        payload = codec.loads(block.encrypted or "{}")
    except ValueError:
        return None
    return payload if isinstance(payload, Mapping) else None


def _usual_type(shapes: Mapping[str, Shape], block: ThinkingBlock) -> str:
    """The type of an entry that came without one: of text, or of ciphertext alone."""
    sealed = not block.thought and block.encrypted is not None
    return next(
        kind for kind, shape in shapes.items() if (shape.data if sealed else shape.text) is not None
    )


def _guess_type(alias: str, item: Mapping[str, Any]) -> str | None:
    """The type of an entry that names none, by what it holds."""
    for kind, shape in _ALIASES[alias].items():
        if isinstance(item.get(shape.text or shape.data or ""), str):
            return kind
    return None


def _text(item: Mapping[str, Any], shape: Shape) -> str | None:
    """Return an entry's text, empty where it has none, ``None`` where it has a wrong type."""
    value = item.get(shape.text) if shape.text else None
    if shape.parts and isinstance(value, list):
        texts = [plain_value(part) for part in value]
        return _BETWEEN_PARTS.join(
            part["text"]
            for part in texts
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return "" if value is None else value if isinstance(value, str) else None


def _is_plain(item: Mapping[str, Any], shape: Shape, text: str) -> bool:
    """Whether the parts of a text can be found in the text alone."""
    parts = item.get(shape.text or "")
    return not parts or parts == [{"type": shape.parts, "text": text}]


def _string(item: Mapping[str, Any], name: str | None) -> str | None:
    """Return a field that is a string or absent, ``None`` where it is anything else."""
    value = item.get(name) if name else None
    return "" if value is None else value if isinstance(value, str) else None
