"""A machine with some agent programs."""

from pathlib import Path

import pytest

from subagents.config.layers import Config, load
from subagents.config.paths import Paths
from subagents.config.programs import program_catalog as programs


def machine(root: Path, *names: str, **variables: str) -> dict[str, str]:
    """A PATH with these programs and nothing else, and an empty home."""
    binaries = root / "bin"
    binaries.mkdir()
    for name in names:
        (binaries / name).write_text("#!/bin/sh\nexit 1\n")
        (binaries / name).chmod(0o755)
    home = {"HOME": str(root / "user"), "SUBAGENTS_HOME": str(root / "home")}
    return {"PATH": str(binaries), **home, **variables}


def loaded(text: str, environ: dict[str, str]) -> Config:
    paths = Paths.resolve(environ)
    paths.config_file.parent.mkdir(parents=True)
    paths.config_file.write_text(text, encoding="utf-8")
    return load(None, environ, paths=paths)


@pytest.fixture
def nothing_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "package_directory", lambda module: None)
