"""Notices to the application: warnings that never become its errors."""

from __future__ import annotations

import logging
import warnings

_LOG = logging.getLogger("reasoning_store")


def give_notice(text: str, *, stacklevel: int) -> None:
    """Warn; where warnings are errors, write the text to the log instead."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=stacklevel + 1)
    except RuntimeWarning:
        _LOG.warning("%s", text)
