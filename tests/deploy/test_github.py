"""The files for GitHub are of its forms, and the scripts in them do what they say.

Nothing here asks GitHub. A script gets its step's variables as GitHub would set them.
"""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import json5
import pytest
from ruamel.yaml import YAML

from subagents.cli.command_table import command_of, commands, target_of
from subagents.cli.parser import declared
from subagents.client.daemon_start import holder
from subagents.config.paths import Paths

ROOT: Final = Path(__file__).parents[2]
FORMS: Final = {
    ".github/dependabot.yml": "vendor.dependabot",
    ".github/workflows/ci.yml": "vendor.github-workflows",
    ".github/ISSUE_TEMPLATE/bug.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/idea.yml": "vendor.github-issue-forms",
    "run/action.yml": "vendor.github-actions",
    "deploy/compose.yaml": "vendor.compose-spec",
}
NO_FLAG: Final = {"task", "flags", "working-directory", "artifact"}
"""Inputs of the action that are no flag of `subagents run`."""

_EXPRESSION: Final = re.compile(r"\$\{\{ *(.+?) *\}\}")


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(ROOT / name)
    return found


def scripts(name: str) -> dict[str, str]:
    """Every script of a workflow or an action, by job and place."""
    found = document(name)
    jobs = found.get("jobs") or {"action": found["runs"]}
    return {
        f"{job}[{number}]": step["run"]
        for job, each in jobs.items()
        for number, step in enumerate(each["steps"])
        if "run" in step
    }


class Job:
    """The action as a step of a job, on this machine: what GitHub would do with its scripts."""

    def __init__(self, root: Path, **inputs: str) -> None:
        self.action = document("run/action.yml")
        self.work, self.temp = root / "work", root / "temp"
        self.place = self.temp / "subagents"
        self.work.mkdir()
        self.temp.mkdir()
        self._known = {"runner.temp": str(self.temp), "github.action_path": str(ROOT / "run")}
        for name, each in self.action["inputs"].items():
            value = inputs.get(name.replace("-", "_"), each.get("default"))
            assert value is not None, f"{name} is required"
            self._known[f"inputs.{name}"] = value

    def use_this_program(self) -> None:
        """Instead of installing another."""
        binaries = self.place / "venv" / "bin"
        binaries.mkdir(parents=True)
        (binaries / "subagents").symlink_to(Path(sys.executable).with_name("subagents"))

    def run(self) -> tuple[int, str]:
        """All steps; the exit code and the output of the task's own."""
        codes: dict[str, tuple[int, str]] = {}
        for step in self.action["runs"]["steps"]:
            if "run" in step:
                codes[step["name"]] = self._script(step)
        assert codes["Keep the records"][0] == 0, codes
        assert holder(Paths.resolve({"SUBAGENTS_HOME": str(self.place / "home")})) is None
        return codes["Run the task"]

    def file(self, name: str) -> str:
        return (self.place / "kept" / name).read_text("utf-8")

    def _script(self, step: Mapping[str, Any]) -> tuple[int, str]:
        script = self.temp / "script.sh"
        script.write_text(step["run"])
        assert step["shell"] == "bash"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.work / self._said(step.get("working-directory", ".")),
            env={
                "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                "HOME": str(self.temp),
                "GITHUB_OUTPUT": str(self.temp / "output"),
                "GITHUB_STEP_SUMMARY": str(self.temp / "summary"),
                **{name: self._said(value) for name, value in step["env"].items()},
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
        )
        return done.returncode, done.stdout + done.stderr

    def _said(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: self._known[found[1]], text)


