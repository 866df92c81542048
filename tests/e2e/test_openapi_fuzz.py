"""The HTTP interface against its own description: many odd calls, and no answer it does not have.

Schemathesis makes calls that fit the description and calls that do not; every answer must be one
that the description knows, and none may be a mistake of ours (500).
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Err
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home
from tests.free_ports import free_port

CALLS: Final = [2, pytest.param(6, marks=pytest.mark.tier("all"))]
"""Of each operation, fitting and not fitting."""
SEED: Final = 20261120
TIMEOUT_S: Final = 90
LEFT_OUT: Final = {
    ("POST", "/v1/shutdown"): "ends the daemon",
    ("GET", "/v1/events"): "is a stream without an end",
    ("POST", "/v1/demo"): "copies the package's source each time",
}
WAITS: Final = ("waitSeconds", "wait")
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


class Fuzzer:
    """Makes calls to one daemon over TCP, as its operator."""

    def __init__(self, home: LiveHome, port: int) -> None:
        token = (home.paths.state_dir / "operator.token").read_text().strip()
        self.headers = {"Authorization": f"Bearer {token}"}
        self.url = f"http://127.0.0.1:{port}"
        self.random = random.Random(SEED)  # noqa: S311 - seeded on purpose: a failure must replay
        self.session = requests.Session()
        self.calls = 0
        self.answers: dict[int, int] = {}
        self.home = home
        document = home.get("/openapi.json")
        self.schema = schemathesis.openapi.from_dict(document)
        self.run = home.spawn("sleep 600")
        home.until_phase(self.run, "running")
        body = {"runId": self.run, "question": "which?", "timeoutSeconds": 600}
        self.request = str(home.post("/v1/requests", body)["requestId"])

    def operations(self) -> Iterator[Any]:
        for found in self.schema.get_all_operations():
            assert not isinstance(found, Err), found
            operation = found.ok()
            if (operation.method.upper(), operation.path) not in LEFT_OUT:
                yield operation

    def fuzz(self, operation: Any, mode: GenerationMode, calls_max: int) -> None:
        @settings(
            max_examples=calls_max,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def calls(data: st.DataObject) -> None:
            self.call(data.draw(operation.as_strategy(generation_mode=mode)))

        calls()

    def call(self, case: Case[Any]) -> None:
        self.make_deeper(case)
        answered = case.call(
            base_url=self.url, session=self.session, headers=self.headers, timeout=TIMEOUT_S
        )
        self.calls += 1
        self.answers[answered.status_code] = self.answers.get(answered.status_code, 0) + 1
        case.validate_response(answered, checks=CHECKS)

    def make_deeper(self, case: Case[Any]) -> None:
        """Most calls get past the first check, and none holds the line."""
        often = self.random.random() < 0.8
        if often:
            for name in [each for each in case.headers if each.lower().startswith("x-subagents")]:
                case.headers.pop(name)
            for name, real in (("sel", self.run), ("id", self.request), ("name", "sessions_list")):
                if name in case.path_parameters:
                    case.path_parameters[name] = real
        if isinstance(case.query, dict):
            for name in WAITS:
                case.query.pop(name, None)
        if case.path == "/v1/wait" and not isinstance(case.body, list | str):
            given = case.body if isinstance(case.body, dict) else {}
            case.body, case.media_type = {**given, "timeoutSeconds": 0}, "application/json"
        if not isinstance(case.body, dict):
            return
        starts = case.path in {"/v1/runs", "/v1/runs/dry-run"}
        if often and starts and isinstance(spec := case.body.get("spec"), dict):
            case.body |= {"cwd": str(self.home.work), "configEnv": {}, "overrides": {}}
            case.body["spec"] = {**spec, "agentId": "quick"}
        if often and case.path == "/v1/requests":
            case.body["runId"] = self.run


@contextmanager
def fuzzer(root: Path) -> Iterator[Fuzzer]:
    port = free_port()
    with live_home(root, config=f"[daemon]\nhttp_port = {port}\n{DEFAULTS}") as home:
        yield Fuzzer(home, port)


@pytest.mark.requirement("openapi:fuzz")
@pytest.mark.parametrize("calls_max", CALLS)
def test_odd_calls_get_the_answers_that_are_described_and_never_a_500(
    tmp_path: Path, calls_max: int
) -> None:
    with fuzzer(tmp_path) as odd:
        for operation in odd.operations():
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                odd.fuzz(operation, mode, calls_max)

        assert odd.home.is_up()
        assert not any('"level":"error"' in line for line in odd.home.log().splitlines())
        # The calls went deep: much was done, much was refused.
        assert sum(count for status, count in odd.answers.items() if status < 300) > odd.calls / 5
        assert {200, 201, 404, 422} <= odd.answers.keys()
