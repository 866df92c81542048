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


def packed() -> list[str]:
    return sorted(str(each.relative_to(web_page.PLACE)) for each in web_page.PLACE.rglob("*.*"))


@pytest.mark.requirement("page:build")
def test_each_file_is_there_compressed_and_what_was_there_before_is_gone(npm: Npm) -> None:
    npm('[ "$1" = ci ] || { mkdir -p dist/assets; echo new > dist/assets/a.js; }')
    web_page.PLACE.mkdir(parents=True)
    (web_page.PLACE / "old.js.gz").write_bytes(gzip.compress(b"old"))

    assert web_page.main([]) == 0
    assert packed() == ["assets/a.js.gz", web_page.DIGEST]
    file = web_page.PLACE / "assets" / "a.js.gz"
    assert gzip.decompress(file.read_bytes()) == b"new\n"
    other = gzip.compress(b"new\n", 0)
    file.write_bytes(other)
    assert web_page.main([]) == 0
    assert file.read_bytes() == other, "what another library compressed stays as it is"


@pytest.mark.requirement("page:build")
@pytest.mark.parametrize("step", ["ci", "run"])
def test_a_build_that_fails_says_so_and_leaves_the_page_that_was_there(
    npm: Npm, step: str, capfd: pytest.CaptureFixture[str]
) -> None:
    npm(f'[ "$1" != {step} ] || exit 3')
    web_page.PLACE.mkdir(parents=True)
    (web_page.PLACE / "old.js.gz").touch()

    for arguments in ([], ["--check"]):
        assert web_page.main(arguments) == 3
    assert f"npm {step}" in capfd.readouterr().err
    assert (web_page.PLACE / "old.js.gz").exists()


@pytest.mark.requirement("page:current")
@pytest.mark.parametrize("has_npm", [True, False])
def test_a_page_that_is_not_of_its_sources_is_refused_by_the_check(
    npm: Npm, monkeypatch: pytest.MonkeyPatch, *, has_npm: bool
) -> None:
    npm('[ "$1" = ci ] || { mkdir -p dist; cat src/*.ts > dist/a.js; }')
    (web_page.SOURCE / "src").mkdir()
    (web_page.SOURCE / "src" / "a.ts").write_text("one")
    assert web_page.main([]) == 0
    if not has_npm:
        monkeypatch.setenv("PATH", "/nowhere")
        assert web_page.main([]) == 1, "it cannot be built here"

    assert web_page.main(["--check"]) == 0
    (web_page.SOURCE / "src" / "a.ts").write_text("two")
    assert web_page.main(["--check"]) == 1
    (web_page.SOURCE / "src" / "a.ts").write_text("one")
    (web_page.SOURCE / "src" / "a.test.ts").touch()
    assert web_page.main(["--check"]) == 0, "a test is no part of the page"


@pytest.mark.requirement("page:current")
def test_the_page_in_the_package_is_of_the_sources_in_web() -> None:
    assert (web_page.PLACE / web_page.DIGEST).read_text() == web_page.digest(), "make web"
