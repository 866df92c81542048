"""Code of the same version is told apart where it is another, and nowhere else."""

import os
import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from subagents import version
from subagents.version import __version__


def package_in(site: Path) -> Any:
    """The module as it is in a package of its own there."""
    place = site / "subagents" / "version.py"
    if not place.exists():
        place.parent.mkdir(parents=True)
        copy(version.__file__, place)
    spec = spec_from_file_location("other_version", place)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed(site: Path, digest: str, *others: str) -> Any:
    record = site / f"subagents-{__version__}.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("\n".join((*others, f"subagents/cli/main.py,sha256={digest},9")))
    return package_in(site)


@pytest.mark.requirement("cli:version-skew")
def test_an_installed_package_is_told_by_its_files_not_by_how_it_was_installed(
    tmp_path: Path,
) -> None:
    daemon = f"{installed(tmp_path / 'a', 'one').code_stamp()} 0"
    again = ("../bin/subagents,sha256=x,1", "subagents/cli/__pycache__/main.cpython-311.pyc,,")
    assert not installed(tmp_path / "b", "one", *again).is_other_code(daemon)
    assert installed(tmp_path / "c", "two").is_other_code(daemon)
    assert not package_in(tmp_path / "unknown").is_other_code(daemon)
    assert not installed(tmp_path / "d", "two").is_other_code("")


@pytest.mark.requirement("cli:version-skew")
def test_a_checkout_is_told_by_a_commit_that_changed_its_code_since(tmp_path: Path) -> None:
    def commit(name: str) -> None:
        (tmp_path / name).write_text("text")
        for line in ("init -q", "add .", f"-c user.name=x -c user.email=x commit -qm {name}"):
            subprocess.run(["git", *line.split()], cwd=tmp_path, check=True, timeout=30)

    source = tmp_path / "src"
    package_in(source)
    commit("README.md")
    started = (source / "subagents" / "version.py").stat().st_mtime_ns // 10**6 + 1
    daemon = f"{package_in(source).code_stamp()} {started}"
    assert not package_in(source).is_other_code(daemon)
    commit("NEWS.md")
    assert not package_in(source).is_other_code(daemon)
    os.utime(source / "subagents" / "version.py", (started, started))
    assert package_in(source).is_other_code(daemon)
