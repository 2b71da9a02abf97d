"""Reading a reply: from a provider's chunks to one message.

``normalizer`` is the door, ``channels`` and ``text_channel`` keep thinking and answer apart, the
``accumulator`` makes the message and ``draft_parts`` the stored parts of a reply that is arriving.
``masking`` is applied before every write.
"""
