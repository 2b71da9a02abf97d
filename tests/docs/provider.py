"""A provider on a local socket, as strict as the real ones: for the pages and the examples.

It speaks every protocol, each at the address that the official client asks. A request that
misses the reasoning which its provider demands is refused (``reasoning_store.testing.refusal``,
which knows nothing of our contracts); one that is taken is answered from a script: an answer
in pieces, held at a point until a test lets it go on, or cut off with the connection.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import unquote, urlsplit

import reasoning_store as rs
from reasoning_store.testing import Record, refusal, response, sse, stream
from tests.docs.eventstream import frame
from tests.egress.targets import (
    CallMetadata,
    Thoughts,
    bare_call,
    converse,
    named_call,
    plain,
    sealed_call,
    signed,
    summary,
)

PLACES = (
    ("/mistral/*/chat/completions", "mistral.chat"),
    ("*/chat/completions", "openai.chat"),
    ("*/responses", "openai.responses"),
    ("*/messages", "anthropic.messages"),
    ("*:streamGenerateContent", "gemini.generate_content"),
    ("*:generateContent", "gemini.generate_content"),
    ("*/api/chat", "ollama.chat"),
    ("*/converse-stream", "bedrock.converse"),
    ("*/v2/chat", "cohere.chat"),
)
"""Where each protocol is asked for a stream."""

MAY_BE_WHOLE = {"openai.chat", "openai.responses", "anthropic.messages"}
"""The protocols whose body says whether a stream is asked for."""

PROVIDERS = {
    "openai.responses": "openai",
    "anthropic.messages": "anthropic",
    "gemini.generate_content": "google",
    "ollama.chat": "ollama",
    "mistral.chat": "mistral",
    "bedrock.converse": "aws",
    "cohere.chat": "cohere",
}
BY_MODEL = (("deepseek*", "deepseek"), ("kimi*", "moonshot"), ("*", "vllm"))
"""Who serves a model where the protocol is shared."""

THINKS: Mapping[str, tuple[Thoughts, CallMetadata]] = {
    "anthropic.messages": (signed, bare_call),
    "bedrock.converse": (converse, bare_call),
    "cohere.chat": (plain("content.thinking"), bare_call),
    "gemini.generate_content": (plain("thought"), sealed_call),
    "mistral.chat": (plain("content.thinking"), bare_call),
    "ollama.chat": (plain("thinking"), bare_call),
    "openai.chat": (plain("reasoning_content"), bare_call),
    "openai.responses": (summary, named_call),
}
"""How each protocol carries a thought, and what it puts on a call."""

TOOL_ANSWERS = ('"tool"', "tool_result", "function_call_output", "functionResponse", "toolResult")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived."""

    api: str
    provider: str
    model: str
    body: Mapping[str, Any]

    @property
    def last(self) -> str:
        """The last message, as JSON."""
        listed = next(self.body[k] for k in ("messages", "input", "contents") if k in self.body)
        return json.dumps(listed[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model says next, and what befalls it on the way."""

    message: rs.Message
    pieces: int = 3
    seed: int | None = None
    hold_after: int | None = None
    """Events after which the stream waits."""
    until: threading.Event = field(default_factory=threading.Event)
    """What it waits for."""
    drop_after: int | None = None
    """Events after which the connection is gone, in the middle of the next."""


Script = Callable[[Asked], Answer]


def weather(asked: Asked) -> Answer:
    """Think, ask for the weather once where there is a tool for it, and answer."""
    think, call_metadata = THINKS[asked.api]
    name = f"a{next(_numbers)}"
    wants_tool = any(key in asked.body for key in ("tools", "toolConfig")) and not any(
        mark in asked.last for mark in TOOL_ANSWERS
    )
    usage = rs.Usage(input=40, output=12, reasoning=5)
    if wants_tool:
        call = rs.ToolCallBlock(
            id=f"call_{name}",
            name="get_weather",
            parameters={"city": "Oslo"},
            provider_metadata=call_metadata(name, 0),
        )
        blocks: tuple[rs.Block, ...] = (*think("Need the weather tool.", name), call)
    else:
        said = {"item_id": f"msg_{name}"} if asked.api == "openai.responses" else None
        text = rs.TextBlock(text="It is 4 C in Oslo.", provider_metadata=said)
        blocks = (*think("4 C: cold.", name), text)
    return Answer(message=rs.assistant(*blocks, usage=usage))


_numbers = count()


class Provider:
    """One provider, listening; ``asked`` and ``refused`` remember what came."""

    def __init__(self, script: Script = weather) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.refused: list[str] = []
        self._record = Record()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the official clients find it."""
        at = self.address
        return {
            "OPENAI_BASE_URL": f"{at}/v1",
            "OPENAI_API_KEY": "k",
            "ANTHROPIC_BASE_URL": at,
            "ANTHROPIC_API_KEY": "k",
            "GOOGLE_GEMINI_BASE_URL": at,
            "GEMINI_API_KEY": "k",
            "OLLAMA_HOST": at,
            "MISTRAL_SERVER_URL": f"{at}/mistral",
            "MISTRAL_API_KEY": "k",
            "CO_API_URL": at,
            "CO_API_KEY": "k",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": at,
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "k",
            "AWS_DEFAULT_REGION": "eu-north-1",
            "NO_PROXY": "127.0.0.1",
        }

    @contextmanager
    def listening(self) -> Iterator[Provider]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def answer(self, asked: Asked) -> Answer | str:
        """Return what is answered, or the text of the refusal."""
        self.asked.append(asked)
        to: dict[str, Any] = {"provider": asked.provider, "model": asked.model, "api": asked.api}
        said = refusal(asked.body, record=self._record if self._remembers(asked) else None, **to)
        if said is not None:
            self.refused.append(said)
            return said
        answer = self.script(asked)
        if asked.api == "openai.responses":
            self._record.answered({}, response(answer.message, **to)["output"])
        return answer

    def _remembers(self, asked: Asked) -> bool:
        """Whether all items of Responses in a request were made here: some come from elsewhere."""
        sealed = [item.get("encrypted_content") for item in _items(asked.body)]
        known = all(seal is None or self._record.sealed(seal) for seal in sealed)
        return known and asked.api == "openai.responses"


def _items(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the items of Responses in a request."""
    given = body.get("input")
    return given if isinstance(given, list) else ()


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if not any(fnmatchcase(path, pattern) for pattern, _ in PLACES):
                self.rfile.read(int(self.headers["Content-Length"]))
                self._json(404, {"error": {"message": "no such route", "type": "not_found"}})
                return
            asked = self._asked()
            answer = provider.answer(asked)
            if isinstance(answer, str):
                self._refuse(answer)
                return
            with suppress(BrokenPipeError, ConnectionResetError):
                is_whole = asked.api in MAY_BE_WHOLE and not asked.body.get("stream")
                if is_whole or path.endswith(":generateContent"):
                    self._whole(asked, answer)
                else:
                    self._stream(asked, answer)

        def _asked(self) -> Asked:
            path = unquote(urlsplit(self.path).path)
            api = next(api for pattern, api in PLACES if fnmatchcase(path, pattern))
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model = body.get("model") or path.split("/")[-2 if "bedrock" in api else -1]
            model = re.sub(":(stream)?[gG]enerateContent$", "", model)
            by_model = next(name for like, name in BY_MODEL if fnmatchcase(model, like))
            return Asked(api, PROVIDERS.get(api, by_model), model, body)

        def _refuse(self, text: str) -> None:
            self._json(400, {"error": {"message": text, "type": "invalid_request_error"}})

        def _whole(self, asked: Asked, answer: Answer) -> None:
            body = response(
                answer.message, api=asked.api, provider=asked.provider, model=asked.model
            )
            self._json(200, body)

        def _json(self, status: int, value: Mapping[str, Any]) -> None:
            body = json.dumps(value)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def _stream(self, asked: Asked, answer: Answer) -> None:
            self.send_response(200)
            self.send_header("Content-Type", _TYPES.get(asked.api, "text/event-stream"))
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for number, data in enumerate(_framed(asked, answer)):
                if number == answer.hold_after:
                    answer.until.wait(120)
                if number == answer.drop_after:
                    self._chunk(data[: len(data) // 2])
                    self.close_connection = True
                    return
                self._chunk(data)
            self._chunk(b"")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the test knows what was asked."""

    return Handler


_TYPES = {
    "bedrock.converse": "application/vnd.amazon.eventstream",
    "ollama.chat": "application/x-ndjson",
}


def _framed(asked: Asked, answer: Answer) -> Iterator[bytes]:
    events = stream(
        answer.message,
        api=asked.api,
        provider=asked.provider,
        model=asked.model,
        pieces=answer.pieces,
        seed=answer.seed,
    )
    for event in events:
        yield frame(event) if asked.api == "bedrock.converse" else _one(event, asked.api)
    if asked.api != "bedrock.converse" and answer.message.status == "complete":
        yield from filter(None, [sse([], api=asked.api)])


def _one(event: Mapping[str, Any], api: str) -> bytes:
    """Return one event's bytes, without the mark that ends a stream."""
    end = sse([], api=api)
    whole = sse([event], api=api)
    return whole[: len(whole) - len(end)]
