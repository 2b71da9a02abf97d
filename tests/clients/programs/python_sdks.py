"""``openai`` and ``anthropic``: the program keeps a reply's text and calls."""

from __future__ import annotations

import sys

import anthropic
import openai

from tests.clients.provider import STEPS
from tests.integrations.loops import chat_loop, messages_loop, responses_loop

address, kind, model, form, *_ = sys.argv[1:]
run = {"chat": chat_loop, "responses": responses_loop, "messages": messages_loop}[kind]
client: openai.OpenAI | anthropic.Anthropic
if kind == "messages":
    client = anthropic.Anthropic(base_url=address, api_key="k", max_retries=0)
else:
    stored = {"X-Reasoning-Store": "yes"}
    client = openai.OpenAI(
        base_url=f"{address}/v1", api_key="k", max_retries=0, default_headers=stored
    )
print(run(client, model, streamed=form == "streamed", turns=len(STEPS)))
