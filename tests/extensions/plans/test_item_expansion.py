"""Each item becomes a run, whatever characters it has."""

import pytest

from subagents.domain.run.spec import Artifact, Contract, RunSpec
from subagents.errors import UsageError
from subagents.extensions.plans.item_expansion import runs_of_items


@pytest.mark.requirement("map:items")
def test_placeholders_stand_for_the_item_and_its_parts() -> None:
    spec = RunSpec(task="x {} {.} {/} {//} {/.} {#}")
    assert runs_of_items(spec, ["a/b.tar.gz", "c"]) == (
        RunSpec(task="x a/b.tar.gz a/b.tar b.tar.gz a b.tar {#}", label="a/b.tar.gz"),
        RunSpec(task="x c c c . c {#}", label="c"),
    )


@pytest.mark.requirement("map:quoting")
def test_an_item_is_one_word_of_commands_and_itself_elsewhere() -> None:
    contract = Contract(artifacts=(Artifact(path="{}.out"),), commands=("test -s {}.out",))
    spec = RunSpec(task="wc {}", label="count {}", verification=contract, tags=("{}",))
    (run,) = runs_of_items(spec, ["a; rm -rf {}"])
    assert run.task == "wc 'a; rm -rf {}'"
    assert run.label == "count a; rm -rf {}"
    assert run.tags == ("a; rm -rf {}",)
    assert run.verification == Contract(
        artifacts=(Artifact(path="a; rm -rf {}.out"),), commands=("test -s 'a; rm -rf {}'.out",)
    )


@pytest.mark.requirement("map:items")
def test_a_schema_keeps_its_braces() -> None:
    contract = Contract(artifacts=(Artifact(path="a", schema={"const": "{}"}),))
    (run,) = runs_of_items(RunSpec(task="x {}", verification=contract), ["i"])
    assert run.verification == contract


@pytest.mark.requirement("map:items")
def test_every_run_has_a_label_of_its_own() -> None:
    labels = [run.label for run in runs_of_items(RunSpec(task="{}", label="t"), ["a", "a", "b"])]
    assert labels == ["t a", "t a #2", "t b"]
    long = [run.label or "" for run in runs_of_items(RunSpec(task="{}"), ["x" * 90 + "1", "2"])]
    assert [len(each) for each in long] == [80, 1]
    assert long[0].startswith("…x")
    assert long[0].endswith("x1")


@pytest.mark.requirement("map:items")
@pytest.mark.parametrize(
    ("task", "items", "message"),
    [
        ("wc {}", [], "there are no items"),
        ("wc", ["a"], "the task has no {} where the item belongs"),
        ("wc {}", ["a", " "], "' ' is no item"),
        ("wc {}", ["x"] * 1001, "at most 1000 items, not 1001"),
        ("wc {}", ["x" * 300_000], "task for 'xxx"),
    ],
)
def test_what_cannot_be_mapped_is_said(task: str, items: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        runs_of_items(RunSpec(task=task), items)
    assert message in refused.value.message
    assert len(refused.value.message) < 1000
