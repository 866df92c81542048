"""Files are counted, compared and named by patterns, within bounds."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.engine.verification.checking import before, verify

from subagents.domain.rules.path_patterns import pattern_of
from subagents.domain.run.baseline import Baseline
from subagents.domain.run.outcome import Check, Verdict
from subagents.domain.run.spec import Artifact, Contract
from subagents.engine.verification import verifier
from subagents.engine.verification.contract_files import Abandoned
from subagents.engine.verification.file_trees import TREE_FILES_MAX, TooManyFiles, matching_files
from subagents.engine.verification.work_root import WorkRoot


def put(place: Path, *names: str, text: str = "x") -> None:
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)


def digests(place: Path, contract: Contract) -> tuple[str | None, str | None]:
    found = verify(contract, place, compares=True)
    return found.files_found, found.files_left


@pytest.mark.requirement("retry:until-verified-sameness")
def test_files_are_the_same_as_before_if_none_was_added_deleted_or_given_other_content(
    tmp_path: Path,
) -> None:
    put(tmp_path, "a.py", "src/b.py", "__pycache__/b.pyc", ".git/index", "results.xml")
    contract = Contract(artifacts=(Artifact(path="results.xml", junit=True),))
    first, left = digests(tmp_path, contract)
    assert first is not None
    assert left == first

    # Written again, of a cache, of git, and a report of tests: no work.
    put(tmp_path, "a.py")
    put(tmp_path, "__pycache__/b.pyc", ".git/index", "results.xml", text="other")
    assert digests(tmp_path, contract)[0] == first
    put(tmp_path, "src/b.py", text="y")
    changed, _ = digests(tmp_path, contract)
    (tmp_path / "src/b.py").unlink()
    assert len({first, changed, digests(tmp_path, contract)[0]}) == 3


@pytest.mark.requirement("retry:until-verified-sameness")
def test_what_the_checks_write_themselves_is_no_change_of_the_work(tmp_path: Path) -> None:
    contract = Contract(commands=("date +%N > written; false",))
    found, left = digests(tmp_path, contract)

    assert found != left
    assert digests(tmp_path, contract)[0] == left


@pytest.mark.requirement("retry:until-verified-sameness")
def test_whether_too_many_files_changed_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier, "DIGEST_FILES_MAX", 1)
    put(tmp_path, "a", "b")

    assert digests(tmp_path, Contract(artifacts=(Artifact(path="c"),))) == (None, None)


def check_after(place: Path, contract: Contract, work: Callable[[], object]) -> Check:
    baseline = before(contract, place)
    work()
    return verify(contract, place, baseline=baseline).checks[0]


@pytest.mark.requirement("contract:patterns")
def test_caches_and_links_to_directories_are_passed_over_unless_they_are_named(
    tmp_path: Path,
) -> None:
    put(tmp_path, "a.py", "src/b.py", "src/__pycache__/c.py", ".git/d.py", "node_modules/e.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    every = pattern_of("**/*.py", field="path")
    assert matching_files(every, WorkRoot(str(tmp_path))) == ["a.py", "src/b.py"]
    named = pattern_of("node_modules/*.py", field="path")
    assert matching_files(named, WorkRoot(str(tmp_path))) == ["node_modules/e.py"]
    assert matching_files(pattern_of("a.py", field="path"), WorkRoot(str(tmp_path))) == ["a.py"]
    assert matching_files(pattern_of("no/*.py", field="path"), WorkRoot(str(tmp_path))) == []


@pytest.mark.requirement("contract:patterns")
def test_what_is_too_much_to_be_known_is_not_held_against_the_work(tmp_path: Path) -> None:
    put(tmp_path, *map(str, range(TREE_FILES_MAX + 1)))
    with pytest.raises(TooManyFiles):
        matching_files(pattern_of("*", field="path"), WorkRoot(str(tmp_path)))
    with pytest.raises(Abandoned):
        matching_files(
            pattern_of("*", field="path"), WorkRoot(str(tmp_path)), abandoned=lambda: True
        )
    contract = Contract(must_not_change=("*",))
    found = verify(contract, tmp_path, baseline=before(contract, tmp_path))
    assert found.verdict is Verdict.COULD_NOT_CHECK


@pytest.mark.requirement("contract:patterns")
def test_what_is_known_of_a_file_whose_name_is_no_utf_8_can_be_stored(tmp_path: Path) -> None:
    odd = tmp_path / "caf\udce9.txt"
    odd.write_text("x")
    files = Artifact(path="*.txt", min_files=1, json=True)
    contract = Contract(artifacts=(files,), must_not_change=("**",))
    stored = msgspec.json.decode(msgspec.json.encode(before(contract, tmp_path)), type=Baseline)

    same = verify(contract, tmp_path, baseline=stored)
    odd.write_text("other, and no JSON")
    other = verify(contract, tmp_path, baseline=stored)

    assert [each.passed for each in same.checks] == [False, True]
    assert "is not valid JSON" in str(other.checks[0].reason)
    assert str(other.checks[1].reason).endswith(".txt modified")
    assert msgspec.json.encode(other)


@pytest.mark.requirement("contract:glob-count")
@pytest.mark.parametrize(
    ("made", "told"),
    [
        (["out/1.csv", "out/2.csv"], None),
        (["out/1.csv"], "Files out/*.csv: 1 found, minimum 2 required"),
        (
            ["out/1.csv", "out/2.csv", "out/3.csv", "out/4.csv"],
            "Files out/*.csv: 4 found, maximum 3",
        ),
    ],
)
def test_files_are_counted(tmp_path: Path, made: list[str], told: str | None) -> None:
    contract = Contract(artifacts=(Artifact(path="out/*.csv", min_files=2, max_files=3),))
    check = check_after(tmp_path, contract, lambda: put(tmp_path, *made))
    assert check.reason == told


@pytest.mark.requirement("contract:glob-count", "contract:fresh")
def test_old_files_are_not_counted_and_each_new_one_must_be_as_asked(tmp_path: Path) -> None:
    put(tmp_path, "1.json", "2.json", text="old, and no JSON")
    contract = Contract(artifacts=(Artifact(path="*.json", min_files=2, json=True),))
    check = check_after(tmp_path, contract, lambda: put(tmp_path, "3.json", text="{"))
    assert check.reason is not None
    few, _, bad = check.reason.rpartition("; ")
    said = (
        "Files *.json: 1 found, minimum 2 required (2 were there before the run and did not change"
    )
    assert few.startswith(f"{said}; to accept")
    assert bad.startswith("File 3.json is not valid JSON")


@pytest.mark.requirement("contract:scope")
@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("touch", None),
        ("edit", "Changed in tests, which must not change: tests/a modified"),
        ("delete", "Changed in tests, which must not change: tests/a deleted"),
        ("add", "Changed in tests, which must not change: tests/sub/new added"),
    ],
)
def test_what_must_not_change_is_watched_by_content(
    tmp_path: Path, work: str, told: str | None
) -> None:
    put(tmp_path, "tests/a", "src/b")
    works: dict[str, Callable[[], object]] = {
        "touch": lambda: os.utime(tmp_path / "tests/a", (1, 1)),
        "edit": lambda: put(tmp_path, "tests/a", text="y"),
        "delete": (tmp_path / "tests/a").unlink,
        "add": lambda: put(tmp_path, "tests/sub/new"),
    }
    check = check_after(tmp_path, Contract(must_not_change=("tests",)), works[work])
    assert check.reason == told


ODD: Final[dict[str, Callable[[Path], object]]] = {
    "a link that leads nowhere": lambda path: path.symlink_to("nowhere"),
    "a link out": lambda path: path.symlink_to("/etc/hostname"),
    "a link to a directory outside": lambda path: path.symlink_to("/etc"),
    "a link to a directory inside": lambda path: path.symlink_to("../c"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a FIFO": os.mkfifo,
}
"""What lies in trees and is no file that can be read inside; each made at a path."""


@pytest.mark.requirement("contract:scope")
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_what_is_no_readable_file_is_compared_as_well(
    tmp_path: Path, odd: Callable[[Path], object]
) -> None:
    put(tmp_path, "b/f", "c/d")
    path = tmp_path / "b" / "x"
    odd(path)

    def other() -> None:
        path.unlink()
        path.symlink_to("other")

    changed, kept = Contract(must_change=("b",)), Contract(must_not_change=("b",))
    assert check_after(tmp_path, kept, lambda: None).reason is None
    assert check_after(tmp_path, changed, lambda: None).reason == "Nothing changed in b"
    assert check_after(tmp_path, kept, other).evidence == "b/x modified"
    assert check_after(tmp_path, kept, path.unlink).evidence == "b/x deleted"
    assert check_after(tmp_path, kept, lambda: odd(path)).evidence == "b/x added"


@pytest.mark.requirement("contract:scope")
def test_what_must_change_is_named_when_it_did_not(tmp_path: Path) -> None:
    put(tmp_path, "src/a")
    contract = Contract(must_change=("src/**",))
    idle = check_after(tmp_path, contract, lambda: put(tmp_path, "src/a"))
    assert (idle.target, idle.reason) == ("src/**", "Nothing changed in src/**")
    done = check_after(tmp_path, contract, lambda: put(tmp_path, "src/new"))
    assert (done.passed, done.evidence) == (True, "src/new added")


@pytest.mark.requirement("contract:newer-than")
def test_a_file_can_be_asked_to_be_newer_than_another(tmp_path: Path) -> None:
    put(tmp_path, "built", "source")
    os.utime(tmp_path / "source", (2000, 2000))
    contract = Contract(artifacts=(Artifact(path="built", newer_than="source"),))
    assert verify(contract, tmp_path).checks[0].passed
    os.utime(tmp_path / "built", (2000, 2000))
    assert verify(contract, tmp_path).checks[0].reason == "File built is not newer than source"
    (tmp_path / "source").unlink()
    told = "File built cannot be compared with source: No such file or directory"
    assert verify(contract, tmp_path).checks[0].reason == told


@pytest.mark.requirement("contract:regex")
@pytest.mark.parametrize(
    ("regex", "told"),
    [
        (r"^version = \d+\.\d+$", None),
        (r"^version$", "File a has no match for /^version$/"),
        ("(x+x+)+y", "File a has no match for /(x+x+)+y/"),
    ],
)
def test_a_pattern_is_looked_for_line_by_line_in_linear_time(
    tmp_path: Path, regex: str, told: str | None
) -> None:
    put(tmp_path, "a", text="name = x\nversion = 1.2\n" + "x" * 5000)
    contract = Contract(artifacts=(Artifact(path="a", regex=regex),))
    assert verify(contract, tmp_path).checks[0].reason == told


@pytest.mark.requirement("contract:regex")
def test_a_large_text_is_searched_in_a_process_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, "a", text="x\n" * 600_000 + "end")
    contract = Contract(artifacts=(Artifact(path="a", regex="^end$"),))
    assert verify(contract, tmp_path).checks[0].passed
