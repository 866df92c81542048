"""What the items of a text are, and the run that is made of each."""

import pytest

from subagents.domain.run.spec import Artifact, Budget, Contract, ForEach, RunSpec
from subagents.errors import UsageError
from subagents.extensions.plans.result_items import from_map, items_of, specs_of

EACH = ForEach(run="find")


@pytest.mark.requirement("for-each:list")
@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["a", 1, {"b": null}]\n', ["a", 1, {"b": None}]),
        ('```json\n["a\\nb"]\n```\n', ["a\nb"]),
        ("a b\r\n\n - c\n", ["a b", " - c"]),
        ('{"a": 1}\n{"a": 2}\n{no\n', [{"a": 1}, {"a": 2}, "{no"]),
        ("[]", []),
        (" \n", []),
    ],
)
def test_a_list_is_json_or_lines(text: str, items: list[object]) -> None:
    assert items_of(text) == items


@pytest.mark.requirement("for-each:list")
@pytest.mark.parametrize("text", ['[1, "', "[" * 100_000, '{"items": [1]}', "[1] and more"])
def test_what_begins_like_json_and_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="list"):
        items_of(text)


@pytest.mark.requirement("for-each:quoting")
def test_an_item_is_one_word_of_commands_and_itself_elsewhere() -> None:
    contract = Contract(
        artifacts=(Artifact(path="${{ item.to.name }}", schema={"const": "${{ item }}"}),),
        commands=("test -s ${{item.to.name}}",),
    )
    spec = RunSpec(
        task="x ${{ item.n }} ${{ item.to }} ${{ item{/} }} $${{ item }} ${HOME} {}",
        label="fix",
        for_each=EACH,
        gate="sure?",
        budget=Budget(max_runs=3),
        depends_on=("find",),
        verification=contract,
        retry_count=2,
    )
    item = {"n": 1, "to": {"name": "$(id); 'x'"}}
    (run,) = specs_of(spec, [item])

    whole = """'{"n":1,"to":{"name":"$(id); '"'"'x'"'"'"}}'"""
    name = """'$(id); '"'"'x'"'"''"""
    to = """'{"name":"$(id); '"'"'x'"'"'"}'"""
    assert run.task == f"x 1 {to} {whole} ${{{{ item }}}} ${{HOME}} {{}}"
    assert run.verification == Contract(
        artifacts=(Artifact(path="$(id); 'x'", schema={"const": "${{ item }}"}),),
        commands=(f"test -s {name}",),
    )
    assert (run.label, run.retry_count) == ("fix 1", 2)
    assert (run.for_each, run.gate, run.budget, run.depends_on) == (None, None, None, ())


@pytest.mark.requirement("for-each:list")
def test_every_item_has_a_label_of_its_own() -> None:
    spec = RunSpec(task="${{ item }}", label="t", for_each=EACH)
    items = ["a", "a", "b\nc", {"x": "y", "z": [1]}, True]
    assert [run.label for run in specs_of(spec, items)] == [
        "t a",
        "t a #2",
        "t b c",
        "t y",
        "t true",
    ]


@pytest.mark.requirement("for-each:list")
@pytest.mark.parametrize(
    ("task", "items", "message"),
    [
        ("fix", ["a"], "no ${{ item }}"),
        ("${{ item }} ${{ vars.x }}", ["a"], "${{ vars.x }} is neither item nor item.NAME"),
        ("${{ item }} ${{ ", ["a"], "is neither item"),
        ("${{ item.a.b }}", [{"a": {"c": 1}}], "item 1 has no 'b'; it has c"),
        ("${{ item.a }}", [{"a": 1}, "b"], "item 2 has no 'a'; it has no fields"),
        ("${{ item }}", ["a", " "], "item 2 is empty"),
        ("${{ item }}", ["a\0"], "NUL"),
        ("${{ item }}", ["a"] * 51, "51 items, more than for_each.max_items = 50"),
        ("${{ item }}", ["x" * 300_000], "item 1: task must be at most"),
    ],
)
def test_what_makes_no_run_is_said(task: str, items: list[object], message: str) -> None:
    with pytest.raises(UsageError) as found:
        specs_of(RunSpec(task=task, for_each=EACH), items)
    assert message in str(found.value)


@pytest.mark.requirement("for-each:map")
def test_the_placeholders_of_map_stand_for_an_item_too() -> None:
    contract = Contract(artifacts=(Artifact(path="{.}.out"),))
    spec = RunSpec(task="wc {} {/} ${{ x }}", for_each=EACH, verification=contract)
    (run,) = specs_of(from_map(spec), ["a/b c.py"])
    assert run.task == "wc 'a/b c.py' 'b c.py' ${{ x }}"
    assert run.verification == Contract(artifacts=(Artifact(path="a/b c.out"),))
    assert run.label == "a/b c.py"
