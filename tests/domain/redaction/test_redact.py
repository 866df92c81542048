"""Secrets of a known shape never leave; everything else does."""

import re
import string
import time

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.planted import KEY_LINES, PLANTED, SHOWN, found_in, private_key

from subagents.domain.redaction.own_secrets import own_secrets
from subagents.domain.redaction.redact import (
    KEY_LINES_MAX,
    MARGIN_BYTES,
    Redactor,
    ending,
    may_hold_secret,
    redact,
)
from subagents.domain.redaction.secret_spans import REDACTED, spans_in_line

WORD = string.ascii_letters + string.digits
URL_SAFE = f"{WORD}-_"


def text_of(alphabet: str, *, low: int, high: int | None = None) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=low, max_size=low + 20 if high is None else high)


SHAPED = st.one_of(
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
PIECES = st.one_of(SHAPED, NAMES, VALUES, st.sampled_from(
    ["=", ": ", '"', "'", "\\", " ", "\n", "token", "bearer ", REDACTED, "[", "]", "://", "@",
     "cookie: ", "eyJ", ".", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "--",
     "--password ", "_PAT=", "hvs.", "ä", "hooks.slack.com/services/"]
))  # fmt: skip
PLACES = st.sampled_from(
    ["{}", "see {} there", '"{}"', "({})", "a\n{}\nb", "x={};", "https://h/?q={}&r=1", "`{}`"]
)


@pytest.mark.requirement("redact:shapes")
@given(SHAPED, PLACES)
def test_no_key_of_a_known_shape_survives_wherever_it_stands(secret: str, place: str) -> None:
    shown = redact(place.format(secret))

    assert secret not in shown
    assert REDACTED in shown


@pytest.mark.requirement("redact:assignments")
def test_what_only_resembles_the_path_of_a_file_is_hidden() -> None:
    assert "a10/0.aaaa" not in redact("password=a10/0.aaaa")
    assert redact("password = conf/secret.txt") == "password = conf/secret.txt"


@pytest.mark.requirement("redact:assignments")
@given(NAMES, VALUES, FORMS)
def test_what_is_assigned_to_a_secrets_name_is_hidden_and_the_name_is_not(
    name: str, value: str, form: str
) -> None:
    # A number after "token" is an amount, a word is a word, and the path of a file is one.
    assume(not re.search(r"/.*\.[a-z]{1,5}\Z", value))
    planted = f"a1{value}"

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
        "runtime_options.api_key_env: NO_SUCH_NAME is not set",
        "runtime_options.api_key_env: lower_case_name is not set",
        "set api_key_env = 'OPENAI_API_KEY' or TOKEN=$GITHUB_TOKEN",
        "the secret: ANTHROPIC_AUTH_TOKEN is not set",
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
        "key=a1", "datadog=a1", "token=a1b2,", "<token>abcd", "\x1b[", "ghp_\u200b", "\\u200b",
        '"token", "value": "', "curl -u a:b ", "login a password ", "x: a ", "token : str", "0-us1",
        "Private-Lines: 1\n", "-----END PRIVATE KEY-----", "tskey-aa-aaaaaaaa-", "aaa_", "://a:b@",
    ],
)  # fmt: skip
def test_no_repetition_makes_it_slow(piece: str) -> None:
    """A quadratic pattern would need minutes for this much."""
    text = piece * (500_000 // len(piece))

    began = time.process_time()
    redact(text)

    assert time.process_time() - began < 30


# -- kinds --------------------------------------------------------------------------------------


@pytest.mark.requirement("redact:kinds")
@pytest.mark.parametrize("kind", PLANTED)
def test_a_secret_of_every_kind_is_taken_out_and_what_stands_around_it_stays(kind: str) -> None:
    form, secret = PLANTED[kind]

    for place in ("{}", "before {} behind", "a\n{}\nb", "x; {};"):
        shown = redact(place.format(SHOWN[kind]))
        assert secret not in shown
        assert found_in(shown) == []
        assert shown == redact(shown)
        before = place.format(form).replace("{{", "{").partition("{}")[0].rstrip("'\"")
        assert shown.startswith(before.removesuffix("Basic ").removesuffix("Bearer "))


@pytest.mark.requirement("redact:kinds")
def test_they_do_not_hide_each_other() -> None:
    for joint in ("\n", " ", ", ", " | ", "\t"):
        assert found_in(redact(joint.join(SHOWN.values()))) == []


# -- the fast way -------------------------------------------------------------------------------


@pytest.mark.requirement("redact:fast")
@settings(max_examples=600)
@given(st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=8).map("".join)))
def test_what_is_passed_unread_holds_nothing_that_a_pattern_would_find(text: str) -> None:
    if may_hold_secret(text):
        return
    assert [span for line in text.split("\n") for span in spans_in_line(line)] == []
    assert redact(text) == text


@pytest.mark.requirement("redact:fast")
@given(PLACES, st.one_of(SHAPED, st.sampled_from(list(SHOWN.values()))))
def test_no_secret_passes_unread(place: str, secret: str) -> None:
    assert may_hold_secret(place.format(secret))


