"""The error of an adapter whose framework is not there."""

from __future__ import annotations

import reasoning_store as rs


def explain_import(error: ImportError, package: str, *, extra: str) -> Exception:
    """Return the error that names the extra; the same one where something else is missing.

    ``package`` is the framework's package of Python, which may be there in another version.
    """
    if (error.name or "").partition(".")[0] != package.partition(".")[0]:
        return error
    is_absent = isinstance(error, ModuleNotFoundError)
    what = "is not installed" if is_absent else "is installed in a version that does not fit"
    return rs.MissingExtra(f"{package} {what}", extra=extra)
