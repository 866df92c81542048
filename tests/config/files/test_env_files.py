"""What a line of an environment file comes to: what python-dotenv says, or a refusal in words."""

import io
import re
from contextlib import suppress
from typing import Final

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from subagents.config.files.env_files import variables_of
from subagents.errors import UsageError

HERE: Final = {"HOST": "h.example", "EMPTY": ""}
SECRET: Final = "Tm90QVJlYWxLZXk5OTk5"
PEM: Final = f"-----BEGIN KEY-----\n{SECRET}\n-----END KEY-----"

REFUSED: Final = None
LINES: Final = (
    # what stands there, what a worker gets, what `docker run --env-file` gives
    ("A=1", "1", "1"),
    ("A=", "", ""),
    ("  A=1", "1", "1"),
    ("A=b=c==", "b=c==", "b=c=="),
    ('A={"b": [1, 2]}', '{"b": [1, 2]}', '{"b": [1, 2]}'),
    ("A=C:\\dir\\new", "C:\\dir\\new", "C:\\dir\\new"),
    ("A=$HOST", "$HOST", "$HOST"),
    ("A=pa$$word#1", "pa$$word#1", "pa$$word#1"),
    ("A=#1", "#1", "#1"),
    ("A=postgres://u:p@h/d?x=y#z", "postgres://u:p@h/d?x=y#z", "postgres://u:p@h/d?x=y#z"),
    ("A=a\u2028B=1", "a\u2028B=1", "a\u2028B=1"),
    ("A=a\x0cB=1", "a\x0cB=1", "a\x0cB=1"),
    ("A=a\x85B=1", "a\x85B=1", "a\x85B=1"),
    ("A=a\x0bB=1", "a\x0bB=1", "a\x0bB=1"),
    ("A=it's", "it's", "it's"),
    ("A=`x`", "`x`", "`x`"),
    ("A=$(date)", "$(date)", "$(date)"),
    # Here docker keeps what it sees, and python-dotenv reads it: as python-dotenv.
    ("A='b c'", "b c", "'b c'"),
    ('A="b c"', "b c", '"b c"'),
    ('A="b" # why', "b", '"b" # why'),
    ("A='b' # why", "b", "'b' # why"),
    ('A="b"#why', "b", '"b"#why'),
    ("A=b # why", "b", "b # why"),
    ("A= # why", "", " # why"),
    ('A="b # no"', "b # no", '"b # no"'),
    ("A=b   ", "b", "b   "),
    ("A= b", "b", " b"),
    ("A = b", "b", "refused"),
    ("export A=b", "b", "refused"),
    ('A="b\\nc\\t\\"d\\\\"', 'b\nc\t"d\\', '"b\\nc\\t\\"d\\\\"'),
    ("A='b\\nc'", "b\\nc", "'b\\nc'"),
    ('A="b\nc"', "b\nc", '"b'),
    (f'A="{PEM}"', PEM, "refused"),
    ("A=${HOST}", "h.example", "${HOST}"),
    ('A="https://${HOST}/x"', "https://h.example/x", '"https://${HOST}/x"'),
    ("A=${NONE:-d}", "d", "${NONE:-d}"),
    ("A=${EMPTY:-d}", "", "${EMPTY:-d}"),
    ("B=1\nA=${B}2", "12", "${B}2"),
    ("A=1\nA=2", "2", "2"),
    ("HOST=mine\nA=${HOST}", "mine", "${HOST}"),
    ("A=1\r\nB=2\r\n", "1", "1"),
    ("# A=2\n\n  # x\nA=1", "1", "1"),
    # Nothing here says what was meant.
    ('A="b', REFUSED, '"b'),
    ("A='b", REFUSED, "'b"),
    ('A="b"c', REFUSED, '"b"c'),
    ('A="b" c', REFUSED, '"b" c'),
    ("A='it\\'s'", REFUSED, "'it\\'s'"),
    ("A='C:\\'", REFUSED, "'C:\\'"),
    ("A='a\\\\b'", REFUSED, "'a\\\\b'"),
    ('A="C:\\Users"', REFUSED, '"C:\\Users"'),
    ('A="\\$HOST"', REFUSED, '"\\$HOST"'),
    ("A='${HOST}'", REFUSED, "'${HOST}'"),
    ("A=${NONE}", REFUSED, "${NONE}"),
    ("A=${HOST-x}", REFUSED, "${HOST-x}"),
    ("A=${HOST:?x}", REFUSED, "${HOST:?x}"),
    ("A=${HOST", REFUSED, "${HOST"),
    ("A=${NONE:-${HOST}}", REFUSED, "${NONE:-${HOST}}"),
    ("A=b\u00a0", REFUSED, "b\u00a0"),
    ("A=\u2003b", REFUSED, "\u2003b"),
    ("A=b\u00a0# why", REFUSED, "b\u00a0# why"),
    ("A: b", REFUSED, "refused"),
    ("'A'=b", REFUSED, "unset"),
    ("A B=c", REFUSED, "refused"),
    ("A.B=c", REFUSED, "unset"),
    ("1A=c", REFUSED, "unset"),
    ("=c", REFUSED, "refused"),
    ("set A=b", REFUSED, "refused"),
    ("\x0cA=b", REFUSED, "unset"),
    (f"A={PEM}", REFUSED, "refused"),
)


