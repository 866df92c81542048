"""Which commands build, test, lint or check types: one table per way to tell.

A program counts by its name, by its first argument, by the script or target it is told to run, or
by the flag that makes it check instead of change. What only prints (``--help``), installs, cleans,
formats, serves or watches is no build.

Source: 4-observability §4 (``build_result``).
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from subagents.domain.alerts.detectors.shell_lines import Step
from subagents.domain.alerts.detectors.shell_programs import IS_SCRIPT, program_of


class Work(StrEnum):
    """What a command does, as a sentence about it begins."""

    BUILD = "Build"
    TEST = "Tests"
    LINT = "Lint"
    TYPES = "Type check"
    CHECK = "Checks"
    """Several of these."""


class Build(NamedTuple):
    """A command that builds or tests."""

    work: Work
    family: str
    """Its results are compared with each other."""
    tool: str


_ALWAYS: Final[Mapping[Work, str]] = {
    Work.TEST: (
        "pytest unittest nose2 jest vitest mocha ava tap tape jasmine karma cypress wdio rspec"
        " phpunit pest ctest bats prove behave robot gotestsum ginkgo elm-test busted cucumber"
        " minitest pytest-3 lit"
    ),
    Work.LINT: (
        "flake8 pylint pyflakes pycodestyle pydocstyle bandit vulture lint-imports eslint oxlint"
        " xo standard stylelint tslint jshint rubocop standardrb reek phpcs shellcheck hadolint"
        " yamllint markdownlint markdownlint-cli2 actionlint tflint golangci-lint staticcheck"
        " revive clang-tidy cppcheck cpplint luacheck swiftlint ktlint detekt sqlfluff"
        " ansible-lint codespell djlint htmlhint commitlint doc8 interrogate next-lint knip credo"
        " deptry semgrep"
    ),
    Work.TYPES: (
        "mypy pyright basedpyright pytype pyre vue-tsc svelte-check phpstan psalm sorbet dmypy"
        " pyrefly"
    ),
    Work.BUILD: (
        "tsc gcc g++ cc c++ clang clang++ rustc javac kotlinc scalac ghc scons webpack rollup"
        " esbuild ant samu tsup javadoc xcodebuild nvcc gfortran dmd ldc2 valac rspack py_compile"
        " compileall"
    ),
    Work.CHECK: "tox nox earthly",
}
_SUBCOMMANDS: Final[Mapping[str, Mapping[Work, str]]] = {
    "cargo": {
        Work.BUILD: "build b rustc doc install",
        Work.TEST: "test t nextest bench miri tarpaulin llvm-cov",
        Work.LINT: "clippy deny",
        Work.TYPES: "check c",
    },
    "go": {Work.BUILD: "build install", Work.TEST: "test", Work.LINT: "vet"},
    "dotnet": {Work.BUILD: "build publish pack msbuild", Work.TEST: "test vstest"},
    "swift": {Work.BUILD: "build", Work.TEST: "test"},
    "bazel": {Work.BUILD: "build", Work.TEST: "test coverage"},
    "buck2": {Work.BUILD: "build", Work.TEST: "test"},
    "zig": {Work.BUILD: "build build-exe build-lib build-obj", Work.TEST: "test"},
    "stack": {Work.BUILD: "build", Work.TEST: "test"},
    "cabal": {Work.BUILD: "build v2-build new-build", Work.TEST: "test v2-test"},
    "dune": {Work.BUILD: "build", Work.TEST: "test runtest"},
    "lake": {Work.BUILD: "build", Work.TEST: "test"},
    "gleam": {Work.BUILD: "build check", Work.TEST: "test"},
    "crystal": {Work.BUILD: "build", Work.TEST: "spec"},
    "nim": {Work.BUILD: "c cpp js compile", Work.TYPES: "check"},
    "mix": {Work.BUILD: "compile", Work.TEST: "test", Work.LINT: "credo", Work.TYPES: "dialyzer"},
    "rebar3": {Work.BUILD: "compile", Work.TEST: "eunit ct", Work.TYPES: "dialyzer"},
    "sbt": {Work.BUILD: "compile package assembly", Work.TEST: "test testOnly testQuick"},
    "lein": {Work.BUILD: "compile uberjar", Work.TEST: "test"},
    "flutter": {Work.BUILD: "build", Work.TEST: "test", Work.LINT: "analyze"},
    "dart": {Work.BUILD: "compile", Work.TEST: "test", Work.LINT: "analyze"},
    "forge": {Work.BUILD: "build", Work.TEST: "test"},
    "hardhat": {Work.BUILD: "compile", Work.TEST: "test"},
    "anchor": {Work.BUILD: "build", Work.TEST: "test"},
    "elm": {Work.BUILD: "make"},
    "rails": {Work.TEST: "test test:system test:all"},
    "artisan": {Work.TEST: "test"},
    "manage.py": {Work.TEST: "test", Work.LINT: "check"},
    "setup.py": {Work.BUILD: "build build_ext bdist_wheel sdist", Work.TEST: "test"},
    "django-admin": {Work.TEST: "test", Work.LINT: "check"},
    "deno": {
        Work.TEST: "test bench",
        Work.LINT: "lint",
        Work.TYPES: "check",
        Work.BUILD: "compile bundle",
    },
    "bun": {Work.TEST: "test", Work.BUILD: "build"},
    "node": {Work.TEST: "--test", Work.LINT: "--check -c"},
    "bash": {Work.LINT: "-n"},
    "ruby": {Work.LINT: "-c -wc"},
    "php": {Work.LINT: "-l"},
    "vite": {Work.BUILD: "build"},
    "next": {Work.BUILD: "build", Work.LINT: "lint"},
    "nuxt": {Work.BUILD: "build generate", Work.TYPES: "typecheck"},
    "nuxi": {Work.BUILD: "build generate", Work.TYPES: "typecheck"},
    "astro": {Work.BUILD: "build", Work.TYPES: "check"},
    "remix": {Work.BUILD: "build vite:build"},
    "gatsby": {Work.BUILD: "build"},
    "parcel": {Work.BUILD: "build"},
    "expo": {Work.BUILD: "export"},
    "ng": {Work.BUILD: "build", Work.TEST: "test e2e", Work.LINT: "lint"},
    "react-scripts": {Work.BUILD: "build", Work.TEST: "test"},
    "vue-cli-service": {Work.BUILD: "build", Work.TEST: "test:unit test:e2e", Work.LINT: "lint"},
    "storybook": {Work.BUILD: "build"},
    "playwright": {Work.TEST: "test"},
    "biome": {Work.LINT: "check lint ci format"},
    "dprint": {Work.LINT: "check"},
    "ruff": {Work.LINT: "check"},
    "ty": {Work.TYPES: "check"},
    "pyre-check": {Work.TYPES: "check"},
    "pre-commit": {Work.LINT: "run"},
    "prek": {Work.LINT: "run"},
    "lefthook": {Work.LINT: "run"},
    "hatch": {Work.TEST: "test", Work.BUILD: "build", Work.LINT: "fmt"},
    "uv": {Work.BUILD: "build"},
    "poetry": {Work.BUILD: "build", Work.LINT: "check"},
    "pdm": {Work.BUILD: "build"},
    "flit": {Work.BUILD: "build"},
    "maturin": {Work.BUILD: "build develop"},
    "wasm-pack": {Work.BUILD: "build", Work.TEST: "test"},
    "docker": {Work.BUILD: "build buildx"},
    "podman": {Work.BUILD: "build"},
    "docker-compose": {Work.BUILD: "build"},
    "cmake": {Work.BUILD: "--build"},
    "meson": {Work.BUILD: "compile", Work.TEST: "test"},
    "terraform": {Work.LINT: "validate"},
    "tofu": {Work.LINT: "validate"},
    "helm": {Work.LINT: "lint"},
    "buf": {Work.LINT: "lint", Work.BUILD: "build"},
    "protoc": {Work.BUILD: ""},
    "twine": {Work.LINT: "check"},
    "pants": {Work.TEST: "test", Work.LINT: "lint", Work.TYPES: "check", Work.BUILD: "package"},
    "moon": {Work.CHECK: "ci check"},
    "trunk": {Work.LINT: "check", Work.BUILD: "build"},
    "solhint": {Work.LINT: ""},
    "sphinx": {Work.BUILD: ""},
    "sphinx-build": {Work.BUILD: ""},
    "mkdocs": {Work.BUILD: "build"},
    "hugo": {Work.BUILD: "build"},
    "jekyll": {Work.BUILD: "build"},
    "build": {Work.BUILD: ""},
}
"""By the first argument that is one of these; "" = any."""
_FLAGGED: Final = {
    "black": frozenset({"--check", "--diff"}),
    "isort": frozenset({"--check", "--check-only", "-c", "--diff"}),
    "prettier": frozenset({"--check", "-c", "-l", "--list-different"}),
    "ruff": frozenset({"--check", "--diff"}),
    "cargo": frozenset({"--check"}),
    "rustfmt": frozenset({"--check"}),
    "dotnet": frozenset({"--verify-no-changes"}),
    "mix": frozenset({"--check-formatted"}),
    "clang-format": frozenset({"--Werror", "-Werror"}),
    "shfmt": frozenset({"-d"}),
    "terraform": frozenset({"-check"}),
    "tofu": frozenset({"-check"}),
    "zig": frozenset({"--check"}),
    "deno": frozenset({"--check"}),
    "dart": frozenset({"--set-exit-if-changed"}),
    "taplo": frozenset({"--check"}),
    "stylua": frozenset({"--check"}),
    "yapf": frozenset({"--diff", "-d"}),
    "tsx": frozenset({"--test"}),
}
"""Formatters, checking only."""
_RUNNERS: Final = frozenset(
    {"npm", "pnpm", "yarn", "bun", "deno", "composer", "just", "task", "rake", "invoke", "inv"}
    | {"mage", "grunt", "gulp", "nx", "turbo", "lerna", "rush", "wireit", "poe", "moon", "mise"}
    | {"make", "gradle", "mvn", "doit", "ninja", "run-s", "run-p", "npm-run-all"}
)
"""They run what the project calls so."""
_RUN_WORDS: Final = frozenset({"run", "run-script", "rum", "task", "run-many", "affected", "exec"})
_VALUED: Final = frozenset(
    {"-C", "-f", "-w", "-p", "-F", "--prefix", "--workspace", "--filter", "--dir", "--cwd", "-j"}
    | {"--directory", "--file", "--makefile", "--project", "--target", "--targets", "-e", "-t"}
    | {"--justfile", "--working-directory", "--manifest-path", "-pl", "--projects", "--output-dir"}
)
_DEFAULT_IS_BUILD: Final = frozenset(
    {"just", "task", "rake", "gulp", "grunt", "mage", "gradle", "ninja"}
)
"""Without a target they run the project's first or default one."""
_INFO: Final = frozenset(
    {"--version", "--help", "-h", "-help", "-version", "--list", "--collect-only", "--co", "--init"}
    | {"--fixtures", "--markers", "--dry-run", "--just-print", "--print-config", "--showconfig"}
    | {
        "--list-tests",
        "--listTests",
        "--install-types",
        "--print-targets",
        "--tasks",
        "--show-only",
    }
    | {"--env-info", "--clearCache", "--summary", "--evaluate", "--watch", "--watchAll"}
)
_SHORT_INFO: Final = {
    "make": frozenset({"-n", "-p", "-q"}),
    "ninja": frozenset({"-n", "-t"}),
    "tox": frozenset({"-l", "-a", "list", "config", "devenv", "l"}),
    "nox": frozenset({"-l"}),
    "just": frozenset({"-l", "--summary", "--evaluate"}),
    "task": frozenset({"-l", "-a", "--list-all"}),
    "rake": frozenset({"-T", "-P"}),
    "ctest": frozenset({"-N"}),
    "tsc": frozenset({"--showConfig", "-w"}),
    "dmypy": frozenset({"start", "stop", "status", "restart", "kill"}),
    "golangci-lint": frozenset({"linters", "cache", "config", "version", "fmt", "migrate"}),
    "pre-commit": frozenset({"install", "autoupdate", "clean", "gc"}),
    "go": frozenset({"-list"}),
    "cypress": frozenset({"open", "install", "cache"}),
    "gcc": frozenset({"-dumpversion", "-dumpmachine", "-print-search-dirs"}),
    "mvn": frozenset({"-v"}),
    "gradle": frozenset({"-v", "--stop", "--status"}),
}
_V_IS_VERSION: Final = frozenset(
    {"tsc", "eslint", "gcc", "g++", "clang", "clang++", "make", "npm", "jest", "prettier", "mypy"}
    | {"webpack", "rollup", "rustc", "scons", "rspec", "mocha", "rubocop", "flake8"}
)
_WORDS: Final = {
    "test": Work.TEST,
    **dict.fromkeys(
        ("tests", "spec", "specs", "e2e", "unit", "integration", "coverage"), Work.TEST
    ),
    **dict.fromkeys(("jest", "vitest", "pytest", "unittest", "mocha", "phpunit", "cov"), Work.TEST),
    **dict.fromkeys(("testclasses", "connectedandroidtest", "smoke", "rspec", "ctest"), Work.TEST),
    **dict.fromkeys(("lint", "lints", "eslint", "stylelint", "ruff", "clippy", "vet"), Work.LINT),
    **dict.fromkeys(("rubocop", "prettier", "spotlesscheck", "checkstyle", "biome"), Work.LINT),
    **dict.fromkeys(("types", "typecheck", "typing", "tsc", "mypy", "pyright"), Work.TYPES),
    **dict.fromkeys(
        ("build", "compile", "bundle", "dist", "rebuild", "package", "all"), Work.BUILD
    ),
    **dict.fromkeys(("prebuild", "assemble", "jar", "war", "webpack", "install"), Work.BUILD),
    **dict.fromkeys(("compilejava", "compilekotlin", "bootjar", "wheel", "release"), Work.BUILD),
    **dict.fromkeys(("check", "checks", "ci", "verify", "validate", "precommit", "qa"), Work.CHECK),
}
"""What a part of a script's or target's name says."""
_NO_BUILD: Final = frozenset(
    {
        "dev",
        "start",
        "serve",
        "server",
        "watch",
        "preview",
        "clean",
        "distclean",
        "deploy",
        "publish",
    }
    | {
        "help",
        "fmt",
        "format",
        "fix",
        "up",
        "down",
        "logs",
        "shell",
        "migrate",
        "setup",
        "deps",
        "init",
    }
    | {
        "bootstrap",
        "push",
        "pull",
        "login",
        "seed",
        "stop",
        "restart",
        "version",
        "bump",
        "changelog",
    }
    | {
        "run",
        "docs",
        "doc",
        "update",
        "upgrade",
        "list",
        "info",
        "env",
        "venv",
        "uninstall",
        "bench",
    }
    | {"tasks", "projects", "properties", "dependencies", "wrapper", "bootrun", "tree", "generate"}
    | {"mrproper", "menuconfig", "defconfig", "tags", "purge", "open", "report", "view"}
)
_INTERPRETERS: Final = frozenset(
    {"node", "ruby", "php", "perl", "tsx", "ts-node", "bun", "lua", "rscript", "julia"}
)
_PARTS: Final = re.compile(r"[:_\-./\s]+")
_HUMPS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_OPTIONAL: Final = frozenset(
    {"run", "sh", "py", "all", "ci", "local", "js", "ts", "mjs", "rb", "the"}
)
_TEST_FILE: Final = re.compile(
    r"(?:test_\w{1,80}|\w{1,80}_test|\w{1,80}[.-]test)\.(?:py|[cm]?[jt]s|rb)\Z"
)

