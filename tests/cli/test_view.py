"""``--json=FIELDS``, ``--jq`` and ``--format``: a part of a document, for scripts."""

import json
from typing import Final

import pytest
from tests.cli.cli_home import Home

from subagents.api.wire.message_answers import Inbox
from subagents.api.wire.run_answers import RunDetail, RunPage, RunResult, RunStatus
from subagents.api.wire.schedule_answers import ScheduleRow
from subagents.api.wire.wire_struct import document_of
from subagents.cli import output
from subagents.cli.view import View, shown, taken_from
from subagents.errors import UsageError

RUNS = {
    "runs": [
        {"runId": "r-1", "label": "one", "outcome": {"status": "ok"}, "depth": 1},
        {"runId": "r-2", "label": "two words", "outcome": None, "depth": 2},
    ],
    "total": 2,
}


@pytest.mark.requirement("cli:view")
@pytest.mark.parametrize(
    ("words", "kept", "view"),
    [
        (["list", "--json=runId, label"], ["list", "--json"], View(fields=("runId", "label"))),
        (["list", "--jq", ".runs"], ["list", "--json"], View(jq=".runs")),
        (["list", "--json", "--jq=."], ["list", "--json"], View(jq=".")),
        (["list", "--format", "{runId}"], ["list", "--json"], View(template="{runId}")),
        (["run", "--", "x", "--jq", "."], ["run", "--", "x", "--jq", "."], None),
        (["list", "--json", "runId,label"], ["list", "--json"], View(fields=("runId", "label"))),
        (["status", "--json", "r-1"], ["status", "--json", "r-1"], None),
        (["list", "--json"], ["list", "--json"], None),
    ],
)
def test_the_flags_are_taken_from_what_stands_before_two_dashes(
    words: list[str], kept: list[str], view: View | None
) -> None:
    assert taken_from(words) == (kept, view)


@pytest.mark.requirement("cli:view")
def test_where_a_task_may_follow_fields_need_their_sign() -> None:
    words = ["run", "--json", "a,b"]
    assert taken_from(words, ["--json"], is_separable=False) == (words, None)


@pytest.mark.requirement("cli:view")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list", "--json="], "--json= needs names of fields"),
        (["list", "--jq"], "--jq needs a value"),
        (["list", "--jq", ".", "--format", "x"], "give one of --json=FIELDS, --jq and --format"),
    ],
)
def test_half_a_flag_and_two_of_them_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        taken_from(words)


@pytest.mark.requirement("cli:view")
@pytest.mark.parametrize(
    ("view", "lines"),
    [
        (
            View(fields=("label", "outcome.status")),
            [
                [
                    {"label": "one", "outcome.status": "ok"},
                    {"label": "two words", "outcome.status": None},
                ]
            ],
        ),
        (
            View(template=r"{runId}\t{label} {{{outcome.status}}} {depth}"),
            ["r-1\tone {ok} 1", "r-2\ttwo words {-} 2"],
        ),
        (View(jq=".runs[] | .label"), ["one", "two words"]),
        (View(jq=".total"), [2]),
    ],
)
def test_of_a_list_each_row_is_shown_as_it_was_asked_for(view: View, lines: list[object]) -> None:
    assert list(shown(RUNS, view)) == lines


@pytest.mark.requirement("cli:view")
def test_what_is_a_run_is_one_row_unless_only_what_it_lists_has_the_field() -> None:
    run = {"runId": "r-1", "events": [{"seq": 1}, {"seq": 2}], "label": "one"}
    assert list(shown(run, View(fields=("label",)))) == [{"label": "one"}]
    assert list(shown(run, View(template="{seq}"))) == ["1", "2"]


@pytest.mark.requirement("cli:view")
def test_every_run_of_a_tree_is_a_row() -> None:
    tree = {"runs": [{"runId": "r-1", "children": [{"runId": "r-2", "children": []}]}]}
    assert list(shown(tree, View(template="{runId}"))) == ["r-1", "r-2"]


@pytest.mark.requirement("cli:view")
def test_one_of_many_may_lack_a_field() -> None:
    view = View(template="{seq} {phase}")
    assert list(shown({"seq": 3}, view, is_one_of_many=True)) == ["3 -"]


@pytest.mark.requirement("cli:view")
@pytest.mark.parametrize("flag", ["--format", "--jq"])
def test_a_flag_of_the_command_that_is_run_is_not_taken_for_ours(shared: Home, flag: str) -> None:
    done = shared.cli("run", "echo", "ps", flag, "x")
    assert (done.code, done.out) == (2, "")
    assert flag in done.err


