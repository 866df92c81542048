"""What workers put into events and output comes out clean; names and callers' texts stay."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect
from tests.planted import KEY_LINES, SECRETS, SHOWN, found_in, private_key

from subagents.domain.redaction.redact_events import (
    BY_WORKERS,
    Redactors,
    has_text,
    redact_event,
    redact_output,
    redact_setting,
    redact_value,
)
from subagents.domain.redaction.secret_spans import REDACTED
from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.events import (
    Alerted,
    AttemptStartFailed,
    CancelPlanned,
    CancelRequested,
    DeliverySettled,
    Event,
    Fact,
    ParentNotified,
    RequestAnswered,
    RequestAsked,
    SignalReceived,
    SteerRequested,
    VerificationFinished,
    decode_event,
    encode_event,
)
from subagents.domain.run.outcome import Check, CheckType, DeliveryFailed, Verdict, Verification
from subagents.domain.run.run import (
    Answer,
    Decision,
    DeliveryTry,
    Exit,
    Progress,
    Report,
    ReportedArtifact,
    Request,
)
from subagents.domain.run.signals import (
    Exited,
    ProgressSeen,
    ReportSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
    Vanished,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import RequestId, SessionKey
from subagents.domain.run.worker_output import ApiError, LineType, OutputItem, PlanItem, ToolUse

ALL = "\n".join((*SHOWN.values(), private_key("RSA "), "own: green horse"))
OWN = ("green horse",)


def signals(text: str) -> list[Signal]:
    """Every kind of them, with that text wherever one can be."""
    return [
        Exited(key="k", exit=Exit(code=1), drained=True, stderr_tail=text),
        ResultSeen(key="k", text=text, error=text, bytes_total=7),
        ReportSeen(
            key="k",
            report=Report(
                summary=text,
                artifacts=(ReportedArtifact(path=text, description=text),),
                blockers=(text, "x"),
                warnings=(text,),
            ),
        ),
        ProgressSeen(key="k", progress=Progress(phase=text, metrics={text: text, "n": 1})),
        ToolSeen(key="k", name=text),
        Vanished(key="k", error=text),
        UsageSeen(key="k", usage=Usage(tokens_in=1)),
    ]


ASKED = Request(
    id=RequestId("r-1:q1"),
    attempt=1,
    question=ALL,
    asked_at_ms=1,
    deadline_ms=2,
    context=ALL,
    options=(ALL,),
    default_answer=ALL,
)
EVENTS: list[Event] = [
    *(SignalReceived(at_ms=1, attempt=1, signal=signal) for signal in signals(ALL)),
    AttemptStartFailed(at_ms=1, attempt=1, error=ALL),
    RequestAsked(at_ms=1, request=ASKED),
    ParentNotified(at_ms=1, message=ALL),
    Alerted(
        at_ms=1,
        alert=Alert(kind=AlertKind.API_ERROR, text=ALL, key="k", fields={"message": ALL, "n": 1}),
    ),
    VerificationFinished(
        at_ms=1,
        attempt=1,
        verification=Verification(
            verdict=Verdict.FAILED,
            checks=(
                Check(type=CheckType.ARTIFACT, target="x", passed=False, reason=ALL, evidence=ALL),
            ),
        ),
    ),
    DeliverySettled(
        at_ms=1,
        record=DeliveryTry(
            at_ms=1,
            target=SessionKey("agent:a:main"),
            requester_depth=0,
            nested=False,
            route_mode="direct",
            phases=(),
            outcome=DeliveryFailed(retryable=True, error=ALL),
            idempotency_key="k",
        ),
    ),
]


@pytest.mark.requirement("redact:events")
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_words_of_workers_and_programs_are_clean_in_every_event(event: Event) -> None:
    assert type(event) in BY_WORKERS

    clean = redact_event(event, OWN)

    text = encode_event(clean).decode().replace("\\n", "\n")
    assert found_in(text) == []
    assert "green horse" not in text
    assert redact_event(clean, OWN) == clean
    assert has_text(event) or clean == event


@pytest.mark.requirement("redact:events")
def test_an_event_that_says_nothing_in_words_is_not_searched_for_secrets() -> None:
    ended = Exited(key="r-1#1:exit", exit=Exit(code=0), drained=True)
    spent = UsageSeen(key="r-1#1:2", usage=Usage(tokens_in=1))

    for signal in (ended, spent):
        assert not has_text(SignalReceived(at_ms=1, attempt=1, signal=signal))


EXACT = {
    "key",
    "id",
    "callId",
    "sessionId",
    "idempotencyKey",
    "target",
    "routeMode",
    "phases",
    "changes",
}


def filled(kind: inspect.Type, text: str) -> list[Any]:
    """Values of a type as JSON has them, with that text wherever it takes one."""
    match kind:
        case inspect.Metadata(type=described):
            return filled(described, text)
        case inspect.StrType():
            return [text]
        case inspect.EnumType(cls=cls):
            return [next(iter(cls)).value]
        case inspect.BoolType():
            return [True]
        case inspect.IntType() | inspect.FloatType():
            return [1]
        case inspect.UnionType(types=types):
            return [each for one in types for each in filled(one, text)]
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return [filled(item, text)]
        case inspect.DictType(value_type=value):
            return [{text: each} for each in filled(value, text)]
        case inspect.StructType(fields=fields, tag=tag, tag_field=tag_field):
            options = {field.encode_name: filled(field.type, text) for field in fields}
            most = max((len(each) for each in options.values()), default=1)
            named = {} if tag_field is None else {tag_field: tag}
            return [
                {**named, **{name: each[number % len(each)] for name, each in options.items()}}
                for number in range(most)
            ]
        case inspect.NoneType():
            return [None]
        case _:
            raise AssertionError(kind)


def texts_in(value: object, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text of a JSON value, with the names it stands under."""
    match value:
        case str():
            yield names, value
        case dict():
            for name, each in value.items():
                yield from texts_in(each, (*names, name))
        case list():
            for each in value:
                yield from texts_in(each, names)


