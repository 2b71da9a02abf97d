"""The shipped masker: secrets that the application registers, and keys known by their prefix.

Theory. It guesses nothing: no entropy, no words such as "password". A registered value is
found in the spellings that JSON, HTML, URLs, hexadecimal and base64 give it. A key is found by
the prefix that its maker gave it, where a word begins.

A placeholder names the kind of the secret and nothing of the secret itself. The same text is
always masked alike, so that a repeated append is still the same append; there is no state and no
randomness. Masking twice is masking once: values are looked for between placeholders only, and no
rule matches the brackets of one.
"""

from __future__ import annotations

import base64
import hmac
import html
import json
import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from reasoning_store.conversation.errors import InvalidCall, SettingError

_WORD = r"[A-Za-z0-9_-]{1,256}"


class Rule(NamedTuple):
    """A kind of secret: how it begins, what makes it one, and how it may go on.

    ``begins`` and ``rest`` decide; every run in them is bounded, and they look at ``span``
    characters at most. A match is extended while ``more`` matches, piece by piece, and ends with
    ``close`` if that is there: so a key of any length is masked whole, though a growing text
    waits only for its first characters.
    """

    kind: str
    begins: str
    rest: str
    span: int
    more: str = _WORD
    close: str | None = None
    anchored: bool = True
    """Whether it begins a word: no letter, digit, ``_`` or ``-`` is before it."""


_PEM_NAME = r"[A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----"
_URL_PART = r"[^\s:/?#@\[\]\"'<>\\]"

RULES: tuple[Rule, ...] = (
    Rule("anthropic_key", "sk-ant-", r"[A-Za-z0-9_-]{16}", 23),
    Rule("openai_key", "sk-(?:proj|svcacct|admin)-", r"[A-Za-z0-9_-]{16}", 27),
    # A digit near the front tells a key from a hyphenated word that begins with sk.
    Rule(
        "secret_key",
        "sk-",
        r"(?:(?=[A-Za-z_-]{0,48}[0-9])[A-Za-z0-9_-]{16}|[A-Za-z0-9]{20})",
        52,
    ),
    Rule("stripe_key", "[sr]k_(?:live|test)_", r"[A-Za-z0-9]{16}", 24),
    Rule("github_token", "(?:gh[oprsu]_|github_pat_)", r"[A-Za-z0-9_]{22}", 33),
    Rule("gitlab_token", "glpat-", r"[A-Za-z0-9_-]{20}", 26),
    Rule("aws_key_id", "A[KS]IA", r"[A-Z0-9]{16}", 20),
    Rule("google_key", "AIza", r"[A-Za-z0-9_-]{35}", 39),
    Rule("google_secret", "GOCSPX-", r"[A-Za-z0-9_-]{20}", 27),
    Rule("slack_token", "(?:xox[abeoprs]|xapp)-", r"[A-Za-z0-9-]{10}", 15),
    Rule("huggingface_token", "hf_", r"[A-Za-z0-9]{30}", 33),
    Rule("groq_key", "gsk_", r"[A-Za-z0-9]{40}", 44),
    Rule("xai_key", "xai-", r"[A-Za-z0-9]{40}", 44),
    Rule("npm_token", "npm_", r"[A-Za-z0-9]{36}", 40),
    Rule("pypi_token", "pypi-", r"[A-Za-z0-9_-]{50}", 55),
    Rule(
        "jwt",
        "eyJ",
        r"[A-Za-z0-9_-]{8,256}+\.eyJ[A-Za-z0-9_-]{8}",
        271,
        more=r"\.?[A-Za-z0-9_-]{1,256}",
    ),
    # Only the text between :// and @ is masked; the address stays readable.
    Rule(
        "url_credentials",
        "(?<=://)",
        rf"{_URL_PART}{{0,64}}+:[^\s/?#@\[\]\"'<>\\]{{1,128}}+(?=@)",
        197,
        more=r"(?!)",
        anchored=False,
    ),
    # The first line of base64 tells a key from a mere mention of its header.
    Rule(
        "private_key",
        "-----BEGIN ",
        rf"{_PEM_NAME}(?:[^\[-]|-(?!--)){{0,200}}?(?:\s|\\[nr])[A-Za-z0-9+/]{{40}}",
        299,
        more=(
            r"[A-Za-z0-9+/=]{1,256}| [A-Za-z0-9+/=]{24,256}"
            r"|(?:[\r\n]|\\[nr]){1,4}[A-Za-z0-9+/=]{1,256}+(?=[\r\nA-Za-z0-9+/=\\-]|\Z)"
        ),
        close=(
            r"(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{1,80})?(?:\s|\\[nr]){0,4}"
            rf"-----END {_PEM_NAME}"
        ),
        anchored=False,
    ),
)
"""The known prefixes, the particular before the general."""