@pytest.mark.requirement("cli:view")
@pytest.mark.parametrize(
    ("view", "message"),
    [
        (View(fields=("lable",)), "there is no field 'lable'; did you mean 'label'?"),
        (View(template="{what}"), "there is no field 'what'"),
        (View(fields=("outcome.statsu",)), "there is no field 'outcome.statsu'; did you mean"),
        (View(jq=".["), "--jq: "),
    ],
)
def test_what_cannot_be_shown_is_refused_with_what_can(view: View, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        list(shown(RUNS, view))
    assert refused.value.message.startswith(message)


NULLS: Final = {
    "a run": document_of(RunDetail(run_id="r-1")),
    "its status": document_of(RunStatus(run_id="r-1")),
    "its result": document_of(RunResult(run_id="r-1")),
    "an empty list": document_of(RunPage()),
    "an empty inbox": document_of(Inbox()),
    "a schedule": document_of(ScheduleRow()),
}


@pytest.mark.requirement("cli:view")
@pytest.mark.parametrize(
    ("answer", "name", "message"),
    [
        ("a run", "phaes", "there is no field 'phaes'; did you mean 'phase'?"),
        ("a run", "nope", "there is no field 'nope'"),
        ("a run", "outcome.stauts", "there is no field 'outcome.stauts'; did you mean 'status'?"),
        ("its status", "nope", "there is no field 'nope'"),
        ("its result", "artefacts", "there is no field 'artefacts'; did you mean 'artifacts'?"),
        ("an empty list", "lable", "there is no field 'lable'; did you mean 'label'?"),
        ("an empty inbox", "form", "there is no field 'form'"),
        ("a schedule", "zoen", "there is no field 'zoen'; did you mean 'zone'?"),
        ("a schedule", "times.dueAt", "there is no field 'times.dueAt'"),
    ],
)
def test_a_field_that_no_such_answer_has_is_refused_also_where_it_shows_nothing(
    answer: str, name: str, message: str
) -> None:
    for view in (View(fields=(name,)), View(template=f"{{{name}}}")):
        with pytest.raises(UsageError) as refused:
            list(shown(NULLS[answer], view))
        assert refused.value.message.startswith(message)
        hint = refused.value.hint or ""
        assert hint.startswith("there are: ")
        assert output.spoken(hint) == hint, "a field is no flag"


@pytest.mark.requirement("cli:view")
@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("a run", "outcome.status"),
        ("its status", "blockedReason"),
        ("its result", "runId"),
        ("an empty list", "outcome.status"),
        ("an empty inbox", "text"),
        ("a schedule", "nextAt"),
    ],
)
def test_a_field_that_is_null_or_of_no_row_is_no_typo(answer: str, name: str) -> None:
    found = list(shown(NULLS[answer], View(fields=(name,))))
    assert found in ([[]], [{name: None}], [{name: "r-1"}])


@pytest.mark.requirement("cli:view")
def test_of_a_document_that_is_none_of_the_daemons_an_empty_list_proves_nothing() -> None:
    with pytest.raises(UsageError, match="there is no field 'vesrion'; did you mean 'version'"):
        list(shown({"version": "1", "checks": []}, View(fields=("vesrion",))))
    assert list(shown({"stations": []}, View(fields=("name",)))) == [[]]
    run = {"runId": "r-1", "events": [{"seq": 1}], "steps": [{"n": 1}]}
    with pytest.raises(UsageError, match=r"'steps' in 'steps\.n' is a list"):
        list(shown(run, View(fields=("steps.n",))))


@pytest.mark.requirement("cli:view")
def test_a_script_gets_the_fields_it_names_and_errors_whole(shared: Home) -> None:
    ran = shared.ok("run", "echo hello", "--label", "seen", "--json=runId,result")
    (run,) = json.loads(ran.out)
    assert run["result"] == "hello"
    shown = shared.ok("list", "--now", run["runId"], "--format", "{label}: {outcome.status}").out
    assert shown == "seen: ok\n"
    labels = shared.ok("list", "--jq", ".runs[].label").out.splitlines()
    assert "seen" in labels
    (row,) = [
        each
        for each in json.loads(shared.ok("list", "--json=runId,agentId").out)
        if each["runId"] == run["runId"]
    ]
    assert row == {"runId": run["runId"], "agentId": "command"}
    wrong = shared.cli("list", "--json=lable")
    assert wrong.code == 2
    assert "did you mean 'label'?" in str(wrong.json["message"])
    assert shared.cli("list", "--now", "no-such-run", "--json=phase").json["code"] == "not_found"