_TABLE: Final = {name: work for work, names in _ALWAYS.items() for name in names.split()}
_SUBTABLE: Final = {
    program: {word: work for work, words in rows.items() for word in words.split() or ("",)}
    for program, rows in _SUBCOMMANDS.items()
}


def build_of(step: Step) -> Build | None:
    """What a command builds or tests; None = nothing."""
    words = program_of(step.words)
    if not words or _only_tells(words):
        return None
    program, arguments = words[0], words[1:]
    if program in _FLAGGED and _FLAGGED[program].intersection(arguments):
        return Build(Work.LINT, f"{program} --check", program)
    if program in _RUNNERS:
        found = _of_runner(program, arguments)
        if found is not None or program not in _SUBTABLE:
            return found
    if program.startswith(IS_SCRIPT):
        return _of_file(program.removeprefix(IS_SCRIPT), arguments)
    if program in _SUBTABLE and (found := _of_subcommand(program, arguments)) is not None:
        return found
    if program in _INTERPRETERS:
        file, rest = _file_of(arguments)
        return None if file is None else _of_file(file, rest)
    if program in _TABLE:
        return Build(_TABLE[program], program, program)
    return _of_script(program, program) if _was_wrapped(step, program) else None


def _only_tells(words: Sequence[str]) -> bool:
    program, arguments = words[0], words[1:]
    if _INFO.intersection(arguments) or _SHORT_INFO.get(program, _INFO).intersection(arguments):
        return True
    return len(arguments) == 1 and (
        arguments[0] == "-V" or (arguments[0] == "-v" and program in _V_IS_VERSION)
    )


