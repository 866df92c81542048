"""Which commands build, test, lint or check types.

A program counts by its name, by its first argument, by the script or target it is told to run, or
by the flag that makes it check instead of change. What only prints (``--help``), installs, cleans,
formats, serves or watches is no build.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from subagents.domain.alerts.detectors.shell import Step
from subagents.extensions.detectors.shell_programs import IS_SCRIPT, program_of


class BuildKind(StrEnum):
    """What a command does, as a sentence about it begins."""

    BUILD = "Build"
    TEST = "Tests"
    LINT = "Lint"
    TYPES = "Type check"
    CHECK = "Checks"
    """Several of these."""


class Build(NamedTuple):
    """A command that builds or tests."""

    work: BuildKind
    family: str
    """Its results are compared with each other."""
    tool: str


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PROGRAMS: Final = {
    BuildKind.TEST: """
        pytest unittest nose2 jest vitest mocha ava tap tape jasmine karma cypress wdio rspec
        phpunit pest ctest bats prove behave robot gotestsum ginkgo elm-test busted cucumber
        minitest pytest-3 lit
        go swift bazel buck2 zig stack cabal dune lake gleam mix sbt lein flutter dart forge: test
        dotnet hardhat anchor artisan manage.py django-admin setup.py deno bun ng meson: test
        rails react-scripts playwright hatch wasm-pack pants: test
        cargo: test t nextest bench miri tarpaulin llvm-cov
        dotnet: vstest
        bazel: coverage
        cabal: v2-test
        dune: runtest
        crystal: spec
        rebar3: eunit ct
        sbt: testOnly testQuick
        rails: test:system test:all
        deno: bench
        node: --test
        ng: e2e
        vue-cli-service: test:unit test:e2e
    """,
    BuildKind.LINT: """
        flake8 pylint pyflakes pycodestyle pydocstyle bandit vulture lint-imports eslint oxlint
        xo standard stylelint tslint jshint rubocop standardrb reek phpcs shellcheck hadolint
        yamllint markdownlint markdownlint-cli2 actionlint tflint golangci-lint staticcheck
        revive clang-tidy cppcheck cpplint luacheck swiftlint ktlint detekt sqlfluff
        ansible-lint codespell djlint htmlhint commitlint doc8 interrogate next-lint knip credo
        deptry semgrep solhint
        manage.py django-admin biome dprint ruff poetry twine trunk: check
        deno next ng vue-cli-service biome helm buf pants: lint
        pre-commit prek lefthook: run
        flutter dart: analyze
        terraform tofu: validate
        cargo: clippy deny
        go: vet
        mix: credo
        biome: ci format
        hatch: fmt
        node: --check -c
        bash: -n
        ruby: -c -wc
        php: -l
    """,
    BuildKind.TYPES: """
        mypy pyright basedpyright pytype pyre vue-tsc svelte-check phpstan psalm sorbet dmypy
        pyrefly
        nim deno astro ty pyre-check pants: check
        mix rebar3: dialyzer
        nuxt nuxi: typecheck
        cargo: check c
    """,
    BuildKind.BUILD: """
        tsc gcc g++ cc c++ clang clang++ rustc javac kotlinc scalac ghc scons webpack rollup
        esbuild ant samu tsup javadoc xcodebuild nvcc gfortran dmd ldc2 valac rspack py_compile
        compileall protoc sphinx sphinx-build build
        go dotnet swift bazel buck2 zig stack cabal dune lake gleam crystal flutter forge: build
        anchor setup.py bun vite next nuxt nuxi astro remix gatsby parcel ng react-scripts: build
        vue-cli-service storybook hatch uv poetry pdm flit maturin wasm-pack docker podman: build
        docker-compose buf trunk mkdocs hugo jekyll cargo: build
        nim mix rebar3 sbt lein dart hardhat deno meson: compile
        cargo: b rustc doc install
        go: install
        dotnet: publish pack msbuild
        zig: build-exe build-lib build-obj
        cabal: v2-build new-build
        gleam: check
        nim: c cpp js
        sbt: package assembly
        lein: uberjar
        elm: make
        setup.py: build_ext bdist_wheel sdist
        deno: bundle
        nuxt nuxi: generate
        remix: vite:build
        expo: export
        maturin: develop
        docker: buildx
        cmake: --build
        pants: package
    """,
    BuildKind.CHECK: """
        tox nox earthly
        moon: ci check
    """,
}
"""Programs by name, or by the first argument that is one of the words behind the colon."""
_CHECKING: Final = """
    black isort prettier ruff cargo rustfmt zig deno taplo stylua: --check
    black isort ruff yapf: --diff
    isort: --check-only -c
    prettier: -c -l --list-different
    dotnet: --verify-no-changes
    mix: --check-formatted
    clang-format: --Werror -Werror
    shfmt yapf: -d
    terraform tofu: -check
    dart: --set-exit-if-changed
    tsx: --test
