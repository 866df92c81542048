"""Which commands build or test, and how they ended: by the exit code, and by what they print."""

from pathlib import Path
from typing import Final

import pytest
from scripts import alert_table as tool_outputs
from scripts.alert_table import (
    Case,
    judged,
    miss_of,
    misses,
)

from subagents.domain.alerts.detectors.build_tools import Work, build_of
from subagents.domain.alerts.detectors.builds import Result, result_of
from subagents.domain.alerts.detectors.exit_codes import code_of, ends_of
from subagents.domain.alerts.detectors.shell_lines import steps_of
from subagents.domain.alerts.detectors.shell_programs import expanded, program_of
from subagents.domain.run.alert import AlertKind
from subagents.domain.run.worker_output import ToolUse

ROOT: Final = Path(__file__).parents[4]
FOLDER: Final = ROOT / tool_outputs.FOLDER
PAGE: Final = ROOT / tool_outputs.PAGE
CASES: Final = tool_outputs.cases(FOLDER)

NOT_TOLD_OR_COUNTED: Final = {
    ("bun-build-fail", "code"): "not counted",
    ("bun-build-fail", "text"): "not counted",
    ("deno-check", "code"): "not counted",
    ("deno-check", "text"): "not counted",
    ("eslint-json", "code"): "not counted",
    ("eslint-json", "text"): "not told",
    ("eslint-no-config", "text"): "not told",
    ("go-build-o", "text"): "not told",
    ("go-test-json", "code"): "not counted",
    ("go-test-json", "text"): "not told",
    ("node-throws", "text"): "not told",
    ("npm-build-pass", "text"): "not told",
    ("npm-echo-pass", "text"): "not told",
    ("npm-exit-only", "text"): "not told",
    ("pyright-json", "code"): "not counted",
    ("pyright-json", "text"): "not told",
    ("pytest-and-echo", "code"): "not told",
    ("pytest-and-echo", "text"): "not told",
    ("pytest-exit-in-test", "text"): "not told",
    ("pytest-grep-nothing", "code"): "not told",
    ("pytest-grep-nothing", "text"): "not told",
    ("pytest-head", "code"): "not told",
    ("pytest-head", "text"): "not told",
    ("rake-default", "text"): "not told",
}
"""Cases that are not judged as a reader would: pinned, so that they can only become fewer."""