def _of_subcommand(program: str, arguments: Sequence[str]) -> Build | None:
    rows = _SUBTABLE[program]
    if "" in rows:
        return Build(rows[""], program, program)
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word in rows:
            return Build(rows[word], f"{program} {word}", program)
        if not word.startswith(("-", "+")):
            # ``docker compose build``, ``rails test``; any other word is another command.
            if word not in {"compose", "v2"}:
                return None
        elif word in _VALUED:
            at += 1
        at += 1
    return None


def _of_runner(program: str, arguments: Sequence[str]) -> Build | None:
    names = _targets(program, arguments)
    if program in {"npm", "pnpm", "yarn", "bun", "deno", "composer", "mise"}:
        if names[:1] == ["workspace"]:
            names = names[2:]
        # ``npm test`` and ``yarn build`` need no ``run``; ``npm install`` is its own command.
        is_named = bool(names) and names[0] in _RUN_WORDS
        named = names[1:2] if is_named else names[:1]
        names = [{"t": "test", "tst": "test", "it": ""}.get(each, each) for each in named]
        if program in {"npm", "pnpm", "bun", "deno", "composer"} and named == names[:1] == [
            "install"
        ]:
            return None
        if not is_named and names and names[0] in {"install", "publish", "ci"}:
            return None
    elif program in {"nx", "turbo", "lerna", "moon"}:
        names = [each for each in names if each not in _RUN_WORDS][:1]
    if not names:
        is_default = program == "make" or program in _DEFAULT_IS_BUILD
        return Build(Work.BUILD, program, program) if is_default else None
    works = [work for each in names if (work := _work(each, program)) is not None]
    if not works:
        return None
    family = " ".join((program, *(each for each in names if _work(each, program) is not None)))
    work = works[0] if len(set(works)) == 1 else Work.CHECK
    return Build(work, family[:200], program)


