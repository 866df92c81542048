"""What the page is built from: types of the API, tested pure parts, no other host."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

WEB: Final = Path("web")
BOUND_S: Final = 120
HOST: Final = re.compile(r'"resolved": "(https?://[^/"]+)')


def run(*argv: str) -> "subprocess.CompletedProcess[str]":
    if shutil.which(argv[0]) is None or not (WEB / "node_modules").is_dir():
        pytest.skip("the page's tools are not installed: make web")
    env = {**os.environ, "PYTHON": sys.executable}
    return subprocess.run(
        argv, cwd=WEB, env=env, capture_output=True, text=True, timeout=BOUND_S, check=False
    )


@pytest.mark.requirement("web:typed")
def test_the_page_fits_the_types_of_the_api() -> None:
    """They are written anew from the OpenAPI document, as each build of the page does."""
    for argv in (("node", "scripts/types.mjs"), ("node", "node_modules/.bin/tsc", "--noEmit")):
        done = run(*argv)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.requirement("web:pure-parts")
def test_the_pure_parts_of_the_page_hold() -> None:
    done = run("node", "node_modules/vitest/vitest.mjs", "run")
    assert done.returncode == 0, done.stdout


@pytest.mark.requirement("web:packages")
def test_packages_come_from_the_public_registry_alone() -> None:
    lock = (WEB / "package-lock.json").read_text(encoding="utf-8")
    assert set(HOST.findall(lock)) == {"https://registry.npmjs.org"}