@pytest.mark.requirement("redact:events")
@pytest.mark.parametrize("kind", sorted(BY_WORKERS, key=str))
def test_every_text_of_such_an_event_is_clean_unless_it_names_something(kind: type[Fact]) -> None:
    for document in filled(inspect.type_info(kind), SECRETS["github"]):
        event = decode_event(msgspec.json.encode(document))

        clean = msgspec.to_builtins(redact_event(event))

        kept = {names for names, text in texts_in(clean) if text == SECRETS["github"]}
        assert all(EXACT & {*names} for names in kept)


@pytest.mark.requirement("redact:callers-words")
def test_what_a_caller_says_is_kept_word_for_word() -> None:
    answer = Answer(decision=Decision.ANSWER, text=ALL, by="a", at_ms=1)
    for event in (
        SteerRequested(at_ms=1, by="a", message=ALL),
        RequestAnswered(at_ms=1, request_id="r-1:q1", answer=answer),
        CancelRequested(at_ms=1, by="a", reason=ALL),
        CancelPlanned(at_ms=1, by="a", due_ms=2, reason=ALL),
    ):
        assert redact_event(event, OWN) is event


@pytest.mark.requirement("redact:identical")
@pytest.mark.parametrize(
    "signal",
    signals("12 tokens,\t\u00e4 \u2705\n key: 7"),
    ids=lambda signal: type(signal).__name__,
)
def test_signals_without_a_secret_are_the_same_byte_for_byte(signal: Signal) -> None:
    assert msgspec.json.encode(redact_value(signal, OWN)) == msgspec.json.encode(signal)