def read(text: str) -> dict[str, str]:
    return dict(variables_of(text, HERE, where="a.env"))


def python_dotenv(text: str, patch: pytest.MonkeyPatch) -> dict[str, str | None]:
    for name in ("A", "B", "NONE"):
        patch.delenv(name, raising=False)
    for name, value in HERE.items():
        patch.setenv(name, value)
    return dotenv_values(stream=io.StringIO(text))


@pytest.mark.requirement("environment:file-dialect")
@pytest.mark.parametrize(
    ("text", "value"), [(text, value) for text, value, _ in LINES if value is not None]
)
def test_a_value_is_what_python_dotenv_makes_of_it(
    text: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(text)["A"] == value
    assert read(text) == python_dotenv(text, monkeypatch)


@pytest.mark.requirement("environment:file-dialect")
@pytest.mark.parametrize("text", [text for text, value, _ in LINES if value is REFUSED])
def test_what_programs_read_in_several_ways_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^a\.env:\d+: ") as refused:
        read(text)

    assert not re.search(r"HOST|NONE|\bb\b|\bc\b", refused.value.message.replace(" a ", " "))
    assert SECRET not in f"{refused.value.message} {refused.value.hint}"


def docker(text: str) -> dict[str, str]:
    """The rules of https://docs.docker.com/reference/cli/docker/container/run/#env.

    A line is kept as it stands behind its first ``=``; a name alone is passed on.
    """
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, has_value, value = line.removesuffix("\r").lstrip(" \t").partition("=")
        if (not name and not has_value) or name.startswith("#"):
            continue
        if not name or " " in name or "\t" in name:
            return {"A": "refused"}
        found |= {name: value} if has_value else {name: HERE[name]} if name in HERE else {}
    return found


@pytest.mark.requirement("environment:file-dialect")
@pytest.mark.parametrize(("text", "value", "theirs"), LINES)
def test_where_docker_reads_a_line_otherwise_it_is_about_quotes_blanks_comments_and_references(
    text: str, value: str | None, theirs: str
) -> None:
    assert docker(text).get("A", "unset") == theirs
    if value is not REFUSED and theirs not in {value, "refused"}:
        assert re.search(r"""=['" ]|[ ]#|[ ]$|\$\{""", text)


@pytest.mark.requirement("environment:file-dialect")
def test_the_line_of_a_refusal_is_where_its_statement_begins() -> None:
    with pytest.raises(UsageError, match=r"^a\.env:6: "):
        read(f'\n# one\nA="{PEM}"\nB="x\n')


@pytest.mark.requirement("environment:file-dialect", "files:bounded-work")
@pytest.mark.parametrize(
    "text",
    [
        "A0=xxxx\n" + "".join(f"A{each + 1}=${{A{each}}}${{A{each}}}\n" for each in range(60)),
        f"A0={'x' * 10_000}\nB={'${A0}' * 10_000}",
        f"A0={'x' * 10_000}\n" + "".join(f"B{each}=${{A0}}\n" for each in range(100)),
        f"A={'${NONE:-' + 'x' * 1_000 + '}' * 1}\nB={'${A}' * 10_000}",
    ],
    ids=["doubled", "repeated", "copied", "defaults"],
)
def test_references_make_no_more_of_a_file_than_a_process_may_be_given(text: str) -> None:
    with pytest.raises(UsageError, match=r"^a\.env:\d+: "):
        read(text)


@pytest.mark.requirement("files:bounded-work")
@pytest.mark.parametrize(
    "line", ["A=a{}b", "A=a{}#b", "A={}a", "A='a{}'", 'A="a{}"', "A{}=a", "{}A=a", "# {}"]
)
@pytest.mark.parametrize("piece", [" ", "\t", " #", "\\\\", "$", "\u2003"])
def test_no_value_takes_time_with_the_square_of_its_length(line: str, piece: str) -> None:
    with suppress(UsageError):
        read(line.format(piece * 200_000))


@pytest.mark.requirement("environment:file-dialect")
def test_a_name_alone_is_passed_on_and_one_that_is_not_set_here_is_not_shown() -> None:
    assert read("HOST\nA=1\nHOST # mine\n") == {"HOST": "h.example", "A": "1"}
    with pytest.raises(UsageError, match=r"^a\.env:2: a name alone passes on") as refused:
        read(f"A=1\n{SECRET}\n")
    assert SECRET not in f"{refused.value.message} {refused.value.hint}"


PIECES: Final = st.sampled_from(
    [
        *("A", "B", "=", "#", "'", '"', "\\", "\\n", "${", "}", ":-", "HOST", "x", ".", "-", "é"),
        *(" \t\n\r\u2028\x0c\x85\x0b\u00a0\ufeff"),
        *("\r\n", "export "),
    ]
)


@pytest.mark.requirement("environment:file-dialect")
@given(st.lists(PIECES, max_size=14).map("".join))
def test_whatever_a_file_says_is_read_as_python_dotenv_does_or_refused(text: str) -> None:
    text = text.removeprefix("\ufeff")
    try:
        found = read(text)
    except UsageError:
        return
    with pytest.MonkeyPatch.context() as patch:
        expected = python_dotenv(text, patch)
    # A name alone has no value there.
    alone = {name: HERE[name] for name, value in expected.items() if value is None}
    assert found == {**expected, **alone}