@pytest.mark.requirement("github:forms")
@pytest.mark.parametrize("name", FORMS)
def test_each_file_is_of_the_form_that_its_reader_publishes(name: str) -> None:
    argv = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", FORMS[name]]
    done = subprocess.run(
        [*argv, str(ROOT / name)], capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.requirement("github:scripts")
@pytest.mark.parametrize("name", ["run/action.yml", ".github/workflows/ci.yml"])
def test_every_script_is_one_of_bash_and_has_no_text_of_others_in_it(name: str) -> None:
    """What an input or a branch says reaches a script in a variable, where it is no code."""
    found = scripts(name)

    assert found
    for place, script in found.items():
        assert "${{" not in script, place
        done = subprocess.run(
            ["bash", "-n"], input=script, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, f"{place}: {done.stderr}"


@pytest.mark.requirement("github:scripts")
@pytest.mark.parametrize("name", ["run/action.yml", ".github/workflows/ci.yml"])
def test_every_action_of_others_is_named_by_its_commit(name: str) -> None:
    """A tag can be moved to something else."""
    used = re.findall(r"uses: (.+)", (ROOT / name).read_text("utf-8"))

    assert used
    for each in used:
        assert each == "./run" or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v[\d.]+", each), each


@pytest.mark.requirement("github:action")
def test_each_input_of_the_action_is_a_flag_of_run_and_is_passed_on() -> None:
    action = document("run/action.yml")
    step = next(each for each in action["runs"]["steps"] if each.get("id") == "run")

    command = command_of("run")
    assert command is not None
    flags = {name for each in declared(target_of(command)) for name in each.names}
    for name in action["inputs"].keys() - NO_FLAG:
        assert f"--{name}" in flags
        variable = name.upper().replace("-", "_")
        assert step["env"][variable] == f"${{{{ inputs.{name} }}}}"
        assert f'add "${variable}" --{name}' in step["run"]


@pytest.mark.requirement("github:action")
def test_the_page_explains_every_input_and_its_example_gives_no_other() -> None:
    page = (ROOT / "docs" / "howto" / "ci.md").read_text("utf-8").partition("## GitHub Actions")[2]
    (block, *_) = re.findall(r"```yaml\n(jobs:.*?)```", page, re.DOTALL)
    steps = YAML(typ="safe").load(block)["jobs"]["tests"]["steps"]
    action = document("run/action.yml")

    (used,) = [each for each in steps if each["uses"].startswith("OWNER/subagents/run@v")]
    required = {name for name, each in action["inputs"].items() if each.get("required")}
    assert required <= used["with"].keys() <= action["inputs"].keys()
    rows = re.findall(r"^\| (`.+?`) \|", page, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == {*action["inputs"]}
    assert all(f"`{name}`" in page for name in action["outputs"])


@pytest.mark.requirement("github:action")
def test_the_action_runs_a_task_checks_its_contract_and_keeps_the_records(
    tmp_path: Path,
) -> None:
    job = Job(
        tmp_path,
        task='echo one > "a file.txt"\necho done',
        verify="a file.txt",
        verify_cmd='grep -q one "a file.txt"\ntrue',
        flags="--verify-regex\n^one\n--label\ncounted",
    )
    job.use_this_program()

    code, said = job.run()

    assert code == 0, said
    assert job.file("result.txt") == "done\n"
    (run,) = json.loads(job.file("runs.json"))["runs"]
    assert (run["label"], run["status"], run["attempts"]) == ("counted", "ok", 1)
    assert (job.temp / "summary").read_text("utf-8").startswith("```text\n")
    with tarfile.open(job.place / "kept" / "support.tar.gz") as bundle:
        assert bundle.getnames()
    assert f"result-file={job.place}/kept/result.txt" in (job.temp / "output").read_text("utf-8")


@pytest.mark.requirement("github:action")
def test_a_contract_that_is_not_met_fails_the_step_and_no_input_is_code(tmp_path: Path) -> None:
    job = Job(tmp_path, task="true", verify='$(touch pwned)"; touch pwned; "', retry="1")
    job.use_this_program()

    code, said = job.run()

    assert code == 6, said
    (run,) = json.loads(job.file("runs.json"))["runs"]
    assert run["reason"] == "verification_failed"
    assert [*job.work.iterdir()] == []


@pytest.mark.requirement("github:action")
def test_an_unknown_flag_fails_the_step_and_the_records_are_kept_all_the_same(
    tmp_path: Path,
) -> None:
    job = Job(tmp_path, task="true", flags="--no-such-flag")
    job.use_this_program()

    code, said = job.run()

    assert code == 2
    assert "--no-such-flag" in said
    assert json.loads(job.file("runs.json"))["runs"] == []
    assert not (job.temp / "summary").exists()


@pytest.mark.requirement("github:action")
def test_where_nothing_could_be_installed_the_step_fails_and_there_are_no_records(
    tmp_path: Path,
) -> None:
    job = Job(tmp_path, task="true")
    job.place.write_text("no folder can be made here")

    code, said = job.run()

    assert code != 0, said
    assert job.place.is_file()


@pytest.mark.requirement("github:action")
@pytest.mark.tier("all")
def test_the_action_installs_the_version_that_it_is_part_of(tmp_path: Path) -> None:
    job = Job(
        tmp_path,
        task='"$SUBAGENTS" --version',
        flags=f"--env\nSUBAGENTS={tmp_path}/temp/subagents/venv/bin/subagents",
    )

    code, said = job.run()

    assert code == 0, said
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert version in job.file("result.txt")


@pytest.mark.requirement("github:forms")
def test_a_report_of_a_bug_is_asked_for_a_support_bundle_and_forms_name_commands_there_are() -> (
    None
):
    known = {each.name.split()[0] for each in commands()}
    (needed,) = [
        each["attributes"]["label"]
        for each in document(".github/ISSUE_TEMPLATE/bug.yml")["body"]
        if each.get("id") == "bundle" and each["validations"]["required"]
    ]

    assert "`subagents doctor --bundle`" in needed
    for file in (ROOT / ".github").rglob("*.*"):
        assert {*re.findall(r"`subagents ([a-z][a-z-]*)", file.read_text("utf-8"))} <= known, file


@pytest.mark.requirement("github:workflow")
def test_a_tag_that_is_not_the_version_makes_no_release() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    (script,) = [
        each
        for each in scripts(".github/workflows/ci.yml").values()
        if 'GITHUB_REF_NAME" =' in each
    ]

    for tag, code in ((f"v{version}", 0), (f"v{version}1", 1)):
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=ROOT,
            env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "GITHUB_REF_NAME": tag},
            check=False,
        )
        assert done.returncode == code


@pytest.mark.requirement("github:workflow")
def test_what_the_workflow_and_the_devcontainer_run_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    container = json5.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    texts = [*scripts(".github/workflows/ci.yml").values(), container["postCreateCommand"]]

    assert ".ci/run" in texts
    assert {name for each in texts for name in re.findall(r"^make (\S+)", each)} <= targets
    jobs = document(".github/workflows/ci.yml")["jobs"]
    assert {*jobs["release"]["needs"]} == jobs.keys() - {"release"}