"""
"""Formatters that with one of these words only check."""
_TELLING: Final = """
    *: --version --help -h -help -version --list --collect-only --co --init --fixtures --markers
    *: --dry-run --just-print --print-config --showconfig --list-tests --listTests --install-types
    *: --print-targets --tasks --show-only --env-info --clearCache --summary --evaluate --watch
    *: --watchAll
    make: -n -p -q
    ninja: -n -t
    tox: -l -a list config devenv l
    nox just task: -l
    task: -a --list-all
    rake: -T -P
    ctest: -N
    tsc: --showConfig -w
    dmypy: start stop status restart kill
    golangci-lint: linters cache config version fmt migrate
    pre-commit: install autoupdate clean gc
    go: -list
    cypress: open install cache
    gcc: -dumpversion -dumpmachine -print-search-dirs
    mvn gradle: -v
    gradle: --stop --status
"""
"""Words with which a program, or any (``*``), only tells something or never ends."""
_WORDS: Final = {
    BuildKind.TEST: """
        test tests spec specs e2e unit integration coverage jest vitest pytest unittest mocha
        phpunit cov testclasses connectedandroidtest smoke rspec ctest
    """,
    BuildKind.LINT: """
        lint lints eslint stylelint ruff clippy vet rubocop prettier spotlesscheck checkstyle biome
    """,
    BuildKind.TYPES: "types typecheck typing tsc mypy pyright",
    BuildKind.BUILD: """
        build compile bundle dist rebuild package all prebuild assemble jar war webpack install
        compilejava compilekotlin bootjar wheel release
    """,
    BuildKind.CHECK: "check checks ci verify validate precommit qa",
}
"""What a part of a script's or target's name says."""
_NO_BUILD: Final = _set(
    """
    dev start serve server watch preview clean distclean deploy publish help fmt format fix up
    down logs shell migrate setup deps init bootstrap push pull login seed stop restart version
    bump changelog run docs doc update upgrade list info env venv uninstall bench tasks projects
    properties dependencies wrapper bootrun tree generate mrproper menuconfig defconfig tags
    purge open report view
    """
)
_SCRIPT_RUNNERS: Final = _set("npm pnpm yarn bun deno composer mise")
_MONOREPO_RUNNERS: Final = _set("nx turbo lerna moon")
_DEFAULT_RUNNERS: Final = _set("make just task rake gulp grunt mage gradle ninja")
"""Programs that run the project's first or default target where none is named."""
_RUNNERS: Final = (
    _SCRIPT_RUNNERS
    | _MONOREPO_RUNNERS
    | _DEFAULT_RUNNERS
    | _set("invoke inv rush wireit poe mvn doit run-s run-p npm-run-all")
)
"""They run what the project calls so."""
_RUN_WORDS: Final = _set("run run-script rum task run-many affected exec")
_VALUED: Final = _set(
    """
    -C -f -w -p -F -j -e -t --prefix --workspace --filter --dir --cwd --directory --file
    --makefile --project --target --targets --justfile --working-directory --manifest-path -pl
    --projects --output-dir
    """
)
"""Options of theirs whose value is the next word."""
_INTERPRETERS: Final = _set("node ruby php perl tsx ts-node bun lua rscript julia")
_INSTALLERS: Final = _set("hatch pdm rye pixi poetry pipenv uv")
_V_IS_VERSION: Final = _set(
    """
    tsc eslint gcc g++ clang clang++ make npm jest prettier mypy webpack rollup rustc scons
    rspec mocha rubocop flake8
    """
)
_OPTIONAL: Final = _set("run sh py all ci local js ts mjs rb the")
"""Parts of a file's name that say nothing."""
_PARTS: Final = re.compile(r"[:_\-./\s]+")
_HUMPS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_TEST_FILE: Final = re.compile(
    r"(?:test_\w{1,80}|\w{1,80}_test|\w{1,80}[.-]test)\.(?:py|[cm]?[jt]s|rb)\Z|[\w-]{1,80}\.t\Z"
)


def _rows(text: str) -> dict[str, set[str]]:
    """By program: the words behind the colon; none where there is no colon."""
    rows: dict[str, set[str]] = {}
    for line in text.splitlines():
        programs, _, words = line.partition(": ")
        for program in programs.split():
            rows.setdefault(program, set()).update(words.split())
    return rows


def _works() -> dict[str, dict[str, BuildKind]]:
    works: dict[str, dict[str, BuildKind]] = {}
    for work, text in _PROGRAMS.items():
        for program, words in _rows(text).items():
            works.setdefault(program, {}).update(dict.fromkeys(words or {""}, work))
    return works


_WORK_BY_WORD: Final = _works()
"""The kind of work by program, then by its first argument; ``""`` = any."""
_CHECKING_WORDS: Final = _rows(_CHECKING)
_TELLING_WORDS: Final = _rows(_TELLING)
_NAMED: Final = {word: work for work, words in _WORDS.items() for word in words.split()}


