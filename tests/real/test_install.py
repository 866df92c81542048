"""What counts as installed; nothing is fetched here."""

import json
from pathlib import Path

import pytest
from tests.real import install


def laid_out(root: Path, name: str, *, stamp: str | None) -> Path:
    """The files of an installed program."""
    row = install.PROGRAMS[name]
    binary = root / name / "node_modules" / row.binary.replace("*", "x")
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n")
    if stamp is not None:
        (root / name / install.STAMP).write_text(stamp)
    return binary


@pytest.mark.requirement("real:install:pinned")
def test_a_program_counts_in_its_own_version_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_REAL", str(tmp_path))
    row = install.PROGRAMS["codex"]
    assert install.found("codex") is None

    binary = laid_out(tmp_path, "codex", stamp=json.dumps({row.package: "0.0.1"}))
    assert install.found("codex") is None

    (tmp_path / "codex" / install.STAMP).write_text(json.dumps({row.package: row.version}))
    assert install.found("codex") == (str(binary),)


@pytest.mark.requirement("real:install:pinned")
def test_every_row_names_one_exact_version() -> None:
    for name, row in install.PROGRAMS.items():
        for version in (row.version, *row.more.values()):
            assert version[:1].isdecimal(), name


@pytest.mark.requirement("real:install:pinned")
def test_an_unknown_name_installs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main(["codec"]) == 2
    assert "codex" in capsys.readouterr().err
