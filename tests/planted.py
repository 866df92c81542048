"""Secrets of real shapes, made up here: none of them was ever valid, and none stands in a file."""

import random
import string
from typing import Final

_CHANCE: Final = random.Random(20261120)  # noqa: S311  # they shall be the same in every run
_WORD: Final = string.ascii_letters + string.digits
_URL: Final = f"{_WORD}-_"
_BASE64: Final = f"{_WORD}+/"
_HEX: Final = "0123456789abcdef"
_UPPER: Final = string.ascii_uppercase + string.digits


def made(alphabet: str, chars: int) -> str:
    """Characters by chance, never the same twice; the first one is no sign."""
    head = _CHANCE.choice([each for each in alphabet if each.isalnum()])
    return head + "".join(_CHANCE.choices(alphabet, k=chars - 1))


KEY_LINES: Final = tuple(made(_BASE64, 64) for _ in range(8))


def private_key(kind: str) -> str:
    """As a program writes it."""
    lines = "\n".join(KEY_LINES)
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


PLANTED: Final[dict[str, tuple[str, str]]] = {
    # kind: (what is printed, with {} for the secret; the secret)
    "openai": ("{}", "sk-" + made(_WORD, 48)),
    "openai project": ("key {} used", "sk-proj-" + made(_URL, 74)),
    "anthropic": ("{}", "sk-ant-api03-" + made(_URL, 86)),
    "openrouter": ("({})", "sk-or-v1-" + made(_HEX, 64)),
    "stripe": ("{}", "sk_live_" + made(_WORD, 24)),
    "stripe restricted": ("{}", "rk_test_" + made(_WORD, 24)),
    "stripe webhook": ("{}", "whsec_" + made(_WORD, 32)),
    "github": ("remote: {}", "ghp_" + made(_WORD, 36)),
    "github server": ("{}", "ghs_" + made(_WORD, 36)),
    "github fine-grained": ("{}", "github_pat_" + made(_WORD, 22) + "_" + made(_WORD, 59)),
    "gitlab": ("{}", "glpat-" + made(_URL, 20)),
    "gitlab runner": ("{}", "glrt-" + made(_URL, 20)),
    "aws": ("{}", "AKIA" + made(_UPPER, 16)),
    "aws session": ("{}", "ASIA" + made(_UPPER, 16)),
    "aws secret": ("AWS_SECRET_ACCESS_KEY={}", made(_BASE64, 40)),
    "aws secret in a file": ("aws_secret_access_key = {}", made(_BASE64, 40)),
    "azure": ("AccountName=x;AccountKey={};EndpointSuffix=y", made(_BASE64, 86) + "=="),
    "azure service bus": ("SharedAccessKey={}", made(_BASE64, 43) + "="),
    "google": ("{}", "AIza" + made(_URL, 35)),
    "google oauth": ("{}", "ya29." + made(_URL, 60)),
    "google client": ("{}", "GOCSPX-" + made(_URL, 28)),
    "slack": ("{}", f"xoxb-{made(string.digits, 12)}-{made(string.digits, 12)}-{made(_WORD, 24)}"),
    "slack app": ("{}", f"xapp-1-A{made(_UPPER, 10)}-{made(string.digits, 13)}-{made(_HEX, 64)}"),
    "slack webhook": (
        "https://{}", f"hooks.slack.com/services/T{made(_UPPER, 8)}/B{made(_UPPER, 8)}/"
        + made(_WORD, 24),
    ),
    "discord webhook": (
        "https://{}", f"discord.com/api/webhooks/{made(string.digits, 18)}/{made(_URL, 68)}",
    ),
    "telegram": ("{}", f"{made('123456789', 10)}:AA{made(_URL, 33)}"),
    "npm": ("//registry/:_authToken={}", "npm_" + made(_WORD, 36)),
    "pypi": ("{}", "pypi-AgEIcHlwaS5vcmc" + made(_URL, 60)),
    "rubygems": ("{}", "rubygems_" + made(_HEX, 48)),
    "docker": ("{}", "dckr_pat_" + made(_URL, 27)),
    "hugging face": ("{}", "hf_" + made(_WORD, 34)),
    "replicate": ("{}", "r8_" + made(_WORD, 37)),
    "groq": ("{}", "gsk_" + made(_WORD, 52)),
    "xai": ("{}", "xai-" + made(_WORD, 80)),
    "digitalocean": ("{}", "dop_v1_" + made(_HEX, 64)),
    "sendgrid": ("{}", f"SG.{made(_URL, 22)}.{made(_URL, 43)}"),
    "shopify": ("{}", "shpat_" + made(_HEX, 32)),
    "vault": ("{}", "hvs." + made(_URL, 90)),
    "databricks": ("{}", "dapi" + made(_HEX, 32)),
    "doppler": ("{}", "dp.pt." + made(_WORD, 43)),
    "terraform": ("x.{}", "atlasv1." + made(_URL, 67)),
    "grafana": ("{}", "glsa_" + made(_WORD, 32) + "_" + made(_HEX, 8)),
    "linear": ("{}", "lin_api_" + made(_WORD, 40)),
    "postman": ("{}", f"PMAK-{made(_HEX, 24)}-{made(_HEX, 34)}"),
    "atlassian": ("{}", "ATATT3" + made(_URL, 180)),
    "age": ("{}", "AGE-SECRET-KEY-1" + made(_UPPER, 58)),
    "jwt": ("{}", f"eyJ{made(_URL, 30)}.eyJ{made(_URL, 60)}.{made(_URL, 43)}"),
    "bearer": ("Authorization: Bearer {}", made(_URL, 32)),
    "basic": ("-H 'authorization: Basic {}'", made(_WORD, 24)),
    "cookie": ("Set-Cookie: {}", f"session={made(_WORD, 24)}"),
    "url": ("postgres://ann:{}@db.internal:5432/x", made(_WORD, 16)),
    "password": ("password: {}", made(_WORD, 12) + "!"),
    "password in json": ('{{"db_password": "{}"}}', made(_WORD, 14) + " x"),
    "api key in yaml": ("  apiKey: '{}'", made(_URL, 20)),
    "token of a variable": ("export MY_SERVICE_TOKEN={}", made(_WORD, 30)),
    "flag": ("login --password {} --verbose", made(_WORD, 12) + "7"),
    "our own": ("{}", f"sa_r-{made(_HEX, 10)}_1_{made(_URL, 43)}"),
}  # fmt: skip
"""Of single lines."""

SHOWN: Final = {kind: form.format(secret) for kind, (form, secret) in PLANTED.items()}
SECRETS: Final = {kind: secret for kind, (_, secret) in PLANTED.items()}


def found_in(text: str) -> list[str]:
    """Kinds whose secret, or a half of it, stands in ``text``; also parts of the private key."""
    halves = {
        kind: (secret, secret[len(secret) // 2 :].strip("-_ x")) for kind, secret in SECRETS.items()
    }
    kinds = [kind for kind, parts in halves.items() if any(part in text for part in parts)]
    return [*kinds, *("private key" for line in KEY_LINES if line in text)]