def _targets(program: str, arguments: Sequence[str]) -> list[str]:
    names: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "--":
            break
        if word.startswith("-"):
            if program in {"nx", "turbo"} and word in {"-t", "--target", "--targets"}:
                names += arguments[at + 1 : at + 2]
            at += word in _VALUED and not (
                word == "-j" and not "".join(arguments[at + 1 : at + 2]).isdigit()
            )
        elif "=" not in word:
            names.append(word)
        at += 1
    return names


def _work(name: str, program: str) -> Work | None:
    """What a script or target of this name does."""
    parts = [part.lower() for part in _PARTS.split(name) if part]
    whole = name.lower().rpartition(":")[2]
    parts += [part.lower() for part in _HUMPS.split(name.rpartition(":")[2])] + [whole]
    known = [_WORDS[part] for part in parts if part in _WORDS]
    if program == "mvn" and ":" in name:
        return Work.TEST if "test" in parts else None
    if known and (
        not _NO_BUILD.intersection(parts) or known[0] is Work.LINT or {"format", "fmt"} & set(parts)
    ):
        return known[0]
    # Of make and gradle a target of any other name is something that is made.
    return (
        Work.BUILD if program in {"make", "ninja"} and not _NO_BUILD.intersection(parts) else None
    )


def _of_script(name: str, family: str) -> Build | None:
    work = _work(name, "")
    return None if work is None else Build(work, family, family)


