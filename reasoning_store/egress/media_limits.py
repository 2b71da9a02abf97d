"""The images of a request that the host refuses: too many, or one with too many pixels or bytes.

Every later request has such an image too. Nothing is left out here: the warning names the image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reasoning_store.conversation.blocks import MediaBlock, Message, ToolResponseBlock
from reasoning_store.egress.request_warnings import model_name, warning
from reasoning_store.egress.selection_values import RequestWarning, Selection
from reasoning_store.egress.target import Target
from reasoning_store.wire.content_parts import result_parts
from reasoning_store.wire.contract import MessageRules
from reasoning_store.wire.media import image_size


def media_warnings(selection: Selection, to: Target) -> Iterator[RequestWarning]:
    """Yield a warning for the first image that the host refuses."""
    rules = to.contract.messages
    if "image" not in rules.media or not (rules.image_side or rules.most_images):
        return
    images = [
        (number, data)
        for number, message in zip(selection.numbers, selection.messages, strict=True)
        for data in _images(message)
    ]
    if rules.most_images is not None and len(images) > rules.most_images:
        fault = f"a request may have {rules.most_images} images, and this one has {len(images)}"
        yield warning("image_refused", model=model_name(to), fault=fault)
    for number, data in images:
        if (found := _fault(data, len(images), rules)) is not None:
            fault = f"that of message {number} {found}"
            yield warning("image_refused", model=model_name(to), fault=fault)
            return


def _images(message: Message) -> Iterator[bytes]:
    """Yield the bytes of the images of a message, those in results of tools too."""
    for block in message.blocks:
        parts: Iterable[object] = (block,)
        if isinstance(block, ToolResponseBlock):
            parts = result_parts(block) or ()
        for part in parts:
            if isinstance(part, MediaBlock) and part.kind == "image" and part.data is not None:
                yield part.data


def _fault(data: bytes, number: int, rules: MessageRules) -> str | None:
    """Return why an image is refused, in words."""
    characters = -(-len(data) // 3) * 4
    if rules.image_base64 is not None and characters > rules.image_base64:
        return f"has {characters} characters of base64, and may have {rules.image_base64}"
    most, among = rules.image_side, ""
    if rules.many_images and number > rules.many_images[0]:
        most, among = rules.many_images[1], f" in a request of more than {rules.many_images[0]}"
    side = max(image_size(data) or (0,))
    if most is not None and side > most:
        return f"has {side} pixels on a side, and may have {most}{among}"
    return None
