"""What lies below a directory is read, and no link leads out of it, whenever it is made."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.engine.verification.checking import before, check, failed, verify

from subagents.domain.rules.path_patterns import pattern_of
from subagents.domain.run.spec import Artifact, Contract
from subagents.engine.verification.file_trees import matching_files
from subagents.engine.verification.work_root import FileFault, WorkRoot, below, real

SECRET = "hunter2hunter2"


class Place(NamedTuple):
    work: Path
    outside: Path

    @property
    def pinned(self) -> WorkRoot:
        return WorkRoot(str(self.work), os.path.realpath(self.work))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path / "work", tmp_path / "outside")
    for each in found:
        (each / "sub").mkdir(parents=True)
    (found.outside / "sub" / "a").write_text(SECRET)
    (found.work / "sub" / "a").write_text("fine")
    return found


def text_of(root: WorkRoot, path: str) -> str:
    with os.fdopen(root.open_regular(path)) as file:
        return file.read()


@pytest.mark.requirement("verification:path:inside")
@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("sub", "link/a"),
        ("./sub//../sub/.", "link/./a"),
        ("{work}/sub", "link/a"),
        ("{work}", "link/sub/a"),
        ("sub/a", "link"),
        ("sub/a", "sub/../link"),
    ],
)
def test_links_that_stay_inside_are_followed(place: Place, target: str, path: str) -> None:
    (place.work / "link").symlink_to(target.format(work=place.work))
    for root in (place.pinned, WorkRoot(str(place.work))):
        assert text_of(root, path) == "fine"
        assert text_of(root, f"{place.work}/{path}") == "fine"


@pytest.mark.requirement("verification:path:inside", "contract:agents-stay-inside")
@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("../outside/sub", "link/a"),
        ("{outside}/sub", "link/a"),
        ("{outside}/sub/a", "link"),
        ("{work}/../outside/sub", "link/a"),
        ("{work}-more/a", "link"),
        ("sub/../../outside/sub/a", "link"),
    ],
)
def test_a_link_that_leads_out_is_refused_and_says_nothing_of_what_is_there(
    place: Place, target: str, path: str
) -> None:
    (place.work / "link").symlink_to(target.format(work=place.work, outside=place.outside))
    for root in (place.pinned, WorkRoot(str(place.work))):
        with pytest.raises(FileFault, match=r"leaves the workspace through a symlink$"):
            root.open_regular(path)
        assert not root.is_file(path)


@pytest.mark.requirement("contract:agents-stay-inside")
@pytest.mark.parametrize(
    "path", ["{outside}/sub/a", "../outside/sub/a", "{work}//{outside}/sub/a", "{work}/../x", "/"]
)
def test_nothing_else_leads_out_of_the_root_of_an_agents_contract(place: Place, path: str) -> None:
    named = path.format(work=place.work, outside=place.outside)
    with pytest.raises((FileFault, FileNotFoundError)):
        place.pinned.open_regular(named)
    assert not place.pinned.is_file(named)


def swaps(
    monkeypatch: pytest.MonkeyPatch, name: str, looks: int, swap: Callable[[], object]
) -> None:
    """Do it right after the given number of looks at what ``name`` is."""
    real = os.stat
    seen: list[str] = []

    def look(path: str, *, dir_fd: int, follow_symlinks: bool) -> os.stat_result:
        found = real(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        seen.append(path)
        if seen.count(name) == looks:
            monkeypatch.undo()
            swap()
        return found

    monkeypatch.setattr("subagents.engine.verification.work_root.os.stat", look)


@pytest.mark.requirement("contract:agents-stay-inside")
@pytest.mark.parametrize(("name", "looks"), [("sub", 1), ("a", 1), ("a", 2)])
@pytest.mark.parametrize("is_pinned", [True, False])
def test_a_link_put_in_between_look_and_open_is_not_followed(
    place: Place, monkeypatch: pytest.MonkeyPatch, name: str, looks: int, *, is_pinned: bool
) -> None:
    there = place.work / "sub" if name == "sub" else place.work / "sub" / "a"
    there_outside = place.outside / there.relative_to(place.work)

    def swap() -> None:
        there.rename(place.work / "aside")
        there.symlink_to(there_outside)

    root = place.pinned if is_pinned else WorkRoot(str(place.work))
    swaps(monkeypatch, name, looks, swap)
    with pytest.raises((OSError, FileFault)):
        root.open_regular("sub/a")
    assert there.is_symlink()


@pytest.mark.requirement("contract:agents-stay-inside")
@pytest.mark.parametrize("moved", ["work", "above/work"])
def test_a_root_that_was_replaced_by_a_link_since_the_spawn_is_no_root(
    tmp_path: Path, moved: str
) -> None:
    work, outside = tmp_path / "above/work", tmp_path / "outside"
    for each in (work, outside, outside / "work"):
        each.mkdir(parents=True)
        (each / "a").write_text("x")
    root = WorkRoot(str(work), os.path.realpath(work))
    replaced = tmp_path / "above" if moved == "above/work" else work
    replaced.rename(tmp_path / "aside")
    replaced.symlink_to(outside)
    with pytest.raises(FileFault, match="replaced by a link since the spawn"):
        root.open_regular("a")
    contract = Contract(must_not_change=("**",))
    reason = verify(contract, work, pinned=root.pinned).checks[0].reason
    assert "replaced by a link" in str(reason)


@pytest.mark.requirement("contract:agents-stay-inside")
def test_a_root_that_was_named_by_a_link_is_the_directory_it_led_to(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "name").symlink_to("work")
    root = WorkRoot(str(tmp_path / "name"), real(str(tmp_path / "name")))
    assert text_of(root, "sub/a") == "fine"
    (tmp_path / "name").unlink()
    (tmp_path / "name").symlink_to("outside")
    assert text_of(root, "sub/a") == "fine"


@pytest.mark.requirement("contract:agents-stay-inside")
def test_a_root_whose_name_is_no_utf_8_is_the_one_that_is_stored(tmp_path: Path) -> None:
    odd = tmp_path / "caf\udce9"
    odd.mkdir()
    (odd / "a").write_text("fine")
    (odd / "link").symlink_to(odd / "a")
    (tmp_path / "name").symlink_to(odd)
    stored = real(str(tmp_path / "name")).encode().decode()

    assert text_of(WorkRoot(str(tmp_path / "name"), stored), "link") == "fine"


@pytest.mark.requirement("contract:agents-stay-inside", "contract:patterns")
def test_a_pattern_lists_nothing_behind_a_link(place: Place) -> None:
    (place.work / "link").symlink_to(place.outside)
    (place.work / "sub" / "inner").symlink_to(place.outside)
    assert matching_files(pattern_of("**", field="path"), place.pinned) == [
        "link",
        "sub/a",
        "sub/inner",
    ]
    for text in ("link/**", "sub/inner/sub/*"):
        with pytest.raises(FileFault):
            matching_files(pattern_of(text, field="path"), place.pinned)
        contract = Contract(must_change=(text,))
        found = verify(contract, place.work, baseline=before(contract, place.work)).checks[0]
        assert failed(found) == f"{text} leaves the workspace through a symlink"


@pytest.mark.requirement("verification:path:inside")
def test_links_cost_a_bounded_number_of_steps(place: Place) -> None:
    (place.work / "self").symlink_to("self")
    (place.work / "far").symlink_to("/".join(["sub/.."] * 500))
    for number in range(30):
        (place.work / f"far{number}").symlink_to(f"far{number - 1}" if number else "far")
    (place.work / "many").symlink_to("/".join(["far"] * 39))
    for path in ("self", "many/sub/a"):
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            place.pinned.open_regular(path)


@pytest.mark.requirement("contract:agents-stay-inside")
def test_what_is_below_is_seen_through_links_and_beside_names_that_begin_alike(
    tmp_path: Path,
) -> None:
    for name in ("a", "ab"):
        (tmp_path / name / "sub").mkdir(parents=True)
    (tmp_path / "a" / "out").symlink_to("../ab")
    root = [str(tmp_path / "a")]
    assert below(str(tmp_path / "a"), root, real) == os.path.realpath(tmp_path / "a")
    assert below(str(tmp_path / "a/sub"), root, real) == os.path.realpath(tmp_path / "a/sub")
    assert below(str(tmp_path / "a/sub/../later"), root, real) is not None
    for outside in ("ab", "a/out", "a/out/sub", "a/../ab", "."):
        assert below(str(tmp_path / outside), root, real) is None
    assert below(str(tmp_path), ["/"], real) is not None
    assert below(str(tmp_path), [], real) is None


@pytest.mark.requirement("verification:no-values")
@pytest.mark.parametrize(
    "rule",
    [
        {"type": "number"},
        {"enum": ["x"]},
        {"const": "x"},
        {"pattern": "^x"},
        {"maxLength": 1},
        {"minLength": 99},
        {"not": {"type": "string"}},
        {"anyOf": [{"type": "null"}, {"const": 1}]},
        {"oneOf": [{"type": "string"}, {"minLength": 1}]},
        {"if": True, "then": {"const": 1}},
        {"items": {"const": 1}},
        {"uniqueItems": True},
        {"maxItems": 1},
        {"contains": {"const": 1}},
        {"prefixItems": [{}], "items": False},
        {"unevaluatedItems": False},
        {"$schema": "http://json-schema.org/draft-07/schema#", "contentEncoding": "base64"},
        False,
    ],
)
def test_what_a_schema_finds_wrong_quotes_nothing_of_the_file(
    tmp_path: Path,
    rule: dict[str, object] | bool,  # noqa: FBT001
) -> None:
    value = f'["{SECRET}", "{SECRET}"]' if "tems" in str(rule) or "contains" in str(rule) else None
    (tmp_path / "a.json").write_text(f'{{"key": {value or f"{SECRET!r}"}}}'.replace("'", '"'))
    schema: dict[str, object] = {"properties": {"key": rule}}
    reason = failed(check(Artifact(path="a.json", schema=schema), tmp_path))
    assert reason.startswith("File a.json does not match its schema at /key")
    assert SECRET not in reason


@pytest.mark.requirement("verification:no-values")
@pytest.mark.parametrize("text", [f'{{"a": {SECRET}}}', f'["{SECRET}", nul]', f'"{SECRET}\xff"'])
def test_what_is_no_json_is_not_quoted(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_bytes(text.encode("latin-1"))
    reason = failed(check(Artifact(path="a", json=True), tmp_path))
    assert "is not valid JSON" in reason
    assert SECRET not in reason