@pytest.mark.requirement("redact:events")
def test_what_is_said_is_clean_for_lines_and_for_detectors() -> None:
    tool = ToolUse(
        name=ALL, input=ALL, command=ALL, path=ALL, plan=(PlanItem(text=ALL),), team=ALL, output=ALL
    )
    said = (
        OutputItem(type=LineType.TEXT, text="plain"),
        OutputItem(type=LineType.TOOL, text=ALL, tool=tool),
        OutputItem(type=LineType.ERROR, text=ALL, api_error=ApiError(message=ALL)),
        OutputItem(type=LineType.TEXT, text=private_key("").split("\n")[0]),
        OutputItem(type=LineType.TEXT, text=KEY_LINES[0]),
    )

    clean, states = redact_output(said, Redactors(), OWN)

    text = msgspec.json.encode(clean).decode()
    assert found_in(text) == []
    assert "green horse" not in text
    assert clean[0] is said[0]
    assert states.stdout.key_lines > 0


@pytest.mark.requirement("redact:events")
def test_lines_of_standard_error_neither_end_a_key_of_standard_output_nor_continue_it() -> None:
    begin, *rest = (OutputItem(type=LineType.TEXT, text=t) for t in private_key("").split("\n"))
    noise = tuple(
        OutputItem(type=LineType.TEXT, text=f"warning {n}", is_stderr=True) for n in range(100)
    )

    shown, states = redact_output((begin, *noise), Redactors(), OWN)
    assert tuple(shown[1:]) == noise
    shown, _ = redact_output((*noise, *rest), states, OWN)

    assert tuple(shown[: len(noise)]) == noise
    assert {each.text for each in shown[len(noise) :]} == {REDACTED}


@pytest.mark.requirement("redact:events")
def test_all_texts_of_a_value_are_redacted_and_nothing_else_is_touched() -> None:
    secret = SECRETS["github"]

    lines = private_key("EC ").split("\n")
    assert redact_value(("a", *lines, 7, "b")) == ("a", *[REDACTED] * len(lines), 7, "b")
    assert redact_value({"a": [1, None, secret, (secret, True)], secret: 2.5}) == {
        "a": [1, None, REDACTED, (REDACTED, True)],
        REDACTED: 2.5,
    }


@pytest.mark.requirement("redact:settings")
@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("command", ["run", "--token", "a1b2c3d4e5"], ["run", "--token", REDACTED]),
        ("command", ["curl", "-H", "Authorization: Bearer a1b2c3d4e5f6"],
         ["curl", "-H", f"Authorization: Bearer {REDACTED}"]),
        ("command", ["x", "--url", "https://h/?access_token=a1b2c3d4e5f6g7h8"],
         ["x", "--url", f"https://h/?access_token={REDACTED}"]),
        ("command", ["sh", "-c", "mysql -psword99 shop"], ["sh", "-c", f"mysql -p{REDACTED} shop"]),
        ("command", ["x", "--api-key=a1b2c3d4e5"], ["x", f"--api-key={REDACTED}"]),
        ("api_key", "a1b2c3d4e5", REDACTED),
        ("client_secret", "swordfish", REDACTED),
        ("more", {"db": {"password": "swordfish"}}, {"db": {"password": REDACTED}}),
        ("servers", [{"headers": {"X-Api-Key": "a1b2c3d4e5f6"}}],
         [{"headers": {"X-Api-Key": REDACTED}}]),
    ],
)  # fmt: skip
def test_a_setting_is_redacted_by_its_key_and_by_the_flag_before_it(
    name: str, value: object, shown: object
) -> None:
    assert redact_setting(name, value) == shown


@pytest.mark.requirement("redact:settings")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("command", ["sh", "-c", "{task}"]), ("api_key_env", "OPENAI_API_KEY"),
        ("command", ["claude", "--model", "opus-4.1", "--permission-mode", "acceptEdits"]),
        ("pass_env", ["GITHUB_TOKEN", "AWS_*"]), ("tokens", "none"), ("name", "token"),
        ("on", True), ("max_tokens", 4096),
        ("tls_key", "/etc/ssl/private/host.pem"), ("allow_agents", ["*"]), ("url", "https://h/v1"),
    ],
)  # fmt: skip
def test_settings_that_are_no_secrets_stay(name: str, value: object) -> None:
    assert redact_setting(name, value) == value
