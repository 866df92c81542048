"""Every block of the README and of docs/ that can be executed is, in the order of its page.

A block that cannot run here says why in a comment before it: ``<!-- not run: … -->``.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from scripts.llms_txt import pages_of
from tests.bubblewrap import NO_SANDBOX
from tests.cli.cli_home import Home, temporary_home
from tests.page_blocks import PAGES, ROOT, Block, blocks

import subagents
from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.extensions.plans.plan_file import read_plan

ELSEWHERE: Final = {
    "docs/howto/a2a.md": "tests/e2e/test_a2a.py",
    "docs/howto/contracts.md": "tests/cli/runs/test_contract_examples.py",
    "docs/howto/mcp-clients.md": "tests/e2e/test_mcp_clients.py",
    "docs/howto/notebooks.md": "tests/client/test_notebook_page.py",
    "docs/howto/own-extension.md": "tests/test_own_extension_page.py",
    "docs/howto/own-runtime.md": "tests/extensions/conversation/test_own_runtime_page.py",
    "docs/howto/postgresql.md": "tests/e2e/test_postgres_page.py",
}
"""Pages whose programs a test of their own runs, and that test."""
FILES: Final = {"README.md": ("reduce.py", "transitions.py")}
"""Pages whose reader stands in a directory of somebody's work; all others make what they use."""
IN_CONFIGURATION: Final = {"SUBAGENTS_CLUSTER__SECRET": "a-secret-of-this-test-alone"}
"""What a reader has set who keeps it out of files."""
NOT_RUN_MAX: Final = 27
"""Blocks that say why they are not run; may only become fewer."""
TASKS: Final = [
    page
    for entry in tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    for page in pages_of(entry.get("Tasks", ()))
]
SANDBOXED: Final = "--isolation sandbox"
"""A block with this needs bubblewrap."""
TIMEOUT_S: Final = 60
READER: Final = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "me"), ("EMAIL", "me@localhost"))
}
"""What git knows of whoever reads."""
END: Final = "ended with "

_VARYING: Final = (
    (re.compile(r"r-[0-9a-z]{10}"), "ID"),
    (re.compile(r"\d+(\.\d+)?(ms|s)\b"), "TIME"),
    (re.compile(r"(?<=\s)\d+(?=\s)"), "N"),
    (re.compile(r"\s+"), " "),
)


def runnable(page: Path) -> list[Block]:
    is_elsewhere = str(page.relative_to(ROOT)) in ELSEWHERE
    return [
        block
        for block in blocks(page)
        if block.why_not is None and not (is_elsewhere and block.language in ("sh", "python"))
    ]


def commands(body: str) -> Iterator[tuple[str, list[str]]]:
    """What is typed in a ``console`` block, and what it is said to print."""
    for typed in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        match = re.match(r"((?:.*\\\n)*.*)\n?([\s\S]*)", typed)
        assert match is not None
        yield match[1], [line for line in match[2].splitlines() if line.strip()]


def plain(line: str) -> str:
    """The line without what differs from run to run."""
    for pattern, word in _VARYING:
        line = pattern.sub(word, f" {line} ")
    return line.strip()


