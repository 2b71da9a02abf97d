"""The settings as an application or a user gives them: validated by pydantic.

Only what brings a setting in needs this module: stored settings were checked when they were set.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationError,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler

from reasoning_store.conversation.settings import KEY_OF, Effort, Strip, refusal


class ReasoningSettings(BaseModel):
    """What an application or a user may choose about reasoning.

    As ``settings=`` of a call only the keys that were set count; the rest come from the
    weaker layers.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=KEY_OF.__getitem__,
    )

    enabled: StrictBool = True
    """Ask the provider for reasoning. What comes unasked is stored all the same (BR-006)."""
    effort: Effort | None = None
    """How hard to think, where the provider takes a word for it."""
    budget_tokens: Annotated[StrictInt, Field(ge=0)] | None = None
    """How many tokens to think for at most, where the provider takes a number."""
    include_in_context: StrictBool = False
    """Send reasoning back to models. Off by default (BR-001)."""
    include_in_response: StrictBool = True
    """Show reasoning to the user; says nothing about what is sent (BR-003)."""
    strip_from_context: Strip = "none"
    """What is taken out of the history first, before ``include_in_context`` (BR-005)."""
    format: Literal["field", "native"] = "field"
    """``native`` is accepted and means ``field`` (BR-007)."""
    floor: Literal["provider", "off"] = "provider"
    """Whether what a provider demands back is sent whatever the other settings say."""
    tags: Literal["auto", "always", "never"] = "auto"
    """Whether answers are searched for inline delimiters."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_whole(
        cls, data: Any, handler: ModelWrapValidatorHandler[ReasoningSettings]
    ) -> ReasoningSettings:
        # ERR-001: one message that names the key and what is allowed; nothing is changed.
        try:
            return handler(data)
        except ValidationError as error:
            wrong = error.errors(include_input=True, include_url=False)[0]
            raise refusal(str(wrong["loc"][0]) if wrong["loc"] else "", wrong) from None

    def given(self) -> dict[str, Any]:
        """Return the keys that were set, by their names in JSON."""
        return {KEY_OF[name]: getattr(self, name) for name in sorted(self.model_fields_set)}

    def by_key(self) -> dict[str, Any]:
        """Return every value by its name in JSON."""
        return {key: getattr(self, name) for name, key in KEY_OF.items()}
