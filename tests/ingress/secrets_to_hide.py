"""Secrets, and maskers that hide them."""

from __future__ import annotations

import base64
from urllib.parse import quote

from hypothesis import strategies as st

PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEpAIBAAKCAQEA7bq98TDt+6Vv1fLFtF0y8Oo5hFZ0gqkL1eZsIu4YvT9bqXcd\n" * 12
    + "q1Zx8w==\n-----END RSA PRIVATE KEY-----"
)


KEYS: dict[str, list[str]] = {
    "anthropic_key": ["sk-ant-api03-" + "aB3_" * 23 + "AA"],
    "openai_key": ["sk-proj-" + "xY9-" * 39, "sk-svcacct-" + "k" * 40, "sk-admin-" + "q" * 24],
    "secret_key": ["sk-or-v1-" + "0f" * 32, "sk-" + "Ab1" * 16, "sk-" + "k" * 32, "sk-lf-0" * 4],
    "stripe_key": ["sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "rk_test_" + "a1" * 12],
    "github_token": ["ghp_" + "a1B2" * 9, "gho_" + "z" * 36, "github_pat_" + "11AB_" * 16],
    "gitlab_token": ["glpat-" + "x_-9" * 5],
    "aws_key_id": ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"],
    "google_key": ["AIzaSy" + "D" * 33],
    "google_secret": ["GOCSPX-" + "q" * 28],
    "slack_token": ["xoxb-1234567890-abcdefghij", "xapp-1-A012345-678"],
    "huggingface_token": ["hf_" + "a" * 34],
    "groq_key": ["gsk_" + "b" * 52],
    "xai_key": ["xai-" + "c" * 80],
    "npm_token": ["npm_" + "d" * 36],
    "pypi_token": ["pypi-" + "AgEI" * 20],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"],
    "url_credentials": ["scott:t1ger%40home", ":hunter2"],
    "private_key": [PEM, PEM.replace("\n", "\\n"), PEM.replace("\n", " ")],
}


EXAMPLES = [(kind, key) for kind, keys in KEYS.items() for key in keys]


VALUE = 'hunter2/+\u00fc"quoted" & more'


PLANTED = [key for kind, key in EXAMPLES if kind != "url_credentials"] + [VALUE, "swordfish"]


PIECES = st.sampled_from(
    [
        *PLANTED,
        *(quote(VALUE, safe=""), base64.b64encode(VALUE.encode()).decode()),
        *(key[: len(key) // 2] for key in PLANTED),
        *(key[len(key) // 2 :] for key in PLANTED),
        "https://scott:tiger@",
        *("[masked:jwt]", "[masked:value_1]", "[masked:", "value_1]", "]", "["),
        *("\\n", "%3D", "-", "_", " ", "\n", '"', "x", "0", "=", "eyJ", "sk-", "\U0001f600"),
        *("-----BEGIN PRIVATE KEY-----", "-----", "A" * 64, "word " * 40, "\ud800"),
        *("correct ", "correct horse ", "battery", "\u5bc6", "\u5bc6\u7801 is ", "\u5341\u4e8c"),
        *("https://\u5bc6", ":\u7801@", "BEGIN ", "-----BEGIN", PEM[:60], PEM[60:]),
    ]
)


TEXTS = st.lists(PIECES | st.text(max_size=12), max_size=12).map("".join)


class Stars:
    """An application's own masker: it only says how far it looks."""

    lookback = 8

    def mask(self, text: str) -> str:
        return text.replace("**secret", "**")
