"""What holds for every stream: however it is cut, looked at again, or meant to do harm."""

import json
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.alert_table import FOLDER, cases
from tests.call_counts import calls_of

from subagents.domain.alerts import detectors
from subagents.domain.alerts.detectors import Watch
from subagents.domain.alerts.detectors.shell import COMMAND_CHARS_MAX, here_document, steps_of
from subagents.domain.alerts.detectors.tool_failures import is_failure
from subagents.domain.run.alert import Alert, AlertRules
from subagents.domain.run.worker_output import (
    OUTPUT_CHARS_MAX,
    ApiError,
    ContextUse,
    LineType,
    OutputItem,
    PlanItem,
    PlanStatus,
    ToolUse,
)
from subagents.extensions.detectors.builds import result_of
from subagents.extensions.detectors.commits import commits_of
from subagents.extensions.detectors.shell_programs import expanded
from subagents.extensions.detectors.tool_findings import findings_of

RULES: Final = AlertRules()
START: Final = detectors.begin(Watch(), attempt=3, at_ms=1_000)

_COMMANDS: Final = st.sampled_from(
    [
        "make",
        "pytest -q | tail -3",
        "git commit -qm 'feat: x'",
        "git commit -m a && git push",
        "ls",
        "grep x y",
        "cd web && npm run build",
    ]
)
_OUTPUTS: Final = st.sampled_from(
    ["", "1 failed in 0.1s", "2 passed in 0.1s", "[main abc1234] feat: x", "boom"]
)
_PLANS: Final = st.lists(
    st.builds(
        PlanItem, text=st.sampled_from(["a", "b", "c", "d"]), status=st.sampled_from(PlanStatus)
    ),
    max_size=4,
).map(tuple)
_TOOLS: Final = st.builds(
    ToolUse,
    name=st.sampled_from(["Bash", "Edit", "Task", "TodoWrite"]),
    call_id=st.sampled_from([None, "c1", "c2", "c3"]),
    is_end=st.booleans(),
    command=st.none() | _COMMANDS,
    path=st.none() | st.just("src/a.py"),
    plan=st.none() | _PLANS,
    agents=st.sampled_from([0, 0, 0, 1, 2]),
    team=st.sampled_from([None, "crew"]),
    exit_code=st.sampled_from([None, 0, 1]),
    is_error=st.booleans(),
    output=_OUTPUTS,
)
_PIECES: Final = st.one_of(
    st.builds(
        OutputItem, type=st.sampled_from(LineType), text=st.sampled_from(["", "hello", "x y z"])
    ),
    st.builds(OutputItem, type=st.just(LineType.TOOL), text=st.just("tool"), tool=_TOOLS),
    st.builds(
        OutputItem,
        type=st.just(LineType.ERROR),
        text=st.just("e"),
        api_error=st.builds(ApiError, message=st.sampled_from(["429", "529 overloaded"])),
    ),
    st.builds(
        OutputItem,
        type=st.just(LineType.SYSTEM),
        context=st.builds(
            ContextUse, tokens=st.integers(0, 200_000), window=st.sampled_from([None, 200_000])
        ),
    ),
)
_STREAMS: Final = st.lists(_PIECES, max_size=40)


def in_batches(
    said: list[OutputItem], cuts: list[int], watch: Watch = START
) -> tuple[Watch, list[Alert], list[Watch]]:
    """Fold over the stream cut at these places; also every watch on the way."""
    alerts: list[Alert] = []
    on_the_way = [watch]
    places = [0, *sorted({cut % (len(said) + 1) for cut in cuts}), len(said)]
    for begin, end in pairwise(places):
        watch, news = detectors.observe(
            watch, said[begin:end], at_ms=5_000, rules=RULES, findings_of=findings_of
        )
        alerts += news
        on_the_way.append(watch)
    return watch, alerts, on_the_way


@pytest.mark.requirement("detectors:any-cut")
@settings(max_examples=400, deadline=None)
@given(said=_STREAMS, cuts=st.lists(st.integers(0, 40), max_size=6))
def test_however_the_stream_is_cut_the_alerts_and_the_watch_are_the_same(
    said: list[OutputItem], cuts: list[int]
) -> None:
    watch, alerts, _ = in_batches(said, [])
    cut_watch, cut_alerts, _ = in_batches(said, cuts)
    each_watch, each_alerts, _ = in_batches(said, list(range(41)))

    assert cut_alerts == alerts == each_alerts
    assert cut_watch == watch == each_watch