_WORD_BEGINS = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[bfnrt])|(?<=%[0-9A-Fa-f]{2}))"
"""No part of a word is before it, except an escape of JSON or of a URL."""
_LOOKED_AT = 4
"""The most characters that are looked at outside ``span``."""

_RULE_OF = {rule.kind: rule for rule in RULES}
_MORE = {rule.kind: re.compile(rule.more) for rule in RULES}
_CLOSE = {rule.kind: re.compile(rule.close) for rule in RULES if rule.close is not None}


def _any_rule(rules: Iterable[Rule]) -> str:
    return "|".join(f"(?P<{rule.kind}>{rule.begins}{rule.rest})" for rule in rules)


_NEXT = re.compile(_any_rule(RULES))
_FIRST = re.compile(
    # The beginnings of the rules are tried before the costly look at the text before them.
    f"(?={'|'.join(rule.begins for rule in RULES)})(?:"
    f"{_WORD_BEGINS}(?:{_any_rule(rule for rule in RULES if rule.anchored)})"
    f"|{_any_rule(rule for rule in RULES if not rule.anchored)})"
)
_PLACEHOLDER = re.compile(
    rf"(\[masked:(?:value_[0-9]{{1,6}}|{'|'.join(_RULE_OF)})(?::[0-9a-f]{{6}})?\])"
)
_LONGEST_PLACEHOLDER = 40

_BREAK = re.compile(r"[ \t\u0080-\U0010ffff]")
"""Characters that are in no key and in no spelling but a value's own. A text that begins after one
is masked as it would be with the text before: no rule looks further back."""
_BREAK_OR_LINE = re.compile(r"[ \t\r\n\u0080-\U0010ffff]")
"""Those, and the ends of lines, which may be inside the base64 of a value."""
_PEM_BEGINS = "-----BEGIN "
_URL_PART_ENDS = re.compile(r"[\s/?#@\[\]\"'<>\\]")
_NEAR = 64
"""The newest characters among which a break is looked for."""

_SHORTEST_VALUE = 8
"""A shorter value would be found everywhere."""


class _Spelling(NamedTuple):
    """One form of a registered value: ``probe`` must occur, then ``pattern`` is masked."""

    probe: str
    pattern: str
    span: int
    """The most characters that ``pattern`` matches, without ``_LOOKED_AT``."""
    wrapped: bool = False
    """Whether it may be broken into lines."""
    number: int = 0


_ESCAPED_IN_JSON = ("", "<>&", "<>&'\"", "<>&'\"+`")
"""The characters that are escaped without need: by most, by Go, by PHP if asked, by .NET."""
_JSON_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")
_HTML_QUOTES = (
    ('"', "'"),
    ("&quot;", "'"),
    ("&quot;", "&#x27;"),
    ("&quot;", "&#39;"),
    ("&quot;", "&#039;"),
    ("&quot;", "&apos;"),
    ("&#34;", "&#39;"),
)
_LINE_BREAK = r"(?:\r?\n|(?:\\r)?\\n)?"