BUILDS: Final = (
    "cargo build",
    "go build",
    "mypy",
    "ruff check",
    "tox",
    "npm run lint",
    "bun test",
    "make",
    "pytest",
    "tsc",
    "gradle build",
    "mvn verify",
    "dotnet test",
    "cmake --build build",
    "ninja",
    "jest",
    "vitest",
    "eslint .",
    "swift build",
    "rspec",
    "phpunit",
    "go vet ./...",
    "golangci-lint run",
    "bazel test //...",
    "just build",
    "nox",
    "hatch test",
    "pre-commit run",
    "cd x && make",
    "FOO=1 npm test",
    "timeout 60 pytest",
    "sudo make install",
    "npx tsc --noEmit",
    "uv run pytest -q",
    "poetry run mypy src",
    "python -m pytest",
    "bash -c 'make test'",
    'bash -lc "cd /x && cargo test"',
    "env CI=1 yarn test",
    "time cargo build --release",
    "sudo -E env A=b make -j4",
    "uv run --with pytest pytest",
    "uv run -m pytest",
    "python3 -W error -m unittest",
    "./gradlew assembleDebug",
    "./build.sh",
    "bash ci/test.sh",
    ".venv/bin/pytest",
    "node_modules/.bin/tsc",
    "docker compose exec app pytest",
    "docker run --rm -v $PWD:/x img make test",
    "xargs eslint",
    "npm t",
    "npm test -- --coverage",
    "npm --prefix web run build",
    "pnpm -r test",
    "pnpm --filter web build",
    "yarn workspace web build",
    "yarn lint",
    "bun run build",
    "deno test",
    "deno task build",
    "npx --yes eslint .",
    "node --test",
    "nice -n 10 make",
    "stdbuf -oL make",
    "cargo +nightly clippy",
    "cargo nextest run",
    "go test ./...",
    "go -C sub test ./...",
    "make -C sub all",
    "make lint",
    "make clean all",
    "ruff format --check .",
    "black --check .",
    "prettier --check .",
    "cargo fmt -- --check",
    "mix test",
    "sbt test",
    "rake",
    "bundle exec rake spec",
    "rails test",
    "bin/rails test",
    "php artisan test",
    "composer test",
    "vendor/bin/phpstan analyse",
    "dotnet build",
    "swift test",
    "xcodebuild test",
    "flutter analyze",
    "zig build test",
    "coverage run -m pytest",
    "python manage.py test",
    "python setup.py build_ext --inplace",
    "uv build",
    "python -m build",
    "vite build",
    "next build",
    "ng test",
    "nx test web",
    "turbo run build",
    "gcc -o a a.c",
    "g++ a.cpp",
    "javac A.java",
    "rustc a.rs",
    "shellcheck a.sh",
    "terraform validate",
    "docker build .",
    "hatch run test",
    "tox -e py311",
    "nox -s lint",
    "pre-commit run --all-files",
    "(cd web && npm run build)",
    "if make; then echo ok; fi",
    "for d in a b; do make -C $d; done",
    "npm run build:prod",
    "npm run type-check",
    "npm run test:unit",
    "npm run lint:fix",
    "just test unit",
    "task build",
    "conda run -n dev pytest",
    "python -m mypy src",
    "py -3 -m pytest",
    "pytest -v",
    "pytest -h5",
    "meson test -C build",
    "ctest --test-dir build",
    "bats test",
    "mise run test",
    "mise exec -- pytest",
    "poe test",
    "inv test",
    "make -j",
    "make -j 8",
    "make CC=gcc",
    "command make",
    "\\make",
    "! make",
    "exec make",
    "ssh host make -C /srv",
    "npx -p typescript tsc",
    "yarn dlx tsc",
    "npx vitest run --reporter=dot",
    "npx playwright test",
    "python test_app.py",
    "python tests/run_tests.py",
    "./run_tests.sh",
    "ruby -Itest test/a_test.rb",
    "cargo build --manifest-path a/Cargo.toml",
    "cargo --locked build",
    "pip install -e . && pytest",
    "npm ci && npm run build",
    "make build && git commit -m x",
    "biome check .",
    "uvx ruff check",
    "npm run verify",
    "hatch build",
    "markdownlint-cli2 '**/*.md'",
    "lint-imports",
    "cargo t",
    "make 2>&1 | tee log",
)
NO_BUILDS: Final = (
    "git commit -m make",
    "echo make",
    "cat Makefile",
    "which pytest",
    "pip install pytest",
    "npm install",
    "npm ci",
    "npm i jest",
    "npm start",
    "npm run dev",
    "yarn",
    "yarn add jest",
    "make clean",
    "make help",
    "make -n",
    "pytest --version",
    "pytest --collect-only",
    "mypy --version",
    "cargo --version",
    "cargo run",
    "cargo add serde",
    "go run .",
    "go mod tidy",
    "go fmt ./...",
    "gcc --version",
    "tsc --init",
    "tsc -v",
    "ruff format .",
    "black .",
    "prettier --write .",
    "cargo fmt",
    "grep make Makefile",
    "ls build",
    "rm -rf build",
    "command -v cargo",
    "apt install make",
    "man make",
    "vim Makefile",
    "cd build",
    "mkdir build",
    "git log --grep test",
    "git checkout test",
    "docker ps",
    "docker run ubuntu ls",
    "npm run",
    "npm run clean",
    "npm publish",
    "node server.js",
    "python app.py",
    "python -c 'import pytest'",
    "python -m http.server",
    "python -m venv .venv",
    "uv sync",
    "uv run app.py",
    "poetry install",
    "sleep 5 # make",
    "cat <<EOF\nmake\nEOF",
    "echo 'cargo test' > todo",
    "gradle --version",
    "gradle tasks",
    "mvn -v",
    "mvn clean",
    "bazel clean",
    "terraform plan",
    "pre-commit install",
    "just --list",
    "kubectl get pods",
    "curl http://x/test",
    "find . -name pytest",
    "sed -i s/make/x/ a",
    "test -f Makefile",
    "[ -f build ]",
    "tail -f test.log",
    "bundle install",
    "dotnet run",
    "dotnet restore",
    "swift run",
    "npx create-react-app x",
    "npm view jest version",
    "type tsc",
    "export PATH=make",
    "alias make=x",
    "make --version",
    "ninja -t clean",
    "eslint --init",
    "python build_index.py",
    "bash deploy.sh",
    "bash start.sh",
    "./configure",
    "cmake -B build",
    "git push origin build",
    "git stash; git pull",
    "ps aux ",
    " grep pytest",
    "pkill -f vitest",
    "pytest --help",
    "uv pip install pytest",
    "uv add --dev pytest",
    "docker compose up --build",
    "docker compose build --help",
    "node -e 'test()'",
    "bun install",
    "bun add x",
    "deno run a.ts",
    "make run",
    "make format",
    "vite",
    "vite dev",
    "next dev",
    "jest --version",
    "npm test --help",
    "cargo doc --help",
    "go test -list .",
    "ctest -N",
    "tox -l",
)