@pytest.mark.requirement("detectors:again")
@settings(max_examples=400, deadline=None)
@given(
    said=_STREAMS,
    cuts=st.lists(st.integers(0, 40), max_size=4),
    back=st.integers(0, 5),
    again=st.lists(st.integers(0, 40), max_size=4),
)
def test_looked_at_again_from_an_older_watch_the_same_is_told_under_the_same_keys(
    said: list[OutputItem], cuts: list[int], back: int, again: list[int]
) -> None:
    _, alerts, on_the_way = in_batches(said, cuts)
    older = on_the_way[back % len(on_the_way)]
    stored = msgspec.json.decode(msgspec.json.encode(older), type=Watch)
    _, repeated, _ = in_batches(said[older.pieces :], again, stored)

    known = {each.key: each for each in alerts}
    assert all(known.get(each.key) == each for each in repeated)
    assert len(known) == len(alerts)


@pytest.mark.requirement("detectors:again")
@settings(max_examples=200, deadline=None)
@given(said=_STREAMS, at_ms=st.integers(0, 10_000_000))
def test_what_time_says_is_said_once_and_when_it_was_announced(
    said: list[OutputItem], at_ms: int
) -> None:
    watch, _, _ = in_batches(said, [])
    due = detectors.next_due_ms(watch, RULES)
    assert due is not None
    assert detectors.elapsed(watch, now_ms=due - 1, rules=RULES) == (
        watch,
        (),
    )
    watch, alerts = detectors.elapsed(watch, now_ms=max(due, at_ms), rules=RULES)
    assert alerts
    once, more = detectors.elapsed(watch, now_ms=max(due, at_ms), rules=RULES)

    assert (once, more) == (watch, ())
    following = detectors.next_due_ms(watch, RULES)
    assert following is None or following > max(due, at_ms)


@pytest.mark.requirement("detectors:never-raises")
@settings(max_examples=500, deadline=None)
@given(
    command=st.text(max_size=80)
    | st.text(alphabet="make $(){}'\"`\\;&|<>#\n-c git commit", max_size=60),
    output=st.text(max_size=200),
    code=st.none() | st.integers(-300, 300),
    name=st.text(max_size=20),
)
def test_no_text_makes_a_detector_fail(
    command: str, output: str, code: int | None, name: str
) -> None:
    tool = ToolUse(
        name=name,
        command=command,
        output=output,
        exit_code=code,
        is_error=bool(code),
        path=output,
        input=command,
        team=name,
        agents=1,
        plan=(PlanItem(text=output),),
    )
    said = [
        OutputItem(type=LineType.TOOL, text=output, tool=tool),
        OutputItem(type=LineType.ERROR, api_error=ApiError(message=output, retry=name)),
        OutputItem(type=LineType.SYSTEM, context=ContextUse(tokens=code or 0, model=name)),
        OutputItem(type=LineType.TEXT, text=output),
    ]
    watch, alerts = detectors.observe(
        START, said, at_ms=2_000, rules=RULES, findings_of=findings_of
    )
    _, late = detectors.elapsed(watch, now_ms=10**9, rules=RULES)

    assert all(len(each.text) <= 160 and each.text.isprintable() for each in (*alerts, *late))
    json.dumps(msgspec.to_builtins(watch))


@pytest.mark.requirement("detectors:never-raises")
@given(st.text(alphabet="ab '\"$(){}`\\;&|<>#\n=-!", max_size=80))
def test_no_command_line_makes_the_reader_fail(line: str) -> None:
    for step in (*steps_of(line), *expanded(line)):
        assert step.words
        for word in step.words:
            here_document(word)


