"""What outside input may be: every refusal names the field and what is allowed."""

import json

import msgspec
import pytest

from subagents.api.wire import requests as wire
from subagents.errors import UsageError


def refusal(body: bytes) -> UsageError:
    with pytest.raises(UsageError) as caught:
        wire.parse_spawn(body)
    return caught.value


@pytest.mark.requirement("input:unknown-key:nearest-name")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"retrycount": 1},
            'unknown parameter "spec.retrycount": did you mean "retryCount"?',
        ),
        (
            {"verification": {"artefacts": []}},
            'unknown parameter "spec.verification.artefacts": did you mean "artifacts"?',
        ),
        (
            {"verification": {"artifacts": [{"path": "a", "minitem": 1}]}},
            'unknown parameter "spec.verification.artifacts[0].minitem": did you mean "minItems"?',
        ),
        ({"zzz": 1}, 'unknown parameter "spec.zzz"'),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_nearest_known_one(
    spec: dict[str, object], message: str
) -> None:
    error = refusal(json.dumps({"spec": {"task": "x", **spec}}).encode())

    assert error.message == message


@pytest.mark.requirement("input:bad-value:names-field")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"mode": "runn"}, 'spec.mode must be "run" or "session", not "runn": did you mean "run"?'),
        (
            {"verification": {"onFailure": "never", "requireCompletionReport": True}},
            'spec.verification.onFailure must be "retry_once" or "escalate" or "fail", not "never"',
        ),
        ({"retryCount": "1"}, "spec.retryCount must be an integer, not text"),
        ({"retryCount": True}, "spec.retryCount must be an integer, not true or false"),
        ({"dependsOn": [1]}, "spec.dependsOn[0] must be text, not an integer"),
        ({"task": None}, "spec.task must be text, not null"),
        ({"retryCount": -1}, "spec.retryCount must be 0 to 100, not -1"),
        ({"retryCount": 101}, "spec.retryCount must be 0 to 100, not 101"),
        ({"retryCount": 10**400}, "spec.retryCount must be 0 to 100, not that"),
        ({"retryDelay": 3_600_001}, "spec.retryDelay must be 0 to 3600000, not 3600001"),
        (
            {"runTimeoutSeconds": 2_592_001},
            "spec.runTimeoutSeconds must be 0 to 2592000, not 2592001.0",
        ),
        ({"runTimeoutSeconds": -0.5}, "spec.runTimeoutSeconds must be 0 to 2592000, not -0.5"),
        (
            {"dependencyTimeoutSeconds": 0},
            "spec.dependencyTimeoutSeconds must be 0.001 to 2592000, not 0.0",
        ),
        (
            {"budget": {"maxCostUsd": -1}},
            "spec.budget.maxCostUsd must be 1e-06 to 1000000, not -1.0",
        ),
        ({"label": "x" * 81}, "spec.label must have at most 80 characters, not 81"),
        ({"label": " "}, "spec.label must not be empty"),
        ({"label": "a\nb"}, "spec.label must be one line without control characters"),
        ({"tags": ["ok", ""]}, "spec.tags[1] must not be empty"),
        ({"toolsAllow": ["t"] * 1001}, "spec.toolsAllow must have at most 1000 entries, not 1001"),
        ({"task": "  "}, "spec.task must not be empty"),
        ({"task": "a\0b"}, "spec.task must not contain a NUL byte"),
        ({"label": "a\0b"}, "spec.label must not contain a NUL byte"),
        ({"cwd": ""}, "spec.cwd must be a path of 1 to 4096 bytes, not 0"),
        (
            {"task": "é" * (128 * 1024 + 1)},
            "spec.task must be at most 262144 bytes (256 KiB), not 262146",
        ),
        (
            {"task": "\ud800"},
            "spec.task must be valid UTF-8: it has half a surrogate pair at character 0",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_field_and_what_is_allowed(
    spec: dict[str, object], message: str
) -> None:
    body = json.dumps({"spec": {"task": "x", **spec}}).encode()

    assert refusal(body).message == message


@pytest.mark.requirement("input:malformed:refused")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the request body is not JSON: Input data was truncated"),
        (b"nope", "the request body is not JSON: JSON is malformed: invalid character (byte 4)"),
        (b"[]", "the request body must be a JSON object"),
        (b'{"spec":{"task":"\xff"}}', "the request body is not valid UTF-8"),
        (b"[" * 100_000, "the request body is nested too deeply"),
        (b"{}", "spec is required: the spawn parameters"),
        (b'{"spec":{}}', "spec.task is required"),
        (b'{"spec":[]}', "spec must be an object of spawn parameters"),
        (b'{"spec":{"task":"x"},"cmd":1}', 'unknown parameter "cmd": did you mean "cwd"?'),
        (b'{"spec":{"task":"x"},"cwd":"a/b"}', 'cwd must be an absolute path, not "a/b"'),
        (
            b'{"spec":{"task":"x"},"configEnv":{"A":1}}',
            "configEnv[...] must be text, not an integer",
        ),
        (
            b'{"spec":{"task":"x","runTimeoutSeconds":1e999}}',
            "spec.runTimeoutSeconds must be 0 to 2592000, not inf",
        ),
        (
            b'{"spec":{"task":"x","runTimeoutSeconds":NaN}}',
            "spec.runTimeoutSeconds must be 0 to 2592000, not that",
        ),
    ],
)
def test_a_body_that_is_no_spawn_request_is_refused_in_words(body: bytes, message: str) -> None:
    assert refusal(body).message == message


@pytest.mark.requirement("input:bodies:refused")
@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (wire.WaitBody, {"timeoutSeconds": 601}, "timeoutSeconds must be a number <= 600.0"),
        (wire.WaitBody, {"timeoutSeconds": -1}, "timeoutSeconds must be a number >= 0.0"),
        (wire.WaitBody, {"runIds": ["a"] * 1001}, "runIds must be a list of length <= 1000"),
        (wire.WaitBody, {"runIds": "a"}, "runIds must be a list, not text"),
        (wire.SteerBody, {}, "message is required"),
        (wire.SteerBody, {"message": ""}, "message must be text of length >= 1"),
        (wire.SteerBody, {"message": "x" * 4001}, "message must be text of length <= 4000"),
        (wire.AckBody, {"messageids": []}, 'unknown parameter "messageids"'),
        (wire.ProgressBody, {"phase": "p", "percentComplete": 101}, "percentComplete must be"),
        (wire.InboxBody, {"limit": 0}, "limit must be an integer >= 1"),
        (wire.RespondBody, {"response": "a\0"}, "response must not contain a NUL byte"),
    ],
)
def test_every_other_body_names_the_field_it_refuses(
    kind: type[msgspec.Struct], body: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        wire.parse_body(json.dumps(body).encode(), kind)

    assert caught.value.message.startswith(message)
