"""`make web`: what is built goes into the package whole, or not at all."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import web_page

Npm = Callable[[str], None]


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Npm:
    """Puts a program called npm in the place of the real one, which needs its registry."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    (tmp_path / "web" / "dist").mkdir(parents=True)

    def install(script: str) -> None:
        program = tmp_path / "bin" / "npm"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return install


@pytest.mark.requirement("page:build")
def test_each_file_is_there_compressed_and_what_was_there_before_is_gone(npm: Npm) -> None:
    npm('[ "$1" = ci ] || { mkdir -p dist/assets; echo new > dist/assets/a.js; }')
    web_page.PLACE.mkdir(parents=True)
    (web_page.PLACE / "old.js.gz").touch()

    assert web_page.main([]) == 0
    files = [each for each in web_page.PLACE.rglob("*") if each.is_file()]
    assert files == [web_page.PLACE / "assets" / "a.js.gz"]
    assert gzip.decompress(files[0].read_bytes()) == b"new\n"
    first = files[0].read_bytes()
    assert web_page.main([]) == 0
    assert files[0].read_bytes() == first, "the same build is the same bytes"


@pytest.mark.requirement("page:build")
@pytest.mark.parametrize("step", ["ci", "run"])
def test_a_build_that_fails_says_so_and_leaves_the_page_that_was_there(
    npm: Npm, step: str, capfd: pytest.CaptureFixture[str]
) -> None:
    npm(f'[ "$1" != {step} ] || exit 3')
    web_page.PLACE.mkdir(parents=True)
    (web_page.PLACE / "old.js.gz").touch()

    for arguments in ([], ["--if-possible"]):
        assert web_page.main(arguments) == 3
    assert f"npm {step}" in capfd.readouterr().err
    assert (web_page.PLACE / "old.js.gz").exists()


@pytest.mark.requirement("page:build")
def test_without_npm_it_is_said_what_is_missing_and_only_a_package_goes_on(
    npm: Npm, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    assert web_page.main([]) == 1
    assert "npm is not here" in capfd.readouterr().err
    assert web_page.main(["--if-possible"]) == 0
    assert "the package has none" in capfd.readouterr().err