def build_of(step: Step) -> Build | None:
    """What a command builds or tests; None = nothing."""
    words = program_of(step.words)
    if not words or _only_tells(*words):
        return None
    program, arguments = words[0], words[1:]
    if _CHECKING_WORDS.get(program, set()).intersection(arguments):
        return Build(BuildKind.LINT, f"{program} --check", program)
    if program in _RUNNERS:
        found = _of_runner(program, arguments)
        if found is not None or program not in _WORK_BY_WORD:
            return found
    if program.startswith(IS_SCRIPT):
        return _of_file(program.removeprefix(IS_SCRIPT), arguments)
    if (found := _of_subcommand(program, arguments)) is not None:
        return found
    if program in _INTERPRETERS:
        options = [word for word in arguments if word.startswith("-")]
        at = next((n for n, word in enumerate(arguments) if not word.startswith("-")), None)
        if at is None or {"-e", "-p", "-r", "-c"} & set(options[:at]):
            return None
        name = arguments[at].replace("\\", "/").rpartition("/")[2]
        is_file = "." in name or name in _WORK_BY_WORD
        return _of_file(name, arguments[at + 1 :]) if is_file else None
    # ``hatch run test``: a script of the project, not a program of that name.
    is_script = step.words[0] in _INSTALLERS and step.words[1:2] == ("run",)
    if is_script and program == step.words[2].rpartition(":")[2].lower():
        return _of_script(program)
    return None


def _only_tells(program: str, *arguments: str) -> bool:
    for name in ("*", program):
        if not _TELLING_WORDS.get(name, set()).isdisjoint(arguments):
            return True
    return arguments == ("-V",) or (arguments == ("-v",) and program in _V_IS_VERSION)


def _of_subcommand(program: str, arguments: Sequence[str]) -> Build | None:
    works = _WORK_BY_WORD.get(program, {})
    if "" in works:
        return Build(works[""], program, program)
    is_value = False
    for word in arguments:
        if word in works and not is_value:
            return Build(works[word], f"{program} {word}", program)
        # ``docker compose build``; any other word is another command.
        if not is_value and not word.startswith(("-", "+")) and word not in {"compose", "v2"}:
            return None
        is_value = word in _VALUED and not is_value
    return None


def _of_runner(program: str, arguments: Sequence[str]) -> Build | None:
    names = _targets(program, arguments)
    if program in _SCRIPT_RUNNERS:
        if names[:1] == ["workspace"]:
            names = names[2:]
        # ``npm test`` and ``yarn build`` need no ``run``; ``npm install`` is its own command.
        if names and names[0] in _RUN_WORDS:
            names = names[1:2]
        elif names and names[0] in {"install", "publish", "ci"}:
            return None
        names = [{"t": "test", "tst": "test", "it": ""}.get(each, each) for each in names[:1]]
    elif program in _MONOREPO_RUNNERS:
        names = [each for each in names if each not in _RUN_WORDS][:1]
    if not names:
        return Build(BuildKind.BUILD, program, program) if program in _DEFAULT_RUNNERS else None
    works = {each: work for each in names if (work := _work(each, program)) is not None}
    if not works:
        return None
    work = next(iter(works.values())) if len(set(works.values())) == 1 else BuildKind.CHECK
    return Build(work, " ".join((program, *works))[:200], program)


def _targets(program: str, arguments: Sequence[str]) -> list[str]:
    names: list[str] = []
    is_value = False
    for number, word in enumerate(arguments):
        if word == "--":
            break
        if is_value or "=" in word:
            is_value = False
        elif not word.startswith("-"):
            names.append(word)
        else:
            following = "".join(arguments[number + 1 : number + 2])
            is_value = word in _VALUED and (word != "-j" or following.isdigit())
            if program in {"nx", "turbo"} and word in {"-t", "--target", "--targets"}:
                names.append(following)
    return names


def _work(name: str, program: str) -> BuildKind | None:
    """What a script or target of this name does."""
    last = name.rpartition(":")[2]
    parts = [each.lower() for each in (*_PARTS.split(name), *_HUMPS.split(last), last)]
    if program == "mvn" and ":" in name:
        return BuildKind.TEST if "test" in parts else None
    known = next((_NAMED[each] for each in parts if each in _NAMED), None)
    if _NO_BUILD.isdisjoint(parts):
        # Of make and ninja a target of any other name is something that is made.
        return known or (BuildKind.BUILD if program in {"make", "ninja"} else None)
    return known if known is BuildKind.LINT or {"format", "fmt"} & set(parts) else None


def _of_script(name: str) -> Build | None:
    work = _work(name, "")
    return None if work is None else Build(work, name, name)


def _of_file(name: str, arguments: Sequence[str]) -> Build | None:
    """A file of the project: its name has to say it, and nothing else."""
    if name in _WORK_BY_WORD:
        return _of_subcommand(name, arguments)
    if _TEST_FILE.match(name):
        return Build(BuildKind.TEST, name, name)
    parts = [part.lower() for part in _PARTS.split(name) if part]
    if not parts or not all(part in _NAMED or part in _OPTIONAL for part in parts):
        return None
    found = _of_script("-".join(part for part in parts if part in _NAMED))
    return None if found is None else Build(found.work, name, name)
