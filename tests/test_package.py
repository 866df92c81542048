"""What is installed: its size, dependencies, bounds and pages, and no text that misses a file."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from scripts import man_page, web_page

from subagents.cli import command_table
from subagents.extensions.service.service_commands import unit_text

ROOT: Final = Path(__file__).parents[1]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
UNDOCUMENTED: Final = {
    "ruamel.yaml.composer": "ruamel.yaml",
    "ruamel.yaml.constructor": "ruamel.yaml",
    "uvicorn.protocols.http.httptools_impl": "uvicorn",
}
"""Modules that their packages do not promise to keep, and who has them."""
PROMISED: Final = (
    "a2a.*", "ag_ui.*",
    "apprise", "cronsim", "cryptography.*", "google.protobuf.*",
    "httptools", "httpx2", "jq", "json5",
    "jsonschema_rs", "msgspec", "msgspec.structs", "obstore.*", "opentelemetry.*", "platformdirs",
    "psutil",
    "psycopg.*",
    "pydantic_ai.*", "re2", "requests.*", "ruamel.yaml",
    "ruamel.yaml.error",
    "starlette.*", "temporalio.*", "tomlkit.*", "uvicorn",
)  # fmt: skip
WHEEL_BYTES_MAX: Final = 1_970_000
"""Without the page."""
PAGE_BYTES_MAX: Final = 210_000
"""Of its compressed files, which is what browsers load and a wheel carries."""
PAGE: Final = "subagents/extensions/web/static"
BASE_DEPENDENCIES_MAX: Final = 10


@cache
def imported() -> frozenset[str]:
    """Every module of others that ours import, also late."""
    names: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names.add(node.module)
    ours = {*sys.stdlib_module_names, "subagents"}
    return frozenset(each for each in names if each.partition(".")[0] not in ours)


def is_promised(module: str) -> bool:
    return any(
        module == each or (each.endswith(".*") and f"{module}.".startswith(each[:-1]))
        for each in PROMISED
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source distribution."""
    return build_in(ROOT, tmp_path_factory.mktemp("dist"))


def build_in(sources: Path, out: Path) -> Path:
    """The wheel and the source distribution of ``sources``, in ``out``."""
    argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(sources)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def wheel_of(built: Path) -> zipfile.ZipFile:
    (file,) = built.glob("*.whl")
    return zipfile.ZipFile(file)


@pytest.mark.requirement("package:bounds")
def test_a_package_whose_undocumented_modules_we_use_has_an_upper_bound() -> None:
    bounds = {re.split(r"[<>=;\[]", each)[0]: each for each in PROJECT["dependencies"]}
    for module in sorted(imported()):
        owner = UNDOCUMENTED.get(module)
        assert owner is not None or is_promised(module), f"{module}: which of the two is it?"
        assert owner is None or "<" in bounds[owner], f"{module}: give {owner} an upper bound"


@pytest.mark.requirement("package:declared")
def test_every_package_that_is_imported_is_declared_by_name() -> None:
    """What comes along with another today need not tomorrow."""
    declared = [*PROJECT["dependencies"]]
    providers = ("anthropic", "google", "openai")
    for extra in (
        "a2a",
        "ag-ui",
        "cluster",
        "jq",
        "notify",
        "objects",
        "openclaw",
        "otel",
        "postgres",
        "temporal",
        *providers,
    ):
        declared += PROJECT["optional-dependencies"][extra]
    names = {re.split(r"[<>=;\[]", each)[0].lower() for each in declared}
    owners = importlib.metadata.packages_distributions()

    for module in sorted(imported()):
        top = module.partition(".")[0]
        distributions = {each.lower().replace("_", "-") for each in owners.get(top, [top])}
        of_names = {"opentelemetry-api": "opentelemetry-sdk"}
        distributions |= {of_names[each] for each in distributions & of_names.keys()}
        assert distributions & names, f"{module} is imported, and {distributions} not declared"


