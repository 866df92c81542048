"""Lines for people: without escape sequences, NULs and overwritten progress; errors told apart."""

import time

import pytest
from tests.call_counts import calls_of

from subagents.domain.run.worker_output import LINE_CHARS_MAX, LineType
from subagents.runtimes.output.terminal_text import (
    clean,
    line_items,
    looks_like_error,
    may_hold_error,
    plain,
)


@pytest.mark.requirement("runtimes:broken-bytes")
def test_nul_is_replaced_and_the_last_newlines_go() -> None:
    assert clean("a\ufffdb\x00c\r\n\n") == "a\ufffdb\ufffdc\r"


@pytest.mark.requirement("transcript:lines-are-plain-text")
@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("\x1b[31;1mred\x1b[0m and \x1b[2Kcleared", "red and cleared"),
        ("\x1b]0;a title\x07said", "said"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain\x1b=", "plain"),
        ("cut \x1b[3", "cut [3"),
        ("\x1b]never ended", "]never ended"),
        ("a\x1b", "a"),
        ("a\0b", "a\ufffdb"),
        ("windows\r", "windows"),
        ("10%\r20%\rdone", "done"),
        ("10%\r20%\r\r", "20%"),
        ("\tkept \u2028 as it is", "\tkept \u2028 as it is"),
    ],
)
def test_a_line_is_shown_as_a_terminal_would(shown: str, text: str) -> None:
    assert plain(shown) == text
    assert plain(f"{shown}\nnext") == f"{text}\nnext"


@pytest.mark.requirement("transcript:lines-are-plain-text")
@pytest.mark.parametrize("unit", ["\x1b", "\x1b[", "\x1b]", "\x1bP", "\r", "\x1b[0;", "\x1b]8;;x"])
def test_no_text_takes_long_to_clean(unit: str) -> None:
    text = unit * (1_000_000 // len(unit)) + "x"
    began = time.process_time()
    plain(text)
    # Milliseconds here; what is not linear takes minutes.
    assert time.process_time() - began < 30


@pytest.mark.requirement("transcript:errors-on-stderr")
@pytest.mark.parametrize(
    ("line", "is_error"),
    [
        ("Error: no such thing", True),
        ("ValueError: bad", True),
        ("java.lang.NullPointerException", True),
        ("Traceback (most recent call last):", True),
        ("fatal: not a git repository", True),
        ("thread 'main' panicked at src/main.rs:2:5", True),
        ("panic: runtime error: index out of range", True),
        ("npm ERR! missing script: build", True),
        ("bash: foo: command not found", True),
        ("cat: x: No such file or directory", True),
        ("12 errors generated.", True),
        ("3 tests failed", True),
        ("0 errors, 2 warnings", False),
        ("0 failed, 12 passed", False),
        ("no error found", False),
        ("warning: unused variable", False),
        ("an erroneous remark", False),
        ("  Compiling errors-lib v1.0", True),
        ("Downloading packages", False),
        ("", False),
    ],
)
def test_a_line_of_stderr_is_an_error_by_its_words(line: str, *, is_error: bool) -> None:
    assert looks_like_error(line) is is_error
    assert may_hold_error(line) or not is_error
    block = f"before\n{line}\nafter\n".encode()
    kinds = [output.type for output in line_items(block, is_stderr=True) if output.text == line]
    assert kinds == ([LineType.ERROR if is_error else LineType.TEXT] if line else [])
    assert {output.type for output in line_items(block, is_stderr=False)} == {LineType.TEXT}


@pytest.mark.requirement("transcript:long-lines-are-cut")
def test_a_long_line_among_others_is_cut_and_says_by_how_much() -> None:
    long = "w" * (LINE_CHARS_MAX + 500)
    [first, cut, last] = line_items(f"a\n{long}\nb".encode(), is_stderr=False)

    assert (first.text, last.text) == ("a", "b")
    kept, note = cut.text.split("… ")
    assert set(kept) == {"w"}
    assert note == f"({len(long) - len(kept):,} more characters)"
    assert len(cut.text) <= LINE_CHARS_MAX


@pytest.mark.requirement("runtimes:plain-lines-are-cheap")
def test_a_plain_line_costs_hardly_more_than_the_item_made_of_it() -> None:
    block = b"an ordinary line of some program, eighty characters long or so, with words in.\n"

    assert len(line_items(block * 800, is_stderr=False)) == 800
    assert calls_of(lambda: line_items(block * 800, is_stderr=False)) < 3 * 800