@pytest.mark.requirement("redact:identical")
@given(st.lists(st.text("abcdefghij xyz0123:/.\n", max_size=200), max_size=30))
def test_texts_without_a_secret_come_back_as_the_same_objects(texts: list[str]) -> None:
    shown, after = Redactor().fold(texts)

    assert list(shown) == texts
    assert all(mine is theirs for mine, theirs in zip(shown, texts, strict=True))
    assert after == Redactor()


# -- streams ------------------------------------------------------------------------------------

LINES = st.lists(
    st.one_of(
        st.sampled_from(list(SHOWN.values())),
        st.text("abc xyz=:\"'.-_0123456789\t", max_size=60),
        st.lists(PIECES, max_size=5).map("".join).filter(lambda t: "-----" not in t),
    ).map(lambda text: text.replace("\n", " ").replace("\r", " ")),
    max_size=20,
)


@pytest.mark.requirement("redact:stream")
@settings(max_examples=300)
@given(LINES, st.data())
def test_a_stream_in_pieces_is_redacted_as_the_whole_of_it(
    lines: list[str], data: st.DataObject
) -> None:
    shown: list[str] = []
    state = Redactor()
    rest = list(lines)
    while rest:
        count = data.draw(st.integers(1, len(rest)))
        some, state = state.fold(rest[:count])
        shown += some
        del rest[:count]

    assert "\n".join(shown) == redact("\n".join(lines))


@pytest.mark.requirement("redact:key-by-line")
@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize(
    "form", ["{}", "  {}", "12: {}", "+{}", "> {}", "| {} |", "09:12:01 INFO x: {}", '"{}\\n" +']
)
@pytest.mark.parametrize("pieces", [1, 3, 100])
def test_a_private_key_printed_line_by_line_is_taken_out(kind: str, form: str, pieces: int) -> None:
    printed = [form.format(line) for line in private_key(kind).split("\n")]
    lines = ["$ cat id_rsa", *printed, "$ echo done", "done"]
    shown: list[str] = []
    state = Redactor()
    for at in range(0, len(lines), pieces):
        some, state = state.fold(lines[at : at + pieces])
        # It is kept in a checkpoint between two batches.
        state = msgspec.json.decode(msgspec.json.encode(state), type=Redactor)
        shown += some

    assert found_in("\n".join(shown)) == []
    assert shown[0] == lines[0]
    assert shown[-2:] == lines[-2:]
    assert state == Redactor()


@pytest.mark.requirement("redact:key-by-line")
def test_lines_of_others_between_those_of_a_key_stay_and_the_key_does_not() -> None:
    begin, *key, end = private_key("RSA ").split("\n")
    lines = [begin]
    for number, line in enumerate(key):
        lines += [line, f"note {number}: it continues"]
    lines += [end, "behind it"]

    shown, state = Redactor().fold(lines)

    assert found_in("\n".join(shown)) == []
    assert [line for line in shown if "note" in line] == [line for line in lines if "note" in line]
    assert shown[-1] == "behind it"
    assert state == Redactor()


@pytest.mark.requirement("redact:key-by-line")
def test_a_key_that_never_ends_does_not_hide_the_rest_of_the_stream() -> None:
    first, state = Redactor().fold(["read the -----BEGIN PRIVATE KEY----- line of it"])
    assert first == [f"read the {REDACTED}"]

    prose, state = state.fold(["all is well, and more follows"] * 40)
    assert list(prose) == ["all is well, and more follows"] * 40
    assert state == Redactor()

    _, state = Redactor().fold(["-----BEGIN PRIVATE KEY-----"])
    shown, state = state.fold(["word"] * (KEY_LINES_MAX + 5))
    assert list(shown[-5:]) == ["word"] * 5
    assert state == Redactor()


@pytest.mark.requirement("redact:key-by-line")
def test_the_end_of_a_key_whose_beginning_was_cut_off_is_taken_out() -> None:
    """What a result shows of a long output is its end."""
    cut = private_key("RSA ").partition(KEY_LINES[0][:20])[2]

    shown = redact(f"{cut}\nall done")

    assert found_in(shown) == []
    assert shown == f"{REDACTED}\nall done"
    assert redact(f"first\n{shown}") == f"first\n{shown}"
    words = redact(f"the rest: {cut.replace(chr(10), ' ')} behind")
    assert found_in(words) == []
    assert words.startswith("the rest:")
    assert redact("see its -----END PRIVATE KEY----- there") == f"see its {REDACTED} there"


@pytest.mark.requirement("redact:key-by-line")
def test_several_keys_in_one_text_are_taken_out_and_what_is_between_them_stays() -> None:
    text = f"one {private_key('RSA ')} two\n{private_key('')}\nthree"

    (shown,), state = Redactor(key_lines=5).fold([text])

    assert found_in(shown) == []
    assert "two" in shown
    assert shown.endswith("three")
    assert state == Redactor()


