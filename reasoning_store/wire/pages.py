"""A request's list of messages while it is being written, and where to go on with it.

Theory. What a message becomes in a body depends on the messages before it and on nothing
behind it. So a page that has been written can be kept, forked and gone on with, and the
list it gives is the one that would be written from the beginning. A kept page is nobody's:
``messages(copies=True)`` hands out a list that its taker may change to its last leaf.

It knows the frame that all protocols share. What a message looks like is its subclasses'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from copy import copy
from operator import call
from typing import Any, Protocol, Self, TypeAlias

from reasoning_store.blocks import Role
from reasoning_store.rope import Rope
from reasoning_store.wire.asking import OpenTurn
from reasoning_store.wire.base import Asked, Outgoing, Plain, PlainThought, Written
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.copying import Copier, Shapes
from reasoning_store.wire.forms import MARK, SIGNATURE, THOUGHT, Form, learnt

Part: TypeAlias = dict[str, Any]
_ALL = 1 << 62
_FLAT: Copier = dict.copy


class _Flat(list[Part]):
    """Messages with nothing but texts in them: copied the quickest way there is."""


_FORKS: Mapping[type, Callable[[Any], Any]] = {
    Rope: Rope.fork,
    OpenTurn: copy,
    list: list.copy,
    dict: dict.copy,
    set: set.copy,
}
"""How each kind of what a page knows is taken over; what is not named here never changes."""


def _marked(role: Role, thought: PlainThought | None) -> Outgoing:
    """Return a message of marks in the place of words."""
    goes: dict[Hashable | None, PlainThought] = {} if thought is None else {_ANY: thought}
    signature = SIGNATURE if thought is not None and thought.signed else None
    return Plain((role,), (MARK,), (THOUGHT,), (signature,), (_ANY,), goes).last()


_ANY = "any"
_MARKS = (MARK, THOUGHT, SIGNATURE)


class Page(ABC):
    """What was written so far, and what has to be known of it to go on."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.rendered: Rope[Part] = Rope()
        """What was written for good; none of it is ever changed."""
        self.left_out: dict[str, None] = {}
        """The kinds of blocks that found no place."""
        self.turn = OpenTurn(contract)
        self._forms: dict[tuple[Role, PlainThought | None], Form | None] = {}
        self._shapes = Shapes()
        self._copiers: Rope[Copier] = Rope()
        """How the beginning of ``rendered`` is copied: what is written for good has its shape
        for good, and is looked through once."""

    def add(self, messages: Iterable[Outgoing]) -> None:
        """Write the next messages."""
        if self.turn.matters:
            messages = list(messages)
            for item in messages:
                self.turn.note(item)
        self.write(messages)

    @abstractmethod
    def write(self, messages: Iterable[Outgoing]) -> None:
        """Write messages that were noted."""

    def add_plain(self, messages: Plain) -> bool:
        """Write the next messages by column, and say whether they can stand here so.

        They have forms. Nothing is written where they cannot.
        """
        if not self.write_plain(messages):
            return False
        if self.turn.matters:
            self.turn.note_plain(messages)
        return True

    def has_forms(self, messages: Plain) -> bool:
        """Whether a text of each role that these have, and a thought of each kind and a text,
        have a form. Where the messages stand is not asked: that is ``add_plain``'s to say."""
        return None not in self._forms_of(messages).values()

    def write_plain(self, messages: Plain) -> bool:
        """Write messages that have forms by column, and say whether they can stand here so.

        Nothing is written where they cannot. What the open turn has to know of them is noted
        by ``add_plain``, as it is by ``add`` for ``write``.
        """
        if any(map(str.isspace, messages.texts)) or not self.may_follow(messages.roles):
            return False
        self.put_plain(messages)
        return True

    def may_follow(self, roles: Sequence[Role]) -> bool:
        """Whether plain messages of these roles may stand next, each by itself."""
        return True

    def put_plain(self, messages: Plain) -> None:
        """Write plain messages for good, each by the form that it has here."""
        self._look()
        roles, texts, thoughts, signatures, kinds, goes = messages
        forms = {name: form for name, form in self._forms_of(messages).items() if form is not None}
        copiers = {name: self._shapes.copier(form(_MARKS)) for name, form in forms.items()}
        names: Sequence[Hashable | None] = roles
        if goes:
            names = [
                kind if kind in goes else role for role, kind in zip(roles, kinds, strict=True)
            ]
        nothing = [None] * len(texts)
        words = zip(texts, thoughts or nothing, signatures or nothing, strict=True)
        self.rendered.join([forms[name](each) for name, each in zip(names, words, strict=True)])
        self._copiers.join([copiers[name] for name in names])

    def _forms_of(self, messages: Plain) -> Mapping[Hashable | None, Form | None]:
        """Return the forms of plain messages: those of a role, and those with a kind of thought."""
        forms: dict[Hashable | None, Form | None] = {
            role: self._form(role, None) for role in {*messages.roles}
        }
        for kind, thought in messages.goes.items():
            forms[kind] = self._form("assistant", thought)
        return forms

    def _form(self, role: Role, thought: PlainThought | None) -> Form | None:
        """Return the form that a text of this role has here, or such a thought and a text."""
        like = (role, thought)
        if like not in self._forms:
            marks = _MARKS[: 1 if thought is None else 2 + thought.signed]
            self._forms[like] = learnt(self.example(_marked(*like)), *marks)
        return self._forms[like]

    def example(self, item: Outgoing) -> list[Part]:
        """Return what a message becomes that stands by itself. The page stays as it is."""
        page = self.fork()
        before = len(page.rendered)
        page.write([item])
        return list(page.rendered.part(before, _ALL))

    def put_flat(self, messages: list[Part]) -> None:
        """Write messages for good that have nothing but texts in them."""
        self._look()
        self.rendered.join(_Flat(messages))
        self._copiers.join([_FLAT] * len(messages))

    @abstractmethod
    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        """Return the whole JSON body of the HTTP request. The page stays as it is."""

    def fork(self) -> Self:
        """Return the same, to go on with apart from this one."""
        self._look()
        other = object.__new__(type(self))
        for name, value in vars(self).items():
            forked = _FORKS.get(type(value))
            setattr(other, name, value if forked is None else forked(value))
        return other

    def messages(self, *, copies: bool, since: int = 0) -> list[Part]:
        """Return what was written, as objects of one's own where ``copies`` asks for them."""
        written = self.rendered.part(since, _ALL)
        if not copies:
            return list(written)
        self._look()
        out: list[Part] = []
        for chunk in written.chunks:
            if type(chunk) is _Flat:
                out += map(dict.copy, chunk)
            else:
                start = since + len(out)
                out += map(call, self._copiers.part(start, start + len(chunk)), chunk)
        return out

    def __len__(self) -> int:
        written = len(self.rendered)
        return written + len(self.messages(copies=False, since=written))

    def alike(self, other: Page) -> int:
        """Return how many of the first messages are the same on both pages."""
        # The last may yet differ from what was written for good.
        since = max(self.rendered.alike(other.rendered) - 1, 0)
        mine, theirs = (page.messages(copies=False, since=since) for page in (self, other))
        return since + Rope(mine).alike(Rope(theirs))

    def _look(self) -> None:
        """Find out once what each message consists of.

        Whoever keeps the page may ask for it from several threads: each finds the same.
        """
        known = self._copiers
        if len(known) < len(self.rendered):
            known = known.fork()
            known.extend(map(self._shapes.copier, self.rendered.part(len(known), _ALL)))
            self._copiers = known


class RequestWriter(Protocol):
    """The writing direction of a protocol. Pure: the same messages give the same body."""

    BUILT: frozenset[str]
    """The keys of the body that are made from the conversation and that nobody else sets."""

    def page(self, contract: Contract) -> Page:
        """Return an empty page."""
        ...

    def sdk_arguments(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the same request as keyword arguments of the official SDK's call."""
        ...


def with_extra_body(body: Mapping[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Return a body as arguments of a call that takes what it does not know as ``extra_body``."""
    known = {key: value for key, value in body.items() if key in parameters}
    rest = {key: value for key, value in body.items() if key not in parameters}
    return {**known, "extra_body": rest} if rest else known
