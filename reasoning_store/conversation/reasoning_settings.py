"""The settings as an application or a user gives them: validated by pydantic.

Only code that takes new settings needs this module: stored settings were checked when they were
set.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler

from reasoning_store.conversation.settings import KEY_OF, LEAST_BUDGET, SettingValues, refusal


class ReasoningSettings(BaseModel, SettingValues, frozen=True):
    """The choices of an application or a user about reasoning.

    As ``settings=`` of a call only the keys that were set count; the rest come from the
    weaker layers.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        populate_by_name=True,
        alias_generator=KEY_OF.__getitem__,
    )

    @field_validator("budget_tokens")
    @classmethod
    def _refuse_small_budget(cls, value: int | None) -> int | None:
        if value is not None and value < LEAST_BUDGET:
            raise ValueError("too small")
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_whole(
        cls, data: Any, handler: ModelWrapValidatorHandler[ReasoningSettings]
    ) -> ReasoningSettings:
        # ERR-001: one message that names the key and the allowed values; nothing is changed.
        try:
            return handler(data)
        except ValidationError as error:
            wrong = error.errors(include_input=True, include_url=False)[0]
            raise refusal(str(wrong["loc"][0]) if wrong["loc"] else "", wrong) from None

    def given(self) -> dict[str, Any]:
        """Return the keys that were set, by their names in JSON."""
        return {KEY_OF[name]: getattr(self, name) for name in sorted(self.model_fields_set)}