def ran(command: str, output: str = "", code: int | None = None) -> Result | None:
    tool = ToolUse(name="Bash", command=command, output=output, exit_code=code, is_error=bool(code))
    return result_of(tool)


def verdict(command: str, output: str = "", code: int | None = None) -> bool | None:
    result = ran(command, output, code)
    return None if result is None else result.passed


# -- recorded outputs --------------------------------------------------------------------------


@pytest.mark.requirement("detectors:recorded")
@pytest.mark.parametrize("name", CASES)
def test_a_recorded_output_is_judged_as_it_ended(name: str) -> None:
    case = CASES[name]
    for way in tool_outputs.ways_of(case):
        judgement = judged(case, with_code=way == "code")
        assert miss_of(case, judgement) == NOT_TOLD_OR_COUNTED.get((name, way)), judgement


@pytest.mark.requirement("detectors:recorded")
def test_no_recorded_output_is_judged_wrong_and_few_not_at_all() -> None:
    missed = misses(CASES)

    assert missed == NOT_TOLD_OR_COUNTED
    assert "wrong" not in missed.values()
    assert len(missed) <= 24
    assert len(CASES) >= 280


@pytest.mark.requirement("detectors:recorded")
def test_recorded_outputs_are_small_and_of_many_tools() -> None:
    sizes = {file.stem: file.stat().st_size for file in FOLDER.glob("*.json")}

    assert max(sizes.values()) <= 5_000
    assert len({case.tool for case in CASES.values()}) >= 60
    assert sum(case.recorded == "run" for case in CASES.values()) >= 200


@pytest.mark.requirement("detectors:recorded")
def test_a_wrong_judgement_would_be_seen() -> None:
    case = CASES["pytest-fail"]
    lie = Case(**{**_fields(case), "passed": True, "errors": 0})  # type: ignore[arg-type]
    fewer = Case(**{**_fields(case), "errors": 1})  # type: ignore[arg-type]

    assert miss_of(lie, judged(lie, with_code=True)) == "wrong"
    assert miss_of(fewer, judged(fewer, with_code=True)) == "wrong"


def _fields(case: Case) -> dict[str, object]:
    return {name: getattr(case, name) for name in case.__struct_fields__}


# -- which commands ----------------------------------------------------------------------------


@pytest.mark.requirement("detectors:commands")
@pytest.mark.parametrize("command", BUILDS)
def test_a_command_that_builds_or_tests_is_known(command: str) -> None:
    assert [found for step in expanded(command) if (found := build_of(step)) is not None]


@pytest.mark.requirement("detectors:commands")
@pytest.mark.parametrize("command", NO_BUILDS)
def test_a_command_that_only_names_a_build_is_none(command: str) -> None:
    assert [found for step in expanded(command) if (found := build_of(step)) is not None] == []


@pytest.mark.requirement("detectors:commands")
@pytest.mark.parametrize(
    ("command", "work", "family"),
    [
        ("make", Work.BUILD, "make"),
        ("make -C x test", Work.TEST, "make test"),
        ("npm test", Work.TEST, "npm test"),
        ("npm run build:prod", Work.BUILD, "npm build:prod"),
        ("npm run typecheck", Work.TYPES, "npm typecheck"),
        ("cargo clippy", Work.LINT, "cargo clippy"),
        ("mypy .", Work.TYPES, "mypy"),
        ("ruff check . && mypy . && pytest", Work.CHECK, "ruff check + mypy + pytest"),
        ("pytest tests/a.py && pytest tests/b.py", Work.TEST, "pytest"),
    ],
)
def test_a_build_has_a_kind_and_a_family(command: str, work: Work, family: str) -> None:
    result = ran(command, code=0)

    assert result is not None
    assert (result.work, result.family) == (work, family)