class SecretMasker:
    """Masks the registered ``values`` and, unless ``prefixes=False``, keys known by their prefix.

    A value of fewer than 8 characters is refused. With a ``key`` of your own, kept outside the
    store, each placeholder ends in a short keyed digest that is the same for equal secrets;
    without one, values have their number and keys only their kind.
    """

    def __init__(
        self, values: Iterable[str] = (), *, prefixes: bool = True, key: bytes | None = None
    ) -> None:
        if key is not None and not isinstance(key, bytes):
            raise SettingError(
                f"the key of a masker must be bytes, not {type(key).__name__}",
                hint="as in secrets.token_bytes(32), kept outside the store",
            )
        self._prefixes = prefixes
        self._key = key
        self._values = _check_values(values)
        spellings = {
            spelling.pattern: spelling._replace(number=number)
            for number, value in reversed([*enumerate(self._values, 1)])
            for spelling in _spellings(value)
        }
        # Where one value begins another, the longer is tried first and leaves no rest.
        self._spellings = sorted(spellings.values(), key=lambda item: -len(item.probe))
        self.lookback = self._reach()
        self._break = _BREAK if self._spellings else _BREAK_OR_LINE
        self._beginnings: dict[str, int] = {}
        """How the values begin that hold a break, up to that, and their most characters."""
        for spelling in self._spellings:
            if not spelling.wrapped and (found := self._break.search(spelling.probe)):
                beginning = spelling.probe[: found.end()]
                self._beginnings[beginning] = max(spelling.span, self._beginnings.get(beginning, 0))

    def _reach(self) -> int:
        """A value inside a key decides where the key ends, so their spans add up."""
        rule = max(rule.span for rule in RULES) + _LOOKED_AT if self._prefixes else 0
        # Base64 may take one character more on each side, and two of padding.
        value = max((spelling.span + _LOOKED_AT for spelling in self._spellings), default=0)
        return rule + value + _LONGEST_PLACEHOLDER if rule or value else 0

    def mask(self, text: str) -> str:
        """Return the text without its secrets."""
        if not isinstance(text, str):
            raise InvalidCall(
                f"mask() takes a string, not {type(text).__name__}", hint='content or ""'
            )
        text = self._without_values(text)
        return self._without_keys(text) if self._prefixes else text

    def settled(self, text: str) -> int:
        """Return how many characters at the beginning can be masked alone, whatever follows."""
        breaks = [found.end() for found in self._break.finditer(text, max(0, len(text) - _NEAR))]
        return next((at for at in reversed(breaks) if not self._may_cross(text, at)), 0)

    def _may_cross(self, text: str, at: int) -> bool:
        """Whether a secret may begin before a break and end after it."""
        if self._prefixes:
            address = text.rfind("://", 0, at)
            if address >= 0 and _URL_PART_ENDS.search(text, address + 3, at) is None:
                return True
            if text.find(_PEM_BEGINS, 0, at) >= 0:
                return True
        return any(
            text.find(beginning, max(0, at - span + 1), at) >= 0
            for beginning, span in self._beginnings.items()
        )

    def _without_values(self, text: str) -> str:
        line = _join_lines(text) if self._spellings and ("\n" in text or "\\" in text) else text
        spellings = [
            spelling
            for spelling in self._spellings
            if spelling.probe in text or (spelling.wrapped and spelling.probe in line)
        ]
        if not spellings:
            return text
        pattern = re.compile("|".join(f"({spelling.pattern})" for spelling in spellings))

        def placeholder(match: re.Match[str]) -> str:
            number = spellings[(match.lastindex or 1) - 1].number
            return self._placeholder(f"value_{number}", self._values[number - 1])

        pieces = _PLACEHOLDER.split(text)
        pieces[::2] = [pattern.sub(placeholder, piece) for piece in pieces[::2]]
        return "".join(pieces)

    def _without_keys(self, text: str) -> str:
        match = _FIRST.search(text)
        if match is None:
            return text
        out: list[str] = []
        end = 0
        while match is not None:
            kind = match.lastgroup or ""
            out.append(text[end : match.start()])
            end = _match_end(kind, text, match.end())
            out.append(self._placeholder(kind, text[match.start() : end]))
            # A word begins directly after a match: a placeholder will be there.
            match = _NEXT.match(text, end) or _FIRST.search(text, end)
        return "".join([*out, text[end:]])

    def _placeholder(self, kind: str, secret: str) -> str:
        if self._key is None:
            return f"[masked:{kind}]"
        digest = hmac.digest(self._key, secret.encode("utf-8", "surrogatepass"), "sha256")
        return f"[masked:{kind}:{digest.hex()[:6]}]"