# -- a run's own --------------------------------------------------------------------------------


@pytest.mark.requirement("redact:own")
@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("API_KEY", True), ("DB_PASSWORD", True), ("GITHUB_TOKEN", True), ("client_secret", True),
        ("MYSQL_PWD", True), ("REGISTRY_AUTH", True), ("SENTRY_DSN", True), ("SSH_KEY", True),
        ("GH_PAT", True), ("AWS_SECRET_ACCESS_KEY", True), ("CREDENTIALS", True),
        ("PATH", False), ("MODE", False), ("KEYBOARD_LAYOUT", False), ("SSH_KEY_FILE", False),
        ("TOKEN_URL", False), ("AWS_ACCESS_KEY_ID", False), ("SECRET_NAME", False),
        ("AUTHOR", False), ("COMPASS", False),
    ],
)  # fmt: skip
def test_values_of_variables_whose_name_says_secret_are_the_runs_own(
    name: str,
    is_secret: bool,  # noqa: FBT001  # pytest gives it by name
) -> None:
    found = own_secrets({"env": {name: "plain words"}})

    assert ("plain words" in found) is is_secret
    assert bool(found) is is_secret


@pytest.mark.requirement("redact:own-program")
def test_what_a_runtime_lets_through_by_itself_is_a_secret_of_its_runs() -> None:
    environ = {
        "ANTHROPIC_API_KEY": "purple elephant",
        "ANTHROPIC_MODEL": "green horse",
        "A_KEY": "x",
    }

    own = own_secrets({}, environ, passes=("ANTHROPIC_*",))

    assert redact("a purple elephant on a green horse", own) == f"a {REDACTED} on a green horse"


@pytest.mark.requirement("redact:own")
def test_a_runs_own_secrets_are_replaced_wherever_they_stand() -> None:
    options: dict[str, object] = {
        "env": {"A_TOKEN": "green horse", "B_PASSWORD": 'say "please" twice', "C_KEY": "short"},
        "pass_env": ["X_SECRET", "Y_*", "MODE"],
    }
    environ = {
        "X_SECRET": "green horse tail",
        "Y_KEY": "first line\nsecond line",
        "MODE": "loud voice",
    }
    own = own_secrets(options, environ)

    text = 'green horse tail|green horse|say \\"please\\" twice|second line|short|loud voice'
    assert redact(text, own) == f"{REDACTED}|{REDACTED}|{REDACTED}|{REDACTED}|short|loud voice"
    (shown,), _ = Redactor().fold(["the green horse"], own)
    assert shown == f"the {REDACTED}"
    assert {'say \\"please\\" twice', 'say "please" twice', "green horse"} <= {
        *own_secrets(options)
    }
    assert own_secrets({}) == own_secrets({"env": None, "pass_env": 3}) == ()


@pytest.mark.requirement("redact:own")
@given(
    st.dictionaries(
        st.sampled_from(["A_KEY", "B_TOKEN", "C_SECRET"]), st.text('redact[]ab\\"\n', max_size=14)
    ),
    st.text('redact[]ab\\"\n', max_size=60),
)
def test_redacting_a_runs_own_twice_changes_nothing(env: dict[str, str], text: str) -> None:
    own = own_secrets({"env": env})
    once = redact(text, own)

    assert redact(once, own) == once


@pytest.mark.requirement("redact:before-cutting")
@pytest.mark.parametrize("kind", PLANTED)
def test_an_end_that_is_kept_holds_no_half_of_a_secret_wherever_it_is_cut(kind: str) -> None:
    shown = SHOWN[kind].encode()
    for lost in range(1, len(shown)):
        data = b"x " * (MARGIN_BYTES // 2) + shown + b"\n" + b"y" * 900
        kept = ending(data, len(shown) - lost + 901)
        assert not found_in(kept), (kind, lost)
        assert kept.endswith("y" * 900)


@pytest.mark.requirement("redact:before-cutting")
def test_an_end_that_is_cut_begins_with_a_whole_line_or_word_and_holds_all_that_fits() -> None:
    lines = b"".join(b"own-secret-%04d of this run\n" % number for number in range(3_000))
    for most in range(4_096, 4_130):
        kept = ending(lines, most)
        assert kept.startswith("own-secret-")
        assert most - most // 8 <= len(kept) <= most
        assert lines.decode().endswith(kept)
    assert ending(b"word-one word-two" + b" z" * 500, 1_006).startswith("z z")
    assert ending(b"sk-" + b"a" * 40, 100) == "sk-" + "a" * 40
    assert ending("é".encode() * 1_000, 101) == "é" * 50


@pytest.mark.requirement("redact:escaped-line-ends")
@pytest.mark.parametrize("between", [r"\n", r"\t", r"\r\n", r"\\n"])
def test_a_key_behind_an_escaped_line_end_is_one_too(between: str) -> None:
    key = "sk-ant-" + "a1B2" * 8

    assert key not in redact(f"{{cut off{between}{key}{between}more")
