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
from subagents.domain.redaction.visible import views, visible

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
