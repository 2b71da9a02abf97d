"""The ids by which the calls of one conversation go to a target.

Not every host takes every id, and some want each of them once. An id that is not taken is
mapped by a pure function, in the call and in its response alike. It knows calls and what
contracts say of their ids; it must not know what is sent of a message.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from reasoning_store.blocks import ToolCallBlock, ToolResponseBlock
from reasoning_store.egress.answers import Answers, Spot
from reasoning_store.egress.verdicts import Target
from reasoning_store.wire import call_ids


class CallIds:
    """The ids that the target takes for the calls of one conversation.

    An id depends on the call's own and, where ids repeat and must not, on how often it
    was used before: a longer conversation changes none.
    """

    __slots__ = ("_at", "_contract", "_used", "touched")

    def __init__(self, to: Target) -> None:
        self._contract = to.contract
        self._at: dict[Spot, str] = {}
        self._used: dict[str | tuple[int, str], int] = {}
        self.touched: set[int] = set()
        """The messages of the last piece in which an id changes."""

    def fork(self) -> CallIds:
        other = copy(self)
        other._used = dict(self._used)
        return other

    def next(self, answers: Answers) -> None:
        """Read the calls of the next piece of the conversation."""
        self._at, self.touched = {}, set()
        if not self._contract.unique_call_ids:
            self._used = {}  # ids repeat within a message alone
        for spot, call in answers.calls.items():
            name = call.id if self._contract.unique_call_ids else (spot[0], call.id)
            times = self._used[name] = self._used.get(name, 0) + 1
            fitting = self._fitting(call.id, times)
            if fitting != call.id:
                self._at[spot] = fitting
                self.touched.add(spot[0])
                if spot in answers.of:
                    self.touched.add(answers.of[spot][0])

    def given(self, spot: Spot, call: ToolCallBlock) -> ToolCallBlock:
        other = self._at.get(spot)
        return call if other is None else replace(call, id=other)

    def answering(self, spot: Spot, response: ToolResponseBlock) -> ToolResponseBlock:
        """Return a response to the call at a spot, by the id that the call has there."""
        other = self._at.get(spot)
        return response if other is None else replace(response, call_id=other)

    def _fitting(self, call_id: str, times: int) -> str:
        if times > 1:
            call_id = call_ids.made(call_id, times)
        return call_ids.accepted(call_id or call_ids.made(""), self._contract.call_id)
