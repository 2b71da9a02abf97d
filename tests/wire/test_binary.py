"""Bytes where JSON stands: what is read as base64, and what is none."""

from __future__ import annotations

import json

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.json_values import make_json
from reasoning_store.wire.media import (
    as_bytes,
    data_url,
    from_base64,
    from_data_url,
    in_base64,
)
from tests.properties import each


@given(st.binary(max_size=64))
def test_bytes_come_back_however_they_are_written(data: bytes) -> None:
    """Either alphabet, padded or not, marked or not, or as the SDK has them."""
    usual = in_base64(data)
    in_urls = usual.translate(str.maketrans("+/", "-_"))
    forms = (data, bytearray(data), make_json(data), usual, in_urls, usual.rstrip("="))

    assert [as_bytes(form) for form in forms] == [data] * len(forms)
    assert from_data_url(data_url("image/png", data)) == (("image/png", data) if data else None)


@each("text", ["a", "YQ==YQ==", "Y Q==", "YQ==\n", "not base64!", "\u00e9", None, 7, b"YQ=="])
def test_invalid_base64_gives_none(text: object) -> None:
    """It is not read as far as it goes."""
    assert from_base64(text) is None


@pytest.mark.parametrize("url", ["data:image/png,x", "data:image/png;base64,", "data:,", "data:"])
def test_an_address_without_bytes_holds_none(url: str) -> None:
    """Text that stands in one is not taken for bytes."""
    assert from_data_url(url) is None


def test_a_picture_that_the_sdk_wrote_as_json_is_read() -> None:
    """It writes bytes in the alphabet of addresses, where the provider writes the usual one."""
    data = b"\xfb\xff\xbe"
    part = types.Part(inline_data=types.Blob(mime_type="image/png", data=data))
    content = types.Content(role="model", parts=[part])
    response = types.GenerateContentResponse(candidates=[types.Candidate(content=content)])
    body = json.loads(response.model_dump_json(exclude_none=True, by_alias=True))

    assert body["candidates"][0]["content"]["parts"][0]["inlineData"]["data"] == "-_--"
    (block,) = rs.normalize_response(body, provider="google").blocks
    assert isinstance(block, rs.MediaBlock)
    assert block.data == data