@pytest.mark.requirement("package:bounds")
def test_what_is_named_as_undocumented_is_used() -> None:
    assert UNDOCUMENTED.keys() <= imported()


@pytest.mark.requirement("package:extras")
def test_each_provider_has_its_extra_and_llm_is_all_of_them() -> None:
    extras = PROJECT["optional-dependencies"]
    for provider in ("anthropic", "google", "openai"):
        assert extras[provider][0].startswith(f"pydantic-ai-slim[{provider}]")
    assert extras["llm"] == ["subagents[anthropic,google,openai]"]
    assert len(PROJECT["dependencies"]) <= BASE_DEPENDENCIES_MAX


@pytest.mark.requirement("package:man-page")
def test_the_manual_page_names_every_command_and_is_the_one_of_the_systemd_unit() -> None:
    page = man_page.page()

    assert (ROOT / man_page.PAGE).read_text("utf-8") == page, "run `make docs`"
    for group in command_table.groups().values():
        for command in group:
            assert f'.SS "subagents {man_page.escaped(command.name)}' in page
    assert "Documentation=man:subagents(1)" in unit_text()


@pytest.mark.requirement("package:wheel")
def test_the_wheel_has_the_manual_page_and_no_test_and_is_small(built: Path) -> None:
    (file,) = built.glob("*.whl")
    names = wheel_of(built).namelist()

    assert any(name.endswith(".data/data/share/man/man1/subagents.1") for name in names)
    assert not [n for n in names if re.search(r"(^|/)(tests?|bench|conftest|test_\w+\.py)(/|$)", n)]
    assert not [n for n in names if "simulat" in n]
    page = sum(each.compress_size for each in wheel_of(built).infolist() if PAGE in each.filename)
    assert file.stat().st_size - page < WHEEL_BYTES_MAX


@pytest.mark.requirement("package:page")
def test_both_packages_have_the_whole_page_which_is_small(built: Path) -> None:
    page = {
        str(each.relative_to(ROOT / "src")): each.stat().st_size
        for each in (ROOT / web_page.PLACE).rglob("*.gz")
    }
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/src/")[2] for name in archive.getnames()}

    assert f"{PAGE}/index.html.gz" in page
    assert page.keys() <= names & {*wheel_of(built).namelist()}
    assert sum(page.values()) < PAGE_BYTES_MAX


@pytest.mark.requirement("package:page")
def test_installing_from_a_checkout_runs_no_npm() -> None:
    """It must be quick, and work where there is none: no step of a build calls a program."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]

    assert build["build"].keys() == {"targets"}
    assert [*build["metadata"]["hooks"]] == ["fancy-pypi-readme"]
    assert not [each for each in build["build"]["targets"].values() if "hooks" in each]


@pytest.mark.requirement("package:links")
def test_the_page_of_the_package_index_has_no_link_that_leads_nowhere(built: Path) -> None:
    wheel = wheel_of(built)
    (name,) = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
    text = str(message_from_bytes(wheel.read(name)).get_payload())

    assert text.startswith("# subagents")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not link.startswith(("http", "#"))] == []


@pytest.mark.requirement("package:sdist")
def test_the_source_distribution_has_what_builds_and_explains_it(built: Path) -> None:
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"README.md", "LICENSE", "docs/README.md", "docs/subagents.1", "Makefile"} <= names


@pytest.mark.requirement("package:texts")
def test_no_text_for_users_points_to_a_file_that_is_not_installed() -> None:
    """Docstrings and comments are for those who have the sources."""
    wrong = []
    for file in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        wrong += [
            f"{file.relative_to(ROOT)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            and re.search(r"\bdocs/[\w/-]+\.md", node.value)
        ]
    assert wrong == []


@pytest.mark.requirement("package:version")
def test_the_installed_version_is_the_one_of_the_project() -> None:
    assert importlib.metadata.version("subagents") == PROJECT["version"]
