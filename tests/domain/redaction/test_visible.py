"""What is not to be seen hides no secret, and stays where there is none."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planted import SHOWN, found_in, private_key
from tests.published_secrets import BARE, made_of

from subagents.domain.redaction.redact import Redactor, redact
from subagents.domain.redaction.secret_spans import REDACTED
from subagents.domain.redaction.visible import unescaped, views, visible

HIDDEN = (
    *("\x1b[31m", "\x1b[0m", "\x1b]8;;https://h\x1b\\", "\x1b[1;38;5;12m", "\x1b(B", "\x9b1m"),
    *("\u200b", "\u200d", "\u2060", "\ufeff", "\xad", "\u202e", "\u2066", "\u034f", "\ufe0f"),
    *("\x00", "\x08", "\x7f", "\U000e0041", "\\u200b", "\\u001b[31m", "\\x1b[0m", "\\\\u200b"),
)


def inside(secret: str, hidden: str) -> str:
    return hidden.join((secret[:9], secret[9:15], secret[15:]))


@pytest.mark.requirement("redact:hidden-characters")
@pytest.mark.parametrize("hidden", HIDDEN, ids=ascii)
@pytest.mark.parametrize("kind", ["github pat", "anthropic", "aws access key", "npm", "gitlab pat"])
@pytest.mark.parametrize("place", [inside, lambda secret, hidden: f"x{hidden}{secret}{hidden}y"])
def test_a_secret_is_found_behind_what_is_not_to_be_seen(
    hidden: str, kind: str, place: Callable[[str, str], str]
) -> None:
    secret = made_of(BARE[kind], random.Random(3))  # noqa: S311  # no secret is made here

    shown = redact(f"see\u200b {place(secret, hidden)} \x1b[1mthere\x1b[0m")

    assert REDACTED in shown
    assert secret[-8:] not in shown
    assert secret[:14] not in visible(shown)
    assert shown.startswith("see\u200b ")
    assert shown.endswith(" \x1b[1mthere\x1b[0m")


@pytest.mark.requirement("redact:hidden-characters")
@pytest.mark.parametrize("hidden", ["\x1b[0m", "\u200b", "\\u200b"], ids=ascii)
def test_names_and_values_are_known_behind_it_too(hidden: str) -> None:
    shown = redact(f'DB_PASS{hidden}WORD{hidden}={hidden}hunter{hidden}22 and "on"')

    assert visible(shown) == f'DB_PASSWORD={REDACTED} and "on"'


@pytest.mark.requirement("redact:hidden-characters")
@pytest.mark.parametrize("hidden", ["\x1b[32m", "\u200b"], ids=ascii)
def test_a_private_key_in_colours_is_taken_out_in_one_text_and_line_by_line(hidden: str) -> None:
    lines = [f"{hidden}{line[:20]}{hidden}{line[20:]}" for line in private_key("RSA ").split("\n")]
    lines = ["first", *lines, "last"]

    whole = redact("\n".join(lines))
    shown, state = Redactor().fold(lines)

    for text in (whole, "\n".join(shown)):
        assert found_in(visible(text)) == []
        assert text.startswith("first\n")
        assert text.endswith("last")
    assert state == Redactor()


@pytest.mark.requirement("redact:hidden-characters")
def test_a_runs_own_secret_is_found_behind_it() -> None:
    assert redact("mine: green\u200b horse\x1b[0m.", ["green horse"]) == f"mine: {REDACTED}\x1b[0m."


@pytest.mark.requirement("redact:hidden-characters")
@given(st.text(), st.sampled_from(HIDDEN), st.text())
def test_text_without_a_secret_keeps_what_is_not_to_be_seen(
    before: str, hidden: str, behind: str
) -> None:
    text = f"{before}{hidden}{behind}"

    assert redact(text) == text or REDACTED in redact(text)
    for view in views(text):
        assert len(view.origins) == len(view.text) + 1
        for at, character in enumerate(view.text):
            assert text[view.origins[at]] == character or character == " "


@pytest.mark.requirement("redact:hidden-characters")
@given(st.sampled_from(list(SHOWN.values())), st.sampled_from(HIDDEN), st.integers(0, 40))
def test_redacting_hidden_ones_twice_changes_nothing(text: str, hidden: str, at: int) -> None:
    once = redact(f"{text[:at]}{hidden}{text[at:]}")

    assert redact(once) == once


ESCAPES: dict[str, Callable[[str], str]] = {
    "of a URL": lambda c: f"%{ord(c):02X}",
    "of a URL, small": lambda c: f"%{ord(c):02x}",
    "of JSON": lambda c: f"\\u{ord(c):04x}",
    "of JSON in JSON": lambda c: f"\\\\u{ord(c):04X}",
    "of source": lambda c: f"\\x{ord(c):02x}",
    "of HTML": lambda c: f"&#{ord(c)};",
    "of HTML, hexadecimal": lambda c: f"&#x{ord(c):X};",
}


@pytest.mark.requirement("redact:escapes")
@pytest.mark.parametrize(
    "kind", ["github fine-grained", "anthropic", "slack bot", "sendgrid", "jwt"]
)
@pytest.mark.parametrize("way", ESCAPES)
def test_a_secret_is_found_when_its_signs_or_all_of_it_are_written_as_escapes(
    way: str, kind: str
) -> None:
    secret = made_of(BARE[kind], random.Random(3))  # noqa: S311  # no secret is made here
    escape = ESCAPES[way]
    for text in (
        "".join(escape(c) if c in "_-." else c for c in secret),
        "".join(map(escape, secret)),
    ):
        assert redact(f"see {text} there") == f"see {REDACTED} there"


@pytest.mark.requirement("redact:escapes")
@pytest.mark.parametrize(
    "text",
    [
        "https://h/a%20b%2Fc%3Fpage%3D2%26sort%3Dname", "100%25 of 3%5D", "printf '%5d %3x %2f'",
        r"C:\users\x64\u0041nn", r'{"path": "a\/b", "text": "caf\u00e9 \u0026 tea"}',
        "A&amp;B &quot;x&quot;",
        "token%3A%20required", "password%3D%24%7BPW%7D", "%5Bredacted%5D token%3D[redacted]",
        "data:image/svg+xml,%3Csvg%20xmlns%3D%22http%3A%2F%2Fwww.w3.org%22%3E",
    ],
)  # fmt: skip
def test_escapes_that_hide_nothing_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.requirement("redact:escapes")
@given(st.text(alphabet=r"ab%\ux5F&#;quot/0", max_size=60))
def test_each_character_of_an_unescaped_text_says_where_it_stood(text: str) -> None:
    view = unescaped(text)
    if view is not None:
        assert len(view.origins) == len(view.text) + 1
        assert list(view.origins) == sorted(view.origins)
        assert view.origins[-1] == len(text)
