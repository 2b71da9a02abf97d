"""What arrived: from a provider's chunks to one clean message.

``normalizer`` is the door; ``channels`` keeps thinking and answer apart, ``tags`` takes
inline delimiters out of text, ``accumulator`` builds the message, ``masking`` stands
before every write. The room knows channels; it must not know policy, SQL or a provider's
words.
"""
