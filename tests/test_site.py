"""The site of docs/ has every page once, and its strict build refuses what leads nowhere."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import tomlkit
from scripts import docs_site, house
from scripts.llms_txt import pages_of

ROOT: Final = Path(__file__).parent.parent
CONFIG: Final = ROOT / "zensical.toml"
PROJECT: Final[dict[str, Any]] = tomllib.loads(CONFIG.read_text("utf-8"))["project"]


SECTIONS: Final[dict[str, Any]] = {
    name: pages for entry in PROJECT["nav"] for name, pages in entry.items()
}
FOR_USERS: Final = [
    page for name, pages in SECTIONS.items() if name != house.FOR_MAKERS for page in pages_of(pages)
]


def built(place: Path) -> subprocess.CompletedProcess[str]:
    """A strict build of the site whose configuration and docs/ lie in ``place``."""
    return subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.requirement("docs:site")
def test_every_page_is_in_the_navigation_once() -> None:
    there = sorted(str(each.relative_to(ROOT / "docs")) for each in (ROOT / "docs").rglob("*.md"))
    assert sorted(pages_of(PROJECT["nav"])) == there, f"{CONFIG.name}: nav"


@pytest.mark.requirement("docs:path")
def test_the_menu_leads_from_tutorials_over_tasks_and_concepts_to_the_reference() -> None:
    assert [*SECTIONS] == [
        *("Home", "Tutorials", "Tasks", "Concepts", "Reference"),
        house.FOR_MAKERS,
    ]
    assert len(SECTIONS["Tutorials"]) == 4
    assert len(SECTIONS["Tasks"]) == 11


@pytest.mark.requirement("docs:path")
@pytest.mark.parametrize("page", FOR_USERS)
def test_a_page_for_users_begins_with_what_it_is_for_and_ends_with_what_is_next(page: str) -> None:
    _, first, *_, last = (ROOT / "docs" / page).read_text("utf-8").strip().split("\n\n")

    assert not re.match(r"[#|!<-]|```", first), first
    assert 1 <= len(re.findall(r"[.!?](?=\s|$)", re.sub(r"`[^`]*`", "", first))) <= 2, first
    assert re.match(r"Next: .*\]\([^)]+\).*\.$", last, re.DOTALL), last


@pytest.mark.requirement("docs:site")
def test_the_site_has_each_page_and_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    docs_site.sources(tmp_path)

    done = built(tmp_path)

    assert done.returncode == 0, done.stdout
    for page in pages_of(PROJECT["nav"]):
        folder = re.sub(r"(^|/)README$", "", page.removesuffix(".md"))
        assert (tmp_path / "site" / folder / "index.html").exists(), page


@pytest.mark.requirement("docs:site")
def test_no_link_leaves_the_site_by_its_root() -> None:
    """The build takes ``../README.md`` for the page of that name in docs/."""
    root = ROOT / "docs"
    wrong = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in root.rglob("*.md")
        for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text("utf-8"))
        if "://" not in link and not (page.parent / link).resolve().is_relative_to(root)
    ]
    assert wrong == [], "name the file instead"


@pytest.mark.requirement("docs:site")
@pytest.mark.parametrize("link", ["nowhere.md", "README.md#nowhere", "../SECURITY.md"])
def test_the_build_ends_with_1_for_a_link_that_leads_nowhere(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/README.md").write_text(f"# Home\n\nSee [this]({link}).\n")
    project = {**PROJECT, "nav": ["README.md"]}
    (tmp_path / CONFIG.name).write_text(tomlkit.dumps({"project": project}))

    done = built(tmp_path)

    assert done.returncode == 1
    assert "does not exist" in done.stdout
