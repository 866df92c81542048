"""How builds and tests ended: by the exit code, and by what they print."""

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
from tests.domain.alerts.detectors.detector_inputs import see, shell

from subagents.domain.alerts.detectors.findings import BuildResult
from subagents.domain.run.alert import AlertKind
from subagents.domain.run.worker_output import ToolUse
from subagents.extensions.detectors.build_tools import BuildKind
from subagents.extensions.detectors.builds import result_of

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / tool_outputs.FOLDER
PAGE: Final = ROOT / tool_outputs.PAGE
CASES: Final = tool_outputs.cases(FOLDER)

NOT_TOLD_OR_COUNTED: Final = {
    ("bun-build-fail", "code"): "not counted",
    ("bun-build-fail", "text"): "not counted",
    ("deno-check", "code"): "not counted",
    ("deno-check", "text"): "not counted",
    ("eslint-json", "code"): "not counted",
    ("eslint-json", "text"): "missed",
    ("eslint-no-config", "text"): "missed",
    ("gcc-warning", "text"): "missed",
    ("go-build-o", "text"): "missed",
    ("go-test-json", "code"): "not counted",
    ("go-test-json", "text"): "missed",
    ("javac-warning", "text"): "missed",
    ("make-ignored-error", "text"): "missed",
    ("make-j-pass", "code"): "missed",
    ("make-j-pass", "text"): "missed",
    ("make-pass", "text"): "missed",
    ("make-then-run-fails", "code"): "missed",
    ("make-then-run-fails", "text"): "missed",
    ("node-throws", "text"): "missed",
    ("npm-build-pass", "text"): "missed",
    ("npm-echo-pass", "text"): "missed",
    ("npm-exit-only", "text"): "missed",
    ("pyright-json", "code"): "not counted",
    ("pyright-json", "text"): "missed",
    ("pytest-and-echo", "code"): "missed",
    ("pytest-and-echo", "text"): "missed",
    ("pytest-exit-in-test", "text"): "missed",
    ("pytest-grep-nothing", "code"): "missed",
    ("pytest-grep-nothing", "text"): "missed",
    ("pytest-head", "code"): "missed",
    ("pytest-head", "text"): "missed",
    ("rake-default", "text"): "missed",
}
"""Cases that are not judged as a reader would: pinned, so that they can only become fewer. A
compiler or ``make`` that printed no error, and whose code is not known, says nothing."""


def ran(command: str, output: str = "", code: int | None = None) -> BuildResult | None:
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
    assert len(missed) <= 32
    assert len(CASES) >= 320


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


# -- words --------------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:commands")
@pytest.mark.parametrize(
    ("command", "work", "family"),
    [
        ("make", BuildKind.BUILD, "make"),
        ("make -C x test", BuildKind.TEST, "make test"),
        ("npm test", BuildKind.TEST, "npm test"),
        ("npm run build:prod", BuildKind.BUILD, "npm build:prod"),
        ("npm run typecheck", BuildKind.TYPES, "npm typecheck"),
        ("cargo clippy", BuildKind.LINT, "cargo clippy"),
        ("mypy .", BuildKind.TYPES, "mypy"),
        ("ruff check . && mypy . && pytest", BuildKind.CHECK, "ruff check + mypy + pytest"),
        ("pytest tests/a.py && pytest tests/b.py", BuildKind.TEST, "pytest"),
    ],
)
def test_a_build_has_a_kind_and_a_family(command: str, work: BuildKind, family: str) -> None:
    result = ran(command, code=0)

    assert result is not None
    assert (result.work, result.family) == (work, family)


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


# -- alerts ------------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:builds")
def test_a_build_that_failed_says_how_many_errors_and_where() -> None:
    lines = [f"src/bridge.ts({n},1): error TS2304: Cannot find name 'x'." for n in range(12)]
    (alert,) = see(shell("npm run build", "\n".join(lines), code=2))[1]

    assert alert.text == "🔨 Build failed: 12 errors in bridge.ts"
    assert alert.fields == {
        "command": "npm run build",
        "passed": False,
        "errors": 12,
        "summary": "12 errors in bridge.ts",
    }
    assert alert.key == "build_result:1.1"


