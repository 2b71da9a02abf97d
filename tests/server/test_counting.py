"""The count of a request's tokens where the provider has none, by the official SDK."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import anthropic
import pytest

import reasoning_store as rs
from reasoning_store.server.options import ServerOptions
from tests.docs.provider import Provider
from tests.server.serving import serving

MODEL = "claude-sonnet-4-6"
TOOL: Any = {"name": "get_weather", "input_schema": {"type": "object"}}


def open_client(address: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=address, max_retries=0)


def test_a_request_is_counted_here_where_the_provider_does_not_count() -> None:
    """With the thinking that is put back, whether the host has no such route or is away."""
    question: Any = {"role": "user", "content": "How is Oslo?"}
    provider = Provider()
    with (
        rs.Store("sqlite://") as store,
        serving(store, ServerOptions(upstream=provider.address, provider="anthropic")) as address,
        open_client(address) as client,
    ):

        def count(messages: Any, **more: Any) -> int:
            return client.messages.count_tokens(model=MODEL, messages=messages, **more).input_tokens

        with provider.listening():
            reply = client.messages.create(
                model=MODEL, max_tokens=2000, messages=[question], tools=[TOOL]
            )
            (call,) = [block for block in reply.content if block.type == "tool_use"]
            result = {"type": "tool_result", "tool_use_id": call.id, "content": "4 C"}
            after: Any = {"role": "user", "content": [result]}
            lost = [question, {"role": "assistant", "content": [call.to_dict()]}, after]
            kept = [question, {"role": "assistant", "content": reply.to_dict()["content"]}, after]
            counts = [count(lost, tools=[TOOL]), count(kept, tools=[TOOL])]
            longer = count([question], tools=[TOOL], system="Be brief, and be exact.")
            shorter = count([question])
        counts.append(count(lost, tools=[TOOL]))

    assert len(set(counts)) == 1
    assert 0 < shorter < longer < counts[0]


@pytest.mark.parametrize("messages", [None, 5, [None], [{"role": "user", "content": 5}, 5]])
def test_what_is_no_list_of_messages_is_not_counted(messages: Any) -> None:
    """It is refused in Anthropic's shape."""
    with (
        rs.Store("sqlite://") as store,
        serving(store, ServerOptions(upstream="http://127.0.0.1:9")) as address,
        open_client(address) as client,
        pytest.raises(anthropic.BadRequestError, match="messages: ") as refused,
    ):
        client.messages.count_tokens(model=MODEL, messages=messages)

    assert isinstance(refused.value.body, dict)
    assert refused.value.body["error"]["type"] == "invalid_request_error"


def test_the_providers_own_count_and_its_refusal_of_a_model_are_passed_on() -> None:
    """A 404 that names the model is no missing route."""

    class Counts(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            known = b"claude-unknown" not in body
            refusal = b'{"type":"error","error":{"type":"not_found_error","message":"%s"}}'
            answer = b'{"input_tokens":7}' if known else refusal % b"model: claude-unknown"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Counts) as provider:
        thread = Thread(target=provider.serve_forever, args=(0.02,))
        thread.start()
        upstream = f"http://127.0.0.1:{provider.server_address[1]}"
        try:
            with (
                rs.Store("sqlite://") as store,
                serving(store, ServerOptions(upstream=upstream, provider="anthropic")) as address,
                open_client(address) as client,
            ):
                asked: Any = [{"role": "user", "content": "How is Oslo?"}]
                counted = client.messages.count_tokens(model=MODEL, messages=asked)
                with pytest.raises(anthropic.NotFoundError, match="claude-unknown"):
                    client.messages.count_tokens(model="claude-unknown", messages=asked)
        finally:
            provider.shutdown()
            thread.join()

    assert counted.input_tokens == 7
