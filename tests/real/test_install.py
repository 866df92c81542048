"""What counts as installed; nothing is fetched here."""

import json
from pathlib import Path

import pytest
from tests.real import install

from subagents.extensions.conversation.versions_seen import newest_seen


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
def test_a_program_counts_when_it_was_installed_to_its_end_and_tells_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_REAL", str(tmp_path))
    assert install.found("codex") is None

    binary = laid_out(tmp_path, "codex", stamp=None)
    assert install.found("codex") is None

    stamp = json.dumps({install.package_of("codex"): "0.0.1"})
    (tmp_path / "codex" / install.STAMP).write_text(stamp)
    assert install.found("codex") == (str(binary),)
    assert install.version_here("codex") == "0.0.1"
    assert install.install("codex", "0.0.1") == (str(binary),)


@pytest.mark.requirement("real:install:pinned")
def test_every_program_has_one_exact_version_in_the_table() -> None:
    for name in install.PROGRAMS:
        assert install.package_of(name)
        assert newest_seen(name)[:1].isdecimal(), name


@pytest.mark.requirement("real:install:pinned")
def test_an_unknown_name_installs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main(["codec"]) == 2
    assert "codex" in capsys.readouterr().err