_HOSTILE: Final = {
    "dots": "." * OUTPUT_CHARS_MAX,
    "spaces": " " * OUTPUT_CHARS_MAX + "x",
    "digits": "1" * OUTPUT_CHARS_MAX,
    "counts": "1 failed, " * (OUTPUT_CHARS_MAX // 10),
    "counted": "=" * 100 + " 1 passed" * 3_000 + " in x",
    "paths": "a/b.c:1:" * (OUTPUT_CHARS_MAX // 8),
    "errors": "error: " * (OUTPUT_CHARS_MAX // 7),
    "lines": "1\n" * (OUTPUT_CHARS_MAX // 2),
    "empty": "\n" * OUTPUT_CHARS_MAX,
    "brackets": "[main " * (OUTPUT_CHARS_MAX // 6),
    "commits": "[a 1234567] x\n" * (OUTPUT_CHARS_MAX // 14),
    "failing": "FAILED a.py::b - c\n" * (OUTPUT_CHARS_MAX // 19),
    "words": "aaaaaaaaaaa." * (OUTPUT_CHARS_MAX // 12) + "Error",
    "colons": ":" * OUTPUT_CHARS_MAX,
    "everything": "FAIL Tests: error TS2304 1 failed ok passed in 1.0s *** [x] make: problem\n"
    * 430,
}
_LINES: Final = {
    "quotes": "make " + "'" * COMMAND_CHARS_MAX,
    "doubles": "make " + '"' * COMMAND_CHARS_MAX,
    "substitutions": "make " + "$(" * (COMMAND_CHARS_MAX // 2),
    "nested": "bash -c " * (COMMAND_CHARS_MAX // 8),
    "documents": "cat <<A\n" * (COMMAND_CHARS_MAX // 8),
    "strange documents": "".join(f"cat <<A{n}\n" for n in range(5_000)),
    "pipes": "make|" * (COMMAND_CHARS_MAX // 5),
    "groups": "(" * COMMAND_CHARS_MAX,
    "loops": "if make; then " * 4_000,
    "commits": "git commit -m x;" * 4_000,
    "wrappers": "sudo " * 13_000,
    "options": "make " + "-j " * 20_000,
    "backticks": "`" * COMMAND_CHARS_MAX,
    "backslashes": "make " + "\\" * COMMAND_CHARS_MAX,
    "sets": "set -e;" * 9_000,
    "piped groups": "(a|" * 20_000 + ")|" * 2_000,
}
_SECONDS_MAX: Final = 30.0
"""Of CPU time on a machine that others use as well; what is not linear takes minutes."""


@pytest.mark.requirement("detectors:linear")
@pytest.mark.parametrize("shape", _HOSTILE)
def test_no_output_takes_long_to_judge(shape: str) -> None:
    tool = ToolUse(
        name="Bash", command="make; git commit -m x", output=_HOSTILE[shape], is_error=True
    )
    began = time.process_time()
    result_of(tool)
    commits_of(tool)

    assert time.process_time() - began < _SECONDS_MAX


@pytest.mark.requirement("detectors:linear")
@pytest.mark.parametrize("shape", _LINES)
def test_no_command_line_takes_long_to_read(shape: str) -> None:
    tool = ToolUse(name="Bash", command=_LINES[shape], output="x", exit_code=1, is_error=True)
    began = time.process_time()
    result_of(tool)
    commits_of(tool)
    is_failure(tool)
    detectors.observe(
        START,
        [OutputItem(type=LineType.TOOL, tool=tool)],
        at_ms=1,
        rules=RULES,
        findings_of=findings_of,
    )

    assert time.process_time() - began < _SECONDS_MAX


@pytest.mark.requirement("detectors:cheap")
def test_plain_text_costs_next_to_nothing() -> None:
    """A million lines come in batches of two thousand: what is done is done once for each batch."""
    batch = [
        OutputItem(type=LineType.TEXT, text=f"line {number} " + "x" * 80) for number in range(2_000)
    ]
    watch, alerts = detectors.observe(
        START, batch, at_ms=2_000, rules=RULES, findings_of=findings_of
    )

    assert (watch.pieces, alerts) == (2_000, ())
    observe = partial(
        detectors.observe, watch, batch, at_ms=2_000, rules=RULES, findings_of=findings_of
    )
    assert calls_of(observe) < 100


@pytest.mark.requirement("detectors:cheap")
def test_recorded_outputs_are_judged_at_little_cost() -> None:
    found = cases(Path(__file__).parents[4] / FOLDER)

    def judge() -> None:
        for case in found.values():
            output = "\n".join(case.output)
            result_of(ToolUse(name="Bash", command=case.command, output=output))

    assert calls_of(judge) / len(found) < 500