@pytest.mark.requirement("detectors:commands")
@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("sudo -u ada -E env A=1 timeout -k 5 60 nice -n 5 make all", ("make", "all")),
        ("python3.11 -X dev -m pytest -q", ("pytest", "-q")),
        ("uv run --with x --python 3.12 -- mypy .", ("mypy", ".")),
        ("docker run --rm -v a:b -w /x img make", ("make",)),
        ("npx -y -p typescript tsc -b", ("tsc", "-b")),
        ("/usr/bin/make", ("make",)),
        ("./gradlew test", ("gradle", "test")),
        ("bash -x ci/test.sh fast", ("./test.sh", "fast")),
        ("python setup.py test", ("./setup.py", "test")),
        ("command -v make", ()),
        ("sudo", ()),
        ("sudo -u", ()),
        ("env", ()),
    ],
)
def test_a_program_is_found_behind_what_stands_before_it(
    command: str, program: tuple[str, ...]
) -> None:
    (step,) = steps_of(command)

    assert program_of(step.words) == program


# -- what the exit code says -------------------------------------------------------------------


@pytest.mark.requirement("detectors:exit-codes")
@pytest.mark.parametrize(
    ("command", "code", "ends"),
    [
        ("a", 0, (True,)),
        ("a", 1, (False,)),
        ("a", None, (None,)),
        ("! a", 0, (False,)),
        ("a && b", 0, (True, True)),
        ("a && b", 1, (None, None)),
        ("cd x && a", 1, (None, False)),
        ("a; b", 0, (None, True)),
        ("a; b", 1, (None, False)),
        ("a\nb", 1, (None, False)),
        ("set -e; a; b", 0, (True, True, True)),
        ("set -e; a; b", 1, (None, None, None)),
        ("bash -ec 'a; b'", 0, (True, True, True)),
        ("a || true", 0, (None, None)),
        ("a || b", 1, (False, False)),
        ("a || exit 1", 0, (True, None)),
        ("a || exit 1", 1, (False, None)),
        ("a || exit 1; b", 0, (True, None, True)),
        ("a || b && c", 0, (None, None, True)),
        ("a | tail", 0, (None, True)),
        ("a | tail", 1, (None, None)),
        ("yes | a", 1, (None, False)),
        ("set -o pipefail; a | tail", 0, (None, True, True)),
        ("set -o pipefail; a | tail", 1, (None, False, None)),
        ("set -euo pipefail\na | tee x\nb", 0, (True, True, True, True)),
        ("bash -o pipefail -c 'a | tail'", 1, (None, False, None)),
        ("(a && b) | tail", 0, (None, None, True)),
        ("{ a; b; } 2>&1 | tail", 0, (None, None, True)),
        ("(a; b) && c", 0, (None, True, True)),
        ("a &", 0, (None,)),
        ("a & b", 0, (None, True)),
        ("if a; then b; fi", 0, (None, None)),
        ("for x in 1 2; do a; done", 0, (None,)),
        ("a; echo done", 0, (None, True)),
    ],
)
def test_an_exit_code_is_read_back_onto_the_commands_it_speaks_for(
    command: str, code: int | None, ends: tuple[bool | None, ...]
) -> None:
    assert ends_of(expanded(command), code, "").of == ends


@pytest.mark.requirement("detectors:exit-codes")
@pytest.mark.parametrize(
    ("command", "output", "passed"),
    [
        ('pytest -q > log; echo "exit: $?"', "exit: 1", False),
        ('pytest -q > log; echo "exit: $?"', "exit: 0", True),
        ("pytest -q > log; echo $?", "2", False),
        ('pytest -q > log; echo "code=$?"', "code=0", True),
        ("pytest | tail -3; echo ${PIPESTATUS[0]}", "boom\n1", False),
        ("pytest | tail -3; echo ${PIPESTATUS[0]}", "...\n0", True),
        ('pytest | tail -3; echo "exit $?"', "exit 0", None),
        ("pytest -q; echo $?", "no number here", None),
    ],
)
def test_a_code_that_the_line_prints_itself_counts(
    *, command: str, output: str, passed: bool | None
) -> None:
    assert verdict(command, output, 0) is passed