@pytest.mark.requirement("detectors:builds")
def test_a_build_that_passed_is_told_and_passing_again_is_not() -> None:
    passed, failed = shell("cd web && npm run build"), shell("npm run build", "boom", code=2)
    _, alerts = see(passed, passed, shell("pytest -q", "2 passed in 0.1s"), passed, failed, passed)

    assert [each.text for each in alerts] == [
        "🔨 Build passed ✅ (0 errors)",
        "🔨 Tests passed ✅ (2 passed)",
        "🔨 Build failed: exit code 2",
        "🔨 Build passed ✅ (0 errors)",
    ]
    assert alerts[0].fields == {
        "command": "npm run build",
        "passed": True,
        "errors": 0,
        "summary": "Build passed",
    }


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


NOTES: Final = """    1 | int f(void){ return a; } // all tests passed, no errors
      |                     ^
a.c:1:21: note: each undeclared identifier is reported only once for each function it appears in"""


@pytest.mark.requirement("detectors:silence")
@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("gcc -c a.c 2>&1 | tail -3", NOTES),
        ("gcc -c a.c 2>&1 | tail -1", ""),
        ("g++ -c a.c 2>&1 | tee log | tail -2", "      |                     ^"),
        (
            "rustc a.rs 2>&1 | tail -1",
            "For more information about this error, try `rustc --explain",
        ),
        ("npx tsc --noEmit | tail -2", "  3   return x\n             ~"),
        ("npx tsc --noEmit | cat", ""),
        ("javac A.java 2>&1 | tail -2", "  symbol:   variable y\n  location: class A"),
        ("make -j4 2>&1 | tail -3", "cc -c b.c\ncc -c c.c"),
        ("make 2>&1 | head -2", "[ 50%] Building C object\n[100%] Built target lib"),
        ("cargo build 2>&1 | grep -v warning", "   Compiling app v0.1.0"),
        ("go build ./... 2>&1 | head -1", "# example.com/app"),
        ("eslint . | tail -1", ""),
        ("mypy . | tail -1", ""),
        ("gcc -c a.c 2>/dev/null || true", ""),
        ("for f in *.c; do gcc -c $f; done", ""),
        ("if tsc; then :; fi", ""),
        ("make", "cc -c b.c"),
        ("make || true", "cc -c b.c"),
        ("make > log 2>&1; tail -2 log", "cc -c b.c\nno problems"),
        ("make | sed s/x/y/", "Build succeeded."),
        ("jest | tail -3", "Tests:       2 passed, 2 total\nSnapshots:   0 total"),
        ("vitest run | grep Tests", "      Tests  2 passed (2)"),
        ("mocha | grep passing", "  2 passing (4ms)"),
        ("go test ./... | grep ok", "ok  \texample.com/app\t0.1s"),
        (
            "dotnet test | tail -1",
            "Passed!  - Failed:     0, Passed:     2, Skipped:     0, Total: 2",
        ),
        ("pre-commit run -a | tail -1", "trailing whitespace.....................Passed"),
        ("npx playwright test | tail -1", "  2 passed (4.1s)"),
        ("meson test -C b | tail -2", "Skipped:            1\nTimeout:            0"),
        ("bats t | tail -1", "ok 3 adds"),
        ("prove t | head -1", "t/a.t .. ok"),
        ("perl t/a.t || true", "1..3\nok 1 - adds\nok 2 - removes"),
        ("bazel test //... | head -1", "//app:io_test          PASSED in 0.2s"),
        ("cucumber || true", "3 scenarios (1 pending, 2 passed)\n9 steps (1 pending, 8 passed)"),
        ("{ pytest a; pytest b; } | tail -1", "2 passed in 0.01s"),
        ("ruff check . | tail -1; mypy . | tail -1", "All checks passed!\nfoo"),
        ("make 2>&1 | tail -1; echo 'Build succeeded.'", "cc -c b.c\nBuild succeeded."),
        ("pytest -q > log; echo all tests passed", "all tests passed"),
        ("cmake --build b && ./b/unit_tests | tail -2", "[100%] Built target app\ncart: 2"),
        (
            "cargo test 2>&1 | tail -1",
            "    Finished `test` profile [unoptimized] target(s) in 0.1s",
        ),
    ],
)
def test_silence_and_words_that_a_failure_leaves_too_are_no_success(
    command: str, output: str
) -> None:
    assert verdict(command, output, 0 if "|" in command or ";" in command else None) is None


