"""Secrets of a known shape never leave; everything else does."""

import string
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subagents.domain.redact import REDACTED, redact

WORD = string.ascii_letters + string.digits
URL_SAFE = f"{WORD}-_"


def text_of(alphabet: str, *, low: int, high: int | None = None) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=low, max_size=low + 20 if high is None else high)


SECRETS = st.one_of(
    st.builds("sa_r-{}_{}_{}".format, text_of("0123456789abcdef", low=10, high=10),
              st.integers(1, 99), text_of(URL_SAFE, low=43, high=43)),
    st.builds("sk-{}".format, text_of(URL_SAFE, low=20)),
    st.builds("sk-ant-api03-{}".format, text_of(URL_SAFE, low=20)),
    st.builds("gh{}_{}".format, st.sampled_from("pousr"), text_of(WORD, low=36)),
    st.builds("github_pat_{}".format, text_of(f"{WORD}_", low=30)),
    st.builds("glpat-{}".format, text_of(URL_SAFE, low=20)),
    st.builds("AKIA{}".format, text_of(string.ascii_uppercase + string.digits, low=16, high=16)),
    st.builds("xox{}-{}".format, st.sampled_from("abpr"), text_of(f"{WORD}-", low=12)),
    st.builds("AIza{}".format, text_of(URL_SAFE, low=35, high=35)),
    st.builds("eyJ{}.eyJ{}.{}".format, text_of(URL_SAFE, low=10), text_of(URL_SAFE, low=10),
              text_of(URL_SAFE, low=10)),
    st.builds(
        "-----BEGIN {}PRIVATE KEY-----\n{}\n-----END {}PRIVATE KEY-----".format,
        st.just("RSA "), text_of(f"{WORD}+/\n", low=40), st.just("RSA "),
    ),
)  # fmt: skip
VALUES = text_of(f"{WORD}!#%*+/.?@^_~-", low=8)
NAMES = st.sampled_from(
    ["password", "DB_PASSWORD", "passwd", "api_key", "apiKey", "API-KEY", "client_secret",
     "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "access_token", "SUBAGENTS_TOKEN", "passphrase",
     "private_key", "MY_KEY"]
)  # fmt: skip
FORMS = st.sampled_from(
    ["{}={}", "{}: {}", '{} = "{}"', '{{"{}": "{}"}}', r"{{\"{}\": \"{}\"}}", "{} := '{}'"]
)
PIECES = st.one_of(SECRETS, NAMES, VALUES, st.sampled_from(
    ["=", ": ", '"', "'", "\\", " ", "\n", "token", "bearer ", REDACTED, "[", "]", "://", "@",
     "cookie: ", "eyJ", ".", "-----BEGIN PRIVATE KEY-----"]
))  # fmt: skip
PLACES = st.sampled_from(
    ["{}", "see {} there", '"{}"', "({})", "a\n{}\nb", "x={};", "https://h/?q={}&r=1", "`{}`"]
)


@pytest.mark.requirement("redact:shapes")
@given(SECRETS, PLACES)
def test_no_key_of_a_known_shape_survives_wherever_it_stands(secret: str, place: str) -> None:
    shown = redact(place.format(secret))

    assert secret not in shown
    assert REDACTED in shown


@pytest.mark.requirement("redact:assignments")
@given(NAMES, VALUES, FORMS)
def test_what_is_assigned_to_a_secrets_name_is_hidden_and_the_name_is_not(
    name: str, value: str, form: str
) -> None:
    # A number after "token" is an amount.
    planted = f"a{value}"

    shown = redact(form.format(name, planted))

    assert planted not in shown
    assert name in shown


@pytest.mark.requirement("redact:headers")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"),
        ('-H "authorization: basic dXNlcjpwYXNz"', '-H "authorization: basic [redacted]"'),
        ("sent bearer 0123456789abcdef to it", "sent bearer [redacted] to it"),
        ("Set-Cookie: session=abcdef; Path=/", "Set-Cookie: [redacted]"),
        ("postgres://ann:hunter22@db:5432/x", "postgres://ann:[redacted]@db:5432/x"),
        ('password="correct horse battery"', 'password="[redacted]"'),
        ("-----BEGIN PRIVATE KEY-----\nMIIE and it was cut", "[redacted]"),
    ],
)
def test_headers_urls_and_keys_without_an_end_are_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.requirement("redact:harmless")
@pytest.mark.parametrize(
    "text",
    [
        "Stats: runtime 12s - tokens 4.2k (in 3.1k / out 1.1k)",
        "max_tokens=4096, maxTokens: 1000, token_count = 12",
        "the task-count-lines-of-all-files is done, see disk-usage-of-the-home-directory",
        "sort key=name, monkey=banana, KEY: a",
        "Bearer authentication is used",
        "tokenizer: cl100k_base",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "https://example.com/a:b/c@d",
        "a.b.c, os.path.join, eyJ. and so on",
        "password=",
        "",
    ],
)
def test_texts_without_a_secret_are_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.requirement("redact:repeat")
@given(st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=12).map("".join)))
@example("password=[redacted]x")
@example("AKIA0000000000000000sk-0000000000000000")
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)

    assert redact(once) == once


@pytest.mark.requirement("redact:linear")
@pytest.mark.parametrize(
    "piece",
    [
        "eyJ", "-eyJ", "eyJ.", ".eyJ", "a", "a.", "sk-", "token", "token=", 'token="', "token\\",
        'password: "', 'password="\\', "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "://", "://a:",
        "bearer", "bearer ", "authorization:bearer ", "cookie=", "KEY", "_KEY=", "AKIA", "sa_",
        "sa_a_1_", "secret.", "[redacted]", "password=[", " \t", "SG.aaaaaaaaaaaaaaaa", "ghp_",
    ],
)  # fmt: skip
def test_no_repetition_makes_it_slow(piece: str) -> None:
    """A quadratic pattern would need minutes for this much."""
    text = piece * (500_000 // len(piece))

    began = time.process_time()
    redact(text)

    assert time.process_time() - began < 5
