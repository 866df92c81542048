"""The pages for people: what they point to exists, and what they name is what the code has."""

import ast
import re
import shlex
import tomllib
from pathlib import Path
from typing import Final

import pytest
from scripts import config_reference, docs_site, requirements_page
from scripts import lifecycle_diagram as diagram
from scripts.spawn_flags import FLAGS

from subagents.cli import command_table
from subagents.config.keys import leaves
from subagents.domain.run.parameter import leaves as leaves_of
from subagents.domain.run.parameter import parameters
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import Contract

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
UNREAD: Final = requirements_page.PAGE
"""A page whose drawn part has names of tests, and no prose."""
WORDS: Final = (
    "run",
    "attempt",
    "session",
    "requester",
    "agent",
    "runtime",
    "lane",
    "signal",
    "event",
    "effect",
    "phase",
    "outcome",
    "report",
    "contract",
    "check",
    "verdict",
    "announcement",
    "inbox",
    "delivery",
    "courier",
    "request",
    "lease",
    "epoch",
    "sweep",
    "archive",
    "prune",
)
"""One word per thing: the glossary has them all."""

NOT_MODULES: Final = frozenset({"config.toml", "config/read", "telemetry.content"})
"""A file and a call of Codex, and a key of ours, that read like modules."""

_LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`([^`\n]+)`")


def text_of(page: Path) -> str:
    """As the site has it."""
    name = str(page.relative_to(ROOT))
    return page.read_text("utf-8") if name == UNREAD else docs_site.text_of(name)


def anchors(page: Path) -> set[str]:
    """The headings of a page as forges link to them."""
    titles = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def commands() -> set[str]:
    return {each.name for group in command_table.groups().values() for each in group}


def named_commands(text: str) -> set[str]:
    """Every ``subagents WORD …`` in code, cut to the longest command name that could be meant."""
    code = [body for _, body in _FENCE.findall(text)]
    code += _CODE.findall(_FENCE.sub("", text))
    found: set[str] = set()
    for line in "\n".join(code).splitlines():
        bare = line.split("  #")[0]
        for match in re.finditer(
            r"(?:^|[$;&(`] ?)subagents ([a-z][a-z-]*(?: [a-z][a-z-]*)?)", bare
        ):
            found.add(match[1])
    return found


@pytest.mark.requirement("docs:links")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_something_that_is_there(page: Path) -> None:
    for target in _LINK.findall(text_of(page)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}"


@pytest.mark.requirement("docs:commands")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_on_a_page_is_one_that_there_is(page: Path) -> None:
    known = commands() | {"help", "acme"}  # of the page about an extension of one's own
    if page.name == "CHANGELOG.md":
        known |= {*command_table.renamed()}
    for name in named_commands(text_of(page)):
        first = name.split()[0]
        assert name in known or first in known, f"{page.name} names subagents {name}"


@pytest.mark.requirement("docs:commands")
def test_the_readme_names_commands_at_all_and_flags_that_there_are() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert {"run", "demo", "spawn", "wait", "list", "init"} <= {
        name.split()[0] for name in named_commands(text)
    }
    source = "\n".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "src/subagents").glob("**/*.py")
    )
    made = {name.removeprefix("--") for flag in FLAGS for name in flag.names}
    for flag in set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text)) - made:
        if flag == "from":
            continue  # of uvx
        spelled = (f'"--{flag}"', f"{flag.replace('-', '_')}:", f"--{flag}")
        assert any(form in source for form in spelled), f"--{flag}"


@pytest.mark.requirement("docs:commands")
def test_the_make_targets_of_the_readme_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    named = set(re.findall(r"^make ([a-z-]+)", (ROOT / "README.md").read_text(), re.MULTILINE))

    assert {"demo", "test"} <= named <= targets


@pytest.mark.requirement("docs:readme")
def test_the_readme_begins_with_what_it_is_and_the_two_commands() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:24]

    assert first_screen[0] == "# subagents"
    assert any(line.startswith("make demo") for line in first_screen)
    assert any(line.startswith("make test") for line in first_screen)
    assert "It is for people who" in "\n".join(first_screen)


@pytest.mark.requirement("docs:readme")
def test_the_readme_fits_three_screens_of_eighty_columns() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()

    assert len(lines) <= 120
    assert [each for each in lines if len(each) > 80 and not each.startswith(("<!--", "!["))] == []


@pytest.mark.requirement("docs:readme")
def test_examples_in_toml_and_python_are_at_least_well_formed() -> None:
    checked = 0
    for page in PAGES:
        for language, body in _FENCE.findall(text_of(page)):
            if language == "toml":
                tomllib.loads(body)
                checked += 1
            elif language == "python":
                compile(
                    body, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                )  # a notebook's
                checked += 1
    assert checked >= 4


@pytest.mark.requirement("config:documented")
def test_the_reference_page_has_every_key_as_it_is_in_the_structs() -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")

    assert config_reference.drawn(page) == page
    assert {name for name, _ in leaves() if f"| `{name}` |" not in page} == set()


@pytest.mark.requirement("docs:lifecycle")
def test_the_lifecycle_page_is_the_transition_table() -> None:
    page = (ROOT / diagram.PAGE).read_text(encoding="utf-8")

    assert diagram.drawn(page) == page, "run `make docs`"
    for phase in Phase:
        assert f"| `{phase}` |" in page