def execute(home: Home, argv: list[str], where: str) -> str:
    done = subprocess.run(
        argv,
        cwd=home.work,
        env={**home.env(), **READER, "SOCKET": str(Paths.resolve(home.env()).socket)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{where}\n{done.stdout}"
    return done.stdout


def run_console(home: Home, block: Block, where: str) -> None:
    """As a person types it: what fails is followed by a look at its exit code."""
    pairs = list(commands(block.body))
    # Each command says how it ended, and leaves that to the next one.
    ends = f"status=$?; echo; echo {END}$status; (exit $status)"
    script = "".join(f"{typed}\n{ends}\n" for typed, _ in pairs)
    parts = re.split(
        rf"^{END}(\d+)$", execute(home, ["sh", "-c", f"{script}:"], where), flags=re.MULTILINE
    )
    looked = [*(typed.startswith("echo $?") for typed, _ in pairs[1:]), False]
    for (typed, said), output, code, is_looked_at in zip(
        pairs, parts[::2], parts[1::2], looked, strict=False
    ):
        assert code == "0" or is_looked_at, f"{where}: {typed}\n{output}"
        printed = [plain(line) for line in output.splitlines()]
        missing = [line for line in said if plain(line) not in printed]
        assert not missing, f"{where}: {typed}\ndoes not print {missing}, but\n{output}"


def check_toml(home: Home, block: Block, where: str) -> None:
    """A plan becomes the file that it names; a configuration is the directory's from here on."""
    if "[[runs]]" in block.body:
        named = re.match(r"# (\S+\.toml)", block.body)
        file = home.work / (named[1] if named else "plan.toml")
        file.write_text(block.body)
        assert read_plan(file), where
        return
    if "[mcp_servers." in block.body:  # counts in the user's own file alone
        load(home.work, home.env(), paths=Paths.resolve(home.env()), user_text=block.body)
        return
    file = home.work / "subagents.toml"
    file.write_text(block.body)
    config = load(home.work, {**home.env(), **IN_CONFIGURATION}, paths=Paths.resolve(home.env()))
    assert file in config.files, where


@pytest.mark.requirement("docs:blocks")
@pytest.mark.parametrize(
    "page", [each for each in PAGES if runnable(each)], ids=lambda each: str(each.relative_to(ROOT))
)
def test_every_block_of_a_page_runs_in_the_order_of_the_page(tmp_path: Path, page: Path) -> None:
    left_out = []
    with temporary_home(tmp_path) as home:
        for name in FILES.get(str(page.relative_to(ROOT)), ()):
            (home.work / name).write_text(f"print('{name}')\n")
        begin = ["commit", "-qm", "begin", "--allow-empty"]
        for argv in (["init", "-q"], ["add", "-A"], begin):
            execute(home, ["git", *argv], "the repository in which a reader stands")
        for block in runnable(page):
            where = f"{page.relative_to(ROOT)}:{block.line}"
            if NO_SANDBOX is not None and SANDBOXED in block.body:
                left_out.append(where)
                continue
            match block.language:
                case "toml":
                    check_toml(home, block, where)
                case "python" if file := re.match(r"# (\S+\.py)\n", block.body):
                    (home.work / file[1]).write_text(block.body)
                case "python":
                    execute(home, [sys.executable, "-c", block.body], where)
                case "sh":
                    execute(home, ["sh", "-ec", block.body], where)
                case _:
                    run_console(home, block, where)
    if left_out:
        pytest.skip(f"{', '.join(left_out)} cannot run: {NO_SANDBOX}")


@pytest.mark.requirement("docs:path")
@pytest.mark.parametrize("page", TASKS)
def test_a_task_shows_what_came_of_it_so_that_it_is_compared(page: str) -> None:
    said = [
        line
        for block in blocks(ROOT / "docs" / page)
        if block.language == "console" and block.why_not is None
        for _, lines in commands(block.body)
        for line in lines
    ]
    assert said or "assert " in (ROOT / "docs" / page).read_text("utf-8"), page


@pytest.mark.requirement("docs:blocks")
def test_blocks_that_are_not_run_say_why_and_become_fewer() -> None:
    not_run = [block for page in PAGES for block in blocks(page) if block.why_not is not None]

    assert all(block.why_not and len(block.why_not) > 10 for block in not_run)
    assert len(not_run) == NOT_RUN_MAX, "lower the number when you made one run"
    for page, test in ELSEWHERE.items():
        assert (ROOT / page).exists()
        assert (ROOT / test).exists()


FROM_AN_INDEX: Final = re.compile(
    r"(?:pip|pipx|uv tool|uv pip) (?:install|inject) [^\n|`]*?(?<![-_/\w.])subagents(?![-_/\w.])"
    r"|subagents==|uvx subagents"
)


@pytest.mark.requirement("docs:installable")
@pytest.mark.parametrize(
    ("text", "is_false"),
    [
        ("uv tool install subagents", True),
        ("pipx install subagents", True),
        ("pip install subagents", True),
        ("pip install 'subagents[otel]'", True),
        ("- run: uv tool install 'subagents==0.1.0'", True),
        ("uvx subagents demo", True),
        ("uv tool install .", False),
        ("uvx --from . subagents demo", False),
        ("pip install claude-agent-sdk", False),
        ("installed beside subagents (`pip install claude-agent-sdk`)", False),
        ("uv tool install git+https://HOST/OWNER/subagents", False),
        ("`uv tool upgrade subagents`", False),
        ("uv tool uninstall subagents         # or: pipx uninstall subagents", False),
    ],
)
def test_what_would_be_taken_from_a_package_index_is_recognised(
    text: str, *, is_false: bool
) -> None:
    assert bool(FROM_AN_INDEX.search(text)) is is_false


@pytest.mark.requirement("docs:installable")
def test_no_page_installs_from_a_package_index_what_is_on_none_yet() -> None:
    found = [
        f"{page.relative_to(ROOT)}: {match[0]}"
        for page in [*PAGES, *(ROOT / "src").rglob("*.md")]
        if "decisions" not in page.parts
        for match in FROM_AN_INDEX.finditer(page.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.requirement("docs:readme")
def test_the_readme_counts_the_names_that_the_package_exports() -> None:
    assert f"exports {len(subagents.__all__)} names" in PAGES[0].read_text("utf-8")
