"""The spans of OpenTelemetry: one for each request that goes to the provider."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import SpanKind, StatusCode

import reasoning_store as rs
from reasoning_store.server import tracing
from reasoning_store.server.limits import Limits
from reasoning_store.server.options import ServerOptions
from tests.docs.provider import Provider, weather
from tests.server.served import Served
from tests.server.serving import serving

CHAT = "/v1/chat/completions"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
ASKED = {"model": "deepseek-flash", "messages": [{"role": "user", "content": "The canary."}]}


class Spans(SpanProcessor):
    """The spans that ended."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []
        self._one_more = threading.Condition()

    def on_end(self, span: ReadableSpan) -> None:
        with self._one_more:
            self.ended.append(span)
            self._one_more.notify_all()

    def wait(self, number: int = 1) -> list[ReadableSpan]:
        """Return the spans, once so many have ended."""
        with self._one_more:
            assert self._one_more.wait_for(lambda: len(self.ended) >= number, 20)
        assert len(self.ended) == number
        return self.ended

    def one(self) -> ReadableSpan:
        """Return the only span, once it has ended."""
        return self.wait()[0]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    made, provider = Spans(), TracerProvider()
    provider.add_span_processor(made)
    tracer = provider.get_tracer("reasoning_store", schema_url=tracing.SCHEMA)
    monkeypatch.setattr("reasoning_store.server.app.find_tracer", lambda: tracer)
    yield made
    provider.shutdown()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


@pytest.fixture
def address(spans: Spans, provider: Provider, tmp_path: Path) -> Iterator[str]:
    options = ServerOptions(
        upstream=f"{provider.address}/v1", provider="deepseek", limits=Limits(provider_seconds=5)
    )
    with (
        rs.Store(f"sqlite:///{tmp_path}/chat.db") as store,
        serving(store, options) as at,
    ):
        yield at


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_reply_has_a_span_with_its_model_its_usage_and_its_session(
    address: str, spans: Spans, stream: bool
) -> None:
    """By the conventions; the caller's trace goes on, and no text and no key is in it."""
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "authorization": "Bearer sk-canary"}
    answer = httpx2.post(f"{address}{CHAT}", json={**ASKED, "stream": stream}, headers=headers)
    span = spans.one()
    found = facts(span)
    waited = found.pop(tracing.FIRST_CHUNK, None)

    assert (span.name, span.kind) == ("chat deepseek-flash", SpanKind.CLIENT)
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert found.pop("gen_ai.response.id")
    assert found.pop("reasoning_store.effective_tokens") > 0
    assert found == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "deepseek",
        "gen_ai.request.model": "deepseek-flash",
        "gen_ai.response.model": "deepseek-flash",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.conversation.id": answer.headers["X-Reasoning-Session"],
        "gen_ai.usage.input_tokens": 40,
        "gen_ai.usage.output_tokens": 12,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "reasoning_store.mode": "mirror",
        "reasoning_store.restored": 0,
        "reasoning_store.missed": 0,
        "reasoning_store.left_out": 0,
        "server.address": "127.0.0.1",
    }
    assert isinstance(waited, float) is stream
    assert "canary" not in span.to_json()


def test_the_trace_goes_on_at_the_provider(spans: Spans, tmp_path: Path) -> None:
    """It gets our span as its parent, and the gateway of a gateway is part of one trace."""
    with Provider().listening() as provider, rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        inner = ServerOptions(upstream=f"{provider.address}/v1", provider="deepseek")
        with (
            serving(store, inner) as at,
            serving(store, ServerOptions(upstream=f"{at}/v1", provider="deepseek")) as address,
        ):
            httpx2.post(f"{address}{CHAT}", json=ASKED)
    first, second = spans.wait(2)

    assert first.parent is not None
    assert first.parent.span_id == second.context.span_id
    assert second.parent is None


def test_a_refusal_is_an_error_with_its_status(address: str, spans: Spans) -> None:
    """The status alone; its text may hold what was asked."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "How is Oslo?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "4"},
    ]
    answer = httpx2.post(f"{address}{CHAT}", json={**ASKED, "messages": messages})
    span = spans.one()

    assert answer.status_code == 400
    assert facts(span)["error.type"] == "400"
    assert facts(span)["reasoning_store.missed"] == 0
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)


def test_a_stream_that_breaks_off_is_an_error(
    address: str, spans: Spans, provider: Provider
) -> None:
    """With its kind."""
    provider.script = lambda asked: replace(weather(asked), pieces=8, drop_after=4)
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.post(f"{address}{CHAT}", json={**ASKED, "stream": True})

    assert facts(spans.one())["error.type"] == "RemoteProtocolError"


def test_a_client_that_leaves_ends_the_span(address: str, spans: Spans, provider: Provider) -> None:
    """While the provider still writes."""
    hold = threading.Event()

    provider.script = lambda asked: replace(weather(asked), pieces=8, hold_after=6, until=hold)
    with httpx2.stream("POST", f"{address}{CHAT}", json={**ASKED, "stream": True}) as answer:
        next(answer.iter_bytes())
    span = spans.one()
    hold.set()

    assert facts(span)["error.type"] == tracing.CLIENT_LEFT


def test_a_request_that_stays_here_has_no_span(address: str, spans: Spans) -> None:
    """A page, a probe, and a body that is refused."""
    for path in ("/healthz", "/", "/v1/conversations/none"):
        httpx2.get(f"{address}{path}")
    httpx2.post(f"{address}{CHAT}", content=b"no JSON")

    assert spans.ended == []


def test_the_server_runs_without_opentelemetry() -> None:
    """It is no dependency, and nothing of it is imported."""
    code = (
        "import sys; sys.modules['opentelemetry'] = None;"
        "import reasoning_store as rs; from reasoning_store.server.app import make_app;"
        "app = make_app(rs.Store('sqlite://'));"
        "print([one.cls.__name__ for one in app.user_middleware])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['Addresses', 'Journal', 'Access']"


EXPORTS = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
exporter = ConsoleSpanExporter(out=open("spans", "a"), formatter=lambda span: span.name + "\\n")
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(exporter))
"""


def test_workers_export_their_spans_before_they_end(provider: Provider, tmp_path: Path) -> None:
    """By the provider of spans that was set before they were started."""
    served = Served(tmp_path, f"{provider.address}/v1", "--workers", "2", setup=EXPORTS)
    httpx2.post(f"{served.address}{CHAT}", json=ASKED)
    served.end(signal.SIGTERM)

    assert (tmp_path / "spans").read_text() == "chat deepseek-flash\n"