@pytest.mark.requirement("docs:lifecycle")
def test_a_stale_lifecycle_page_is_noticed_and_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "lifecycle.md"
    current = (ROOT / diagram.PAGE).read_text(encoding="utf-8")
    copy.write_text(current.replace("| `queued` | `SlotGranted` | `spawning` |\n", ""))

    assert diagram.main(["--check", str(copy)]) == 1
    assert "make docs" in capsys.readouterr().err
    assert diagram.main([str(copy)]) == 0
    assert copy.read_text(encoding="utf-8") == current
    assert diagram.main(["--check", str(copy)]) == 0


@pytest.mark.requirement("docs:lifecycle")
def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="the page needs the lines"):
        diagram.drawn("# no markers here\n")


@pytest.mark.requirement("docs:glossary")
def test_the_glossary_has_every_word_once() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    defined = re.findall(r"^\| \*\*(.+?)\*\* \|", text, re.MULTILINE)

    assert [word for word in WORDS if word not in defined] == []
    assert len(defined) == len(set(defined))


@pytest.mark.requirement("docs:guarantees")
def test_every_test_that_a_page_names_is_there() -> None:
    proofs = [
        (page.name, file, name)
        for page in PAGES
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text_of(page))
    ]

    assert len(proofs) > 30
    for page_name, file, name in proofs:
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), f"{page_name}: {file}::{name}"


@pytest.mark.requirement("docs:threats")
def test_each_threat_is_a_lock_a_guardrail_or_open_and_what_is_not_open_has_a_test() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8").partition("## The TCP port")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith("| would ")
    ]

    assert len(rows) > 40
    for would, state, because, test in rows:
        assert state.startswith(("lock", "guardrail", "open")), would
        assert because, would
        assert test.startswith("`tests/") or state.startswith("open"), would


def source_named(name: str) -> Path | None:
    """The file or folder that a page or a docstring means; modules may be written with dots."""
    for place in (ROOT / "src" / "subagents", ROOT / "src", ROOT):
        if (place / name).exists():
            return place / name
    return None


def has_name(file: Path | None, name: str) -> bool:
    return file is not None and bool(re.search(rf"\b{name}\b", file.read_text("utf-8")))


@pytest.mark.requirement("docs:architecture")
def test_every_file_and_function_that_a_page_names_is_there() -> None:
    wrong = [
        f"{page.name} names {name}"
        for page in PAGES
        for name in re.findall(
            r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|sh|sql)|src/[a-z_/]+/)`", text_of(page)
        )
        if source_named(name) is None
    ]
    wrong += [
        f"{page.name} names {part} in {name}"
        for page in PAGES
        for name, inner in re.findall(r"`([a-z_/]+\.py)` \(((?:`[\w.]+`(?:, )?)+)", text_of(page))
        for part in re.findall(r"`([\w.]+)`", inner)
        if not has_name(source_named(name), part.rpartition(".")[2])
    ]

    assert not wrong, "\n".join(wrong)


@pytest.mark.requirement("docs:architecture")
def test_every_module_that_a_docstring_names_is_there() -> None:
    package = ROOT / "src" / "subagents"
    rooms = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    wrong = []
    for path in package.rglob("*.py"):
        for name in re.findall(r"``((?:[a-z_]+[/.])+[a-z_]+(?:\.py)?)``", path.read_text("utf-8")):
            parts = name.removesuffix(".py").replace("/", ".").split(".")
            if parts[0] not in rooms or name in NOT_MODULES:
                continue
            is_there = any(
                source_named(f"{'/'.join(parts[:length])}{ending}")
                for length in (len(parts), len(parts) - 1)
                for ending in (".py", "/__init__.py")
                if length > 1
            )
            if not is_there:
                wrong.append(f"{path.relative_to(package)} names {name}")

    assert not wrong, "\n".join(wrong)


@pytest.mark.requirement("docs:decisions")
def test_decisions_are_numbered_dated_and_say_what_they_cost() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("0*.md"))
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")

    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == sorted(set(numbers))
    for page in pages:
        text = text_of(page)
        assert re.search(r"^20\d\d-\d\d-\d\d · \w+", text, re.MULTILINE), page.name
        for part in ("Context", "Options", "Choice", "Cost"):
            assert f"\n## {part}\n" in text, f"{page.name}: {part}"
        title = re.fullmatch(rf"# {page.name[:4]} (.+: .+)", text.splitlines()[0])
        assert title, f"{page.name}: its title names a subject, a colon, and what holds for it"
        assert f"| [{page.name[:4]}]({page.name}) | {title[1]} |" in index, page.name
        prose = _FENCE.sub("", text).splitlines()
        assert [line for line in prose if len(line) >= 120 and line[0] != "|"] == [], page.name


@pytest.mark.requirement("docs:true-keys")
def test_configuration_keys_named_in_prose_exist() -> None:
    known = {name.rpartition(".")[2] for name, _ in leaves()}
    # `verification` is a spawn parameter, too.
    declared = parameters(Contract)
    known |= {each.name.rpartition(".")[2] for each in (*declared, *leaves_of(declared))}
    for page in PAGES:
        text = text_of(page)
        for name in re.findall(r"`(?:agents|daemon|retention|verification|lanes)\.([\w.]+)`", text):
            last = name.rpartition(".")[2]
            assert last in known or last in {"default", "defaults", "main", "command"}, name


@pytest.mark.requirement("docs:shell-lines")
def test_shell_examples_can_be_split_into_words() -> None:
    """A quote that is not closed would leave the reader's shell waiting."""
    for page in PAGES:
        for language, body in _FENCE.findall(text_of(page)):
            if language == "console":
                lines = re.findall(r"^\$ ((?:.*\\\n)*.*)$", body, re.MULTILINE)
                for line in lines:
                    assert shlex.split(line.replace("\\\n", " ")), f"{page.name}: {line}"