def _match_end(kind: str, text: str, end: int) -> int:
    """Return the end of a match, extended as far as its rule allows."""
    more = _MORE[kind]
    while piece := more.match(text, end):
        end = piece.end()
    close = _CLOSE[kind].match(text, end) if kind in _CLOSE else None
    return close.end() if close is not None else end


def _check_values(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        found = "one string" if isinstance(values, str) else type(values).__name__
        raise SettingError(
            f"values of a masker must be a list of strings, not {found}",
            hint='as in rs.SecretMasker(values=["the whole secret"])',
        )
    checked = tuple(values)
    for place, value in enumerate(checked, 1):
        if not isinstance(value, str) or len(value) < _SHORTEST_VALUE:
            raise SettingError(
                f"value {place} is not a string of {_SHORTEST_VALUE} or more characters",
                hint="a shorter secret would be found everywhere; give the whole of it",
            )
    return checked


def _spellings(value: str) -> Iterator[_Spelling]:
    data = value.encode("utf-8", "surrogatepass")
    plain = (
        value,
        *_json_spellings(value),
        *_html_spellings(value),
        *_url_spellings(value),
        data.hex(),
        data.hex().upper(),
    )
    for text in plain:
        yield _Spelling(text, re.escape(text), len(text))
    yield from _base64_spellings(data)


def _json_spellings(value: str) -> Iterator[str]:
    """Yield a string as writers of JSON spell it; they escape different characters."""
    for ascii_only, escaped in product((True, False), _ESCAPED_IN_JSON):
        text = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        if '"' in escaped:
            text = text.replace('\\"', '"')
        text = "".join(f"\\u{ord(char):04x}" if char in escaped else char for char in text)
        upper = _JSON_ESCAPE.sub(lambda match: "\\u" + match[1].upper(), text)
        for spelling in (text, upper):
            yield spelling
            yield spelling.replace("/", "\\/")


def _html_spellings(value: str) -> Iterator[str]:
    text = html.escape(value, quote=False)
    for double, single in _HTML_QUOTES:
        quoted = text.replace('"', double).replace("'", single)
        for plus in ("+", "&#43;", "&#x2B;", "&#x2b;"):
            spelling = quoted.replace("+", plus)
            yield spelling
            yield spelling.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _url_spellings(value: str) -> Iterator[str]:
    for spelling in (
        quote(value, safe="", errors="surrogatepass"),
        quote(value, safe="/", errors="surrogatepass"),
        quote(value, safe="!'()*", errors="surrogatepass"),
        quote_plus(value, errors="surrogatepass"),
    ):
        yield spelling
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), spelling)


def _base64_spellings(data: bytes) -> Iterator[_Spelling]:
    """Yield base64 of any text that holds the value, wherever in three bytes it begins.

    It may be broken into lines, as in mail and PEM files, and be inside JSON.
    """
    character = "[A-Za-z0-9+/_-]"
    for shift in range(3):
        bits = 8 * (shift + len(data))
        whole = slice(-(-8 * shift // 6), bits // 6)
        before = f"{character}?" if shift else ""
        after = f"{character}?={{0,2}}" if bits % 6 else ""
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            core = encode(bytes(shift) + data).decode("ascii")[whole]
            lines = _LINE_BREAK.join(r"\\?/" if char == "/" else re.escape(char) for char in core)
            yield _Spelling(core, before + lines + after, 5 * len(core), wrapped=True)


def _join_lines(text: str) -> str:
    """Return a text as one line, so that base64 that was broken into lines is whole."""
    for line_break in ("\r", "\n", "\\r", "\\n"):
        text = text.replace(line_break, "")
    return text.replace("\\/", "/")
