"""Errors as the clients of each protocol read them: the right status, the right shape.

No error holds text of a conversation, a key or a token.
"""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

import reasoning_store as rs

_TYPES: Final = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("authentication_error", "authentication_error"),
    403: ("permission_error", "permission_error"),
    404: ("invalid_request_error", "not_found_error"),
    405: ("invalid_request_error", "invalid_request_error"),
    408: ("invalid_request_error", "timeout_error"),
    409: ("conflict_error", "invalid_request_error"),
    413: ("invalid_request_error", "request_too_large"),
    415: ("invalid_request_error", "invalid_request_error"),
    431: ("invalid_request_error", "request_too_large"),
    502: ("api_error", "api_error"),
    503: ("api_error", "overloaded_error"),
    504: ("api_error", "timeout_error"),
    507: ("api_error", "api_error"),
}
"""The type of an error by its status: of OpenAI's, and of Anthropic's."""
_OF_GOOGLE: Final = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_DEFAULT_TYPES: Final = ("api_error", "api_error")
_OF_A_PROTOCOL: Final = re.compile(r"/v\d+\w*/")
_STATUS: Final[dict[type[rs.ReasoningStoreError], int]] = {
    rs.NotFound: 404,
    rs.Conflict: 409,
    rs.StoreFull: 507,
    rs.StoreBusy: 503,
    rs.InvalidCall: 400,
    rs.SettingError: 400,
    rs.WireError: 400,
}


def problem(
    path: str,
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return an error in the shape of the protocol that a path belongs to."""
    if _OF_A_PROTOCOL.search(f"{path}/") is None:
        return PlainTextResponse(f"{message}\n", status, headers=headers)
    return JSONResponse(
        problem_body(path, status, message, code=code, param=param), status, headers=headers
    )


def problem_body(
    path: str, status: int, message: str, *, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """Return the body of an error."""
    of_openai, of_anthropic = _TYPES.get(status, _DEFAULT_TYPES)
    if "/v1beta/" in path or path.endswith("enerateContent"):  # Google's
        return {"error": {"code": status, "message": message, "status": _google_status(status)}}
    if "/v1/messages" in path:
        return {"type": "error", "error": {"type": of_anthropic, "message": message}}
    return {"error": {"message": message, "type": of_openai, "param": param, "code": code}}


def _google_status(status: int) -> str:
    return _OF_GOOGLE.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")


class Refused(Exception):
    """A request is not carried out: the response is the answer to it."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def store_problem(path: str, error: rs.ReasoningStoreError, status: int | None = None) -> Response:
    """Return an error of the store as a response."""
    if status is None:
        status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 503)
    message = f"{error} ({error.hint})" if error.hint else str(error)
    return problem(path, status, message, code=_code(error))


def _code(error: rs.ReasoningStoreError) -> str:
    name = type(error).__name__
    return "".join(f"_{one.lower()}" if one.isupper() else one for one in name).lstrip("_")


async def answer_unknown(request: Request, error: Exception) -> Response:
    """Answer a request that no route takes."""
    status = getattr(error, "status_code", 404)
    path = request.url.path
    if status == 405:
        return problem(path, 405, f"{request.method} is not allowed at {path}", code="bad_method")
    return problem(path, status, f"there is no {request.method} {path} here", code="unknown_url")


async def answer_refused(request: Request, error: Exception) -> Response:
    """Answer a request that is not carried out."""
    assert isinstance(error, Refused)
    return error.response


async def answer_store_error(request: Request, error: Exception) -> Response:
    """Answer a request that the store refused."""
    assert isinstance(error, rs.ReasoningStoreError)
    return store_problem(request.url.path, error)


async def answer_fault(request: Request, error: Exception) -> Response:
    """Answer a request that met a fault of this program; the log has its type and place."""
    return problem(request.url.path, 500, "this server has a fault; its log names it")
