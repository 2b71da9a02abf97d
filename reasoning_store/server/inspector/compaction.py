"""The plan that makes the next request shorter, and the compactions in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reasoning_store import Conflict, InvalidCall, Plan, ReasoningStoreError, Session
from reasoning_store.results import Compaction, Step
from reasoning_store.server.inspector.questions import STRIP_LABELS, Question

_REASONS: Final = {
    "below_threshold": "The next request is below the size at which a plan acts.",
    "over_threshold": "The next request is above the size at which a plan acts.",
    "over_limit": "The next request and its answer do not fit the context window.",
    "cooling_down": "It has grown too little since the last change.",
    "nothing_closed": "There is no closed turn that a summary could replace.",
    "ineffective": "Each step would free too little.",
    "still_over_limit": "No step makes it fit.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortening:
    """A plan for a reader, or the reason why a plan is missing."""

    plan: Plan | None
    problem: ReasoningStoreError | None
    reasons: tuple[str, ...]
    steps: tuple[tuple[str, int], ...]
    """Each step in words, and the tokens that it frees."""
    signature: str
    """The steps as a form sends them back: a plan that has others is not applied."""
    in_force: tuple[Compaction, ...]


def show_shortening(session: Session, question: Question) -> Shortening:
    """Return the plan for the saved settings; without a limit it is empty."""
    plan = problem = None
    if question.limit is not None:
        try:
            plan = _make_plan(session, question)
        except ReasoningStoreError as error:
            problem = error
    return Shortening(
        plan=plan,
        problem=problem,
        reasons=() if plan is None else tuple(_REASONS[one] for one in plan.reasons),
        steps=() if plan is None else tuple((_words(one), one.tokens) for one in plan.steps),
        signature="" if plan is None else _signature(plan),
        in_force=tuple(session.compactions()),
    )


def apply_plan(session: Session, question: Question, signature: str, summary: str) -> None:
    """Carry out the plan that a page has shown."""
    plan = _make_plan(session, question)
    if _signature(plan) != signature:
        raise Conflict(
            "the conversation has changed, and the plan has other steps now",
            hint="look at the new plan",
        )
    text = summary.replace("\r\n", "\n").strip()
    if plan.to_summarize is not None and not text:
        raise InvalidCall("the summary is empty", hint="write one")
    session.compact(plan, summary=text if plan.to_summarize is not None else None)


def _make_plan(session: Session, question: Question) -> Plan:
    given: dict[str, Any] = {} if question.reserve is None else {"reserve": question.reserve}
    if question.threshold is not None:
        given["threshold"] = question.threshold / 100
    target: Mapping[str, Any] = question.target
    return session.context(**target, limit=question.limit).compression(**given)


def _signature(plan: Plan) -> str:
    return " ".join(f"{step.kind}:{step.what}" for step in plan.steps)


def _words(step: Step) -> str:
    if isinstance(step.what, str):
        return f'Save "Leave out old thinking: {STRIP_LABELS[step.what]}" for this session.'
    messages = f"messages {step.what.first} to {step.what.last}"
    if step.kind == "clear":
        return f"Send a placeholder instead of each tool result in {messages}."
    return f"Send a summary instead of {messages}. You write it."