def _of_file(name: str, arguments: Sequence[str]) -> Build | None:
    """A file of the project: its name has to say it, and nothing else."""
    if name in _SUBTABLE:
        return _of_subcommand(name, arguments)
    if _TEST_FILE.match(name):
        return Build(Work.TEST, name, name)
    parts = [part.lower() for part in _PARTS.split(name) if part]
    if not parts or not all(part in _WORDS or part in _OPTIONAL for part in parts):
        return None
    said = "-".join(part for part in parts if part not in _OPTIONAL or part in _WORDS)
    return _of_script(said, name)


def _file_of(arguments: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The file that an interpreter runs, without its folder, and the words behind it."""
    for at, word in enumerate(arguments):
        if word in {"-e", "-p", "-r", "-c"}:
            return None, ()
        if not word.startswith("-"):
            name = word.replace("\\", "/").rpartition("/")[2]
            known = "." in name or name in _SUBTABLE
            return (name if known else None), arguments[at + 1 :]
    return None, ()


def _was_wrapped(step: Step, program: str) -> bool:
    """``hatch run test``: a script of the project, not a program of that name."""
    words = step.words
    return (
        len(words) > 2
        and words[0] in {"hatch", "pdm", "rye", "pixi", "poetry", "pipenv", "uv"}
        and words[1] == "run"
        and program == words[2].rpartition(":")[2].lower()
    )
