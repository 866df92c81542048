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

from subagents.domain.alerts.detectors.builds import Result, result_of
from subagents.domain.alerts.detectors.commands.build_tools import BuildKind
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
    ("eslint-json", "text"): "missed",
    ("eslint-no-config", "text"): "missed",
    ("go-build-o", "text"): "missed",
    ("go-test-json", "code"): "not counted",
    ("go-test-json", "text"): "missed",
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
"""Cases that are not judged as a reader would: pinned, so that they can only become fewer."""


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


# -- the page ----------------------------------------------------------------------------------


@pytest.mark.requirement("docs:alerts")
def test_the_alerts_page_has_every_recorded_case_and_its_misses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    page = PAGE.read_text(encoding="utf-8")
    copy = tmp_path / "alerts.md"
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
    page = PAGE.read_text(encoding="utf-8")

    assert [kind for kind in AlertKind if f"| `{kind}` |" not in page] == []