@pytest.mark.requirement("detectors:exit-codes")
@pytest.mark.parametrize(
    ("output", "is_error", "code"),
    [
        ("Exit code 2\nmake: *** Error", True, 2),
        ("make: *** Error", True, 1),
        ("Command: make\nOutput: x\nExit Code: 2\nSignal: (none)", False, 2),
        ("Chunk ID: a\nWall time: 1 s\nProcess exited with code 101\nOutput:", False, 101),
        ("the docs say:\nExit code 2", False, None),
        ("all fine", False, None),
    ],
)
def test_a_code_in_the_output_is_found_where_programs_write_it(
    *, output: str, is_error: bool, code: int | None
) -> None:
    tool = ToolUse(name="Bash", command="make", output=output, is_error=is_error)

    assert code_of(tool) == code


@pytest.mark.requirement("detectors:exit-codes")
@pytest.mark.parametrize(
    "refusal",
    [
        "This command requires approval",
        "Permission to use Bash with command make has been denied.",
        "The user doesn't want to proceed with this tool use.",
        "PreToolUse:Bash hook error: no builds on Friday",
    ],
)
def test_a_build_that_was_not_allowed_to_run_has_no_result(refusal: str) -> None:
    tool = ToolUse(name="Bash", command="make", output=refusal, is_error=True)

    assert result_of(tool) is None


# -- traps -------------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:traps")
@pytest.mark.parametrize(
    ("command", "output", "code", "passed"),
    [
        ("make check", "0 failed, 12 passed", None, True),
        ("make check", "12 passed, 1 failed", None, False),
        ("make check", "error handling tests passed", None, True),
        ("make check", "finished: 0 errors", None, True),
        ("make check", "no errors found", None, True),
        ("./test.sh", "Traceback (most recent call last):\n  x\nValueError: y", None, False),
        ("npm run build", "a.ts(1,2): error TS2304: Cannot find name 'x'.", None, False),
        ("pytest", "1 passed, 1 xfailed in 0.10s", None, True),
        ("pytest", "=== 3 failed, 2 errors in 1.20s (0:00:01) ===", None, False),
        ("pytest | tail -3", "=== 1 failed, 4 passed in 0.12s ===", 0, False),
        ("pytest | tail -3", "=== 5 passed in 0.12s ===", 0, True),
        ("pytest || true", "=== 1 failed in 0.12s ===", 0, False),
        ("set -o pipefail; pytest | tail -3", "", 1, False),
        ("pytest && git push", "=== 5 passed in 0.1s ===\n! [rejected]", 1, True),
        ("pytest && git push", "=== 1 failed in 0.1s ===", 1, False),
        ("cd nowhere && make", "bash: line 1: cd: nowhere: No such file or directory", 1, None),
        ("git commit -m make", "[main abc1234] make", 0, None),
        ("echo make", "make", 0, None),
        ("make", "Process running with session ID 3", None, None),
        ("npm run build", "some words", None, None),
        ("pytest | grep -c x", "7", 0, None),
        ("nohup make > log &", "", 0, None),
    ],
)
def test_known_traps(*, command: str, output: str, code: int | None, passed: bool | None) -> None:
    assert verdict(command, output, code) is passed


# -- the page ----------------------------------------------------------------------------------


@pytest.mark.requirement("docs:alerts")
def test_the_alerts_page_has_every_recorded_case_and_its_misses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    page = PAGE.read_text(encoding="utf-8")
    copy = tmp_path / "alerts.md"
    copy.write_text(page.replace("| not told |", "| ✓ |"), encoding="utf-8")

    assert tool_outputs.drawn(page, CASES) == page, "run `make docs`"
    assert tool_outputs.main(["--check", str(copy)]) == 1
    assert "make docs" in capsys.readouterr().err
    assert tool_outputs.main([str(copy)]) == 0
    assert copy.read_text(encoding="utf-8") == page
    with pytest.raises(ValueError, match="the page needs the lines"):
        tool_outputs.drawn("# no markers\n", CASES)


@pytest.mark.requirement("docs:alerts")
def test_the_alerts_page_names_every_kind() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert [kind for kind in AlertKind if f"| `{kind}` |" not in page] == []