@pytest.mark.requirement("detectors:silence")
@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("pytest 2>&1 | grep passed", "=== 3 passed in 0.10s ==="),
        ("pytest 2>/dev/null | tail -1", "3 passed, 1 skipped in 0.10s"),
        ("ctest | tail -3", "100% tests passed, 0 tests failed out of 2\n\nTotal Test time"),
        (
            "cargo build 2>&1 | tail -1",
            "    Finished `dev` profile [unoptimized] target(s) in 0.1s",
        ),
        ("ninja -C b | tail -1", "[3/3] Linking target app"),
        ("jest | tail -5", "Test Suites: 1 passed, 1 total\nTests:       2 passed, 2 total"),
        ("jest | cat", "Tests:       2 passed, 2 total"),
        ("mocha | tail -3", "  2 passing (4ms)"),
        ("go test ./... | tail -1", "ok  \texample.com/app\t0.1s"),
        ("./gradlew test | tail -2", "BUILD SUCCESSFUL in 1s\n2 actionable tasks"),
        ("bats t.bats | tail -3", "1..2\nok 1 adds\nok 2 prints # skip no printer"),
        ("npx tape t.js | tail -4", "# tests 2\n# pass  2\n\n# ok"),
        ("perl t/a.t || true", "1..2\nok 1 - adds\nnot ok 2 - later # TO\x44O later"),
        ("bazel test //... | tail -1", "Executed 0 out of 2 tests: 2 tests pass."),
        ("dotnet build | tail -1", "Build succeeded in 3.2s"),
        ("npx cucumber-js | tail -3", "2 scenarios (1 skipped, 1 passed)\n2 steps (2 passed)"),
        ("gcc -c a.c || echo failed", "  "),
        ("gcc -c a.c", ""),
        ("set -o pipefail; gcc -c a.c | tail -3", NOTES),
        ("make && echo 'Build succeeded.' || true", "cc -c b.c\nBuild succeeded."),
    ],
)
def test_positive_evidence_is_a_success_also_behind_a_pipe(command: str, output: str) -> None:
    assert verdict(command, output, 0 if "|" in command or ";" in command else None) is True


@pytest.mark.requirement("detectors:silence")
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, case in CASES.items()
        # Of these the shell or a second program failed, not the tests.
        if case.passed is False and name not in {"pytest-coverage-too-low", "pytest-pipefail"}
    ],
)
def test_no_part_of_the_output_of_a_failure_is_told_as_passed(name: str) -> None:
    case = CASES[name]
    parts = [(f"grep x{number}", line) for number, line in enumerate(case.output)]
    for number in range(1, 9):
        parts.append((f"tail -{number}", "\n".join(case.output[-number:])))
        parts.append((f"head -{number}", "\n".join(case.output[:number])))
    told = [part for way, part in parts if verdict(f"{{ {case.command}\n}} 2>&1 | {way}", part, 0)]

    assert told == []


# -- the page ----------------------------------------------------------------------------------


@pytest.mark.requirement("docs:alerts")
def test_the_page_of_recorded_outputs_has_every_case_and_its_misses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    page = PAGE.read_text(encoding="utf-8")
    copy = tmp_path / "page.md"
    copy.write_text(page.replace("| missed |", "| ✓ |"), encoding="utf-8")

    assert tool_outputs.drawn(page, CASES) == page, "run `make docs`"
    assert tool_outputs.main(["--check", str(copy)]) == 1
    assert "make docs" in capsys.readouterr().err
    assert tool_outputs.main([str(copy)]) == 0
    assert copy.read_text(encoding="utf-8") == page
    with pytest.raises(ValueError, match="the page needs the lines"):
        tool_outputs.drawn("# no markers\n", CASES)


@pytest.mark.requirement("docs:alerts")
def test_the_alerts_page_names_every_kind() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")

    assert [kind for kind in AlertKind if f"| `{kind}` |" not in page] == []
