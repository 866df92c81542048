"""What others did to the files of a contract while a run was not at work is not its work."""

from typing import Final

import pytest

from subagents.domain.run.baseline import Baseline, Fingerprint, rebased

Files = dict[str, str]


def looked(files: Files, *unknown: str) -> Baseline:
    found = tuple(
        Fingerprint(path=path, size=len(text), sha256=text, modified_ns=0)
        for path, text in files.items()
    )
    return Baseline(files=found, unknown=unknown)


CASES: Final[dict[str, tuple[Files, Files, Files, Files]]] = {
    "nobody did anything": ({"a": "1"}, {"a": "1"}, {"a": "1"}, {"a": "1"}),
    "its own new file counts": ({}, {"a": "1"}, {"a": "1"}, {}),
    "its own change counts": ({"a": "1"}, {"a": "2"}, {"a": "2"}, {"a": "1"}),
    "its own removal counts": ({"a": "1"}, {}, {}, {"a": "1"}),
    "another's new file must change": ({}, {}, {"a": "1"}, {"a": "1"}),
    "another's change must change": ({"a": "1"}, {"a": "1"}, {"a": "2"}, {"a": "2"}),
    "another's removal is no change of its own": ({"a": "1"}, {"a": "1"}, {}, {}),
    "what another wrote over its own must change": ({}, {"a": "1"}, {"a": "2"}, {"a": "2"}),
    "what another removed of its own must come again": ({"a": "0"}, {"a": "1"}, {}, {}),
    "what another put back must change": ({"a": "1"}, {"a": "2"}, {"a": "1"}, {"a": "1"}),
    "each file for itself": (
        {"a": "1", "b": "1"},
        {"a": "2", "b": "1", "c": "1"},
        {"a": "2", "b": "2", "c": "1", "d": "1"},
        {"a": "1", "b": "2", "d": "1"},
    ),
}


@pytest.mark.requirement("contract:fresh-after-waiting")
@pytest.mark.parametrize(("before", "left", "now", "expected"), CASES.values(), ids=CASES)
def test_a_file_must_differ_from_what_others_made_of_it(
    before: Files, left: Files, now: Files, expected: Files
) -> None:
    found = rebased(looked(before), looked(left), looked(now))
    assert {each.path: each.sha256 for each in found.files} == expected
    assert found.unknown == ()


@pytest.mark.requirement("contract:fresh-after-waiting")
@pytest.mark.parametrize("which", range(3))
def test_of_a_file_that_could_not_be_read_once_nothing_is_said(which: int) -> None:
    looks = [looked({"a": "1", "b": "1"}) for _ in range(3)]
    looks[which] = looked({"b": "1"}, "a")
    found = rebased(*looks)
    assert (found.unknown, [each.path for each in found.files]) == (("a",), ["b"])


@pytest.mark.requirement("contract:fresh-after-waiting")
def test_a_file_that_was_only_touched_is_as_it_was() -> None:
    before = Fingerprint(path="a", size=1, sha256="1", modified_ns=1)
    touched = Fingerprint(path="a", size=1, sha256="1", modified_ns=2)
    found = rebased(Baseline(), Baseline(files=(before,)), Baseline(files=(touched,)))
    assert found.files == ()
