"""What ``subagents demo`` delegates: its directory, its four agents and their runs."""

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

import subagents
from subagents.cli.runs.submission import DEFAULT_AGENT
from subagents.config.paths import Paths
from subagents.domain.run.spec import (
    Artifact,
    Contract,
    OnFailure,
    RunSpec,
)
from subagents.extensions.demo import demo_worker

LABELS: Final = ("count", "lint", "report", "summary")
RETRIED: Final = "count"
ASKS: Final = "report"
LAST: Final = "summary"
ANSWER: Final = "size"
PATIENCE: Final = "30m"
"""How long its question stands where a person answers it."""
QUESTION: Final = "Sort the report by size or by name?"

REPORT_TASK: Final = f"""\
echo "report $SUBAGENTS_ATTEMPT_NUMBER $$" >> starts.log
order=$(subagents ask '{QUESTION}' --option size --option name --timeout 60s) || exit 1
case $order in size) key=-rn ;; *) key=-k2 ;; esac
find source -name '*.py' -exec wc -l {{}} + | grep -v ' total$' | sort "$key" > report.txt
echo "$(wc -l < report.txt) modules, sorted by $order."
"""
"""A shell line is a worker like any other, and may ask its requester."""

INDEX_SCHEMA: Final[dict[str, object]] = {
    "type": "array",
    "minItems": 4,
    "items": {
        "type": "object",
        "required": ["path", "bytes", "sha256"],
        "properties": {
            "path": {"type": "string"},
            "bytes": {"type": "integer", "minimum": 1},
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        },
    },
}


@dataclass(frozen=True, slots=True)
class DemoDirectory:
    """A directory that holds everything of one demo, with a daemon of its own."""

    root: Path

    @classmethod
    def create(cls) -> "DemoDirectory":
        """Make the directory, the configuration and a copy of this package's source in it."""
        directory = cls.with_sources()
        directory.configure(_config(_bin_dir(directory.root)))
        return directory

    @classmethod
    def with_sources(cls) -> "DemoDirectory":
        """Make the directory and a copy of this package's source in it."""
        directory = cls.empty()
        package = Path(subagents.__file__).parent
        shutil.copytree(
            package,
            directory.work / "source" / "subagents",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        return directory

    @classmethod
    def empty(cls) -> "DemoDirectory":
        """Make the directory alone."""
        return cls(Path(tempfile.mkdtemp(prefix="subagents-demo-")).resolve())

    def configure(self, text: str) -> None:
        """Write the configuration of the daemon that is started here."""
        self.paths.config_file.parent.mkdir(parents=True)
        self.paths.config_file.write_text(text, encoding="utf-8")

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def paths(self) -> Paths:
        return Paths.resolve({"SUBAGENTS_HOME": str(self.home)})

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """``environ`` with this home, and nothing else that is meant for another one."""
        kept = {name: value for name, value in environ.items() if not _is_ours(name)}
        return {**kept, "SUBAGENTS_HOME": str(self.home)}

    def remove(self) -> None:
        """Delete all of it, also a socket that had to lie elsewhere because of a long TMPDIR."""
        for directory in (self.paths.socket.parent, self.root):
            shutil.rmtree(directory, ignore_errors=True)

    def modules(self) -> list[Path]:
        return sorted((self.work / "source").rglob("*.py"))


def _is_ours(name: str) -> bool:
    return name.startswith("SUBAGENTS_")


def _bin_dir(root: Path) -> str:
    """Where the workers find ``subagents``: this installation's, whatever else is on PATH."""
    own = Path(sys.executable).parent
    if (own / "subagents").exists():
        return str(own)
    script = root / "bin" / "subagents"
    script.parent.mkdir()
    modules = shlex.quote(os.pathsep.join(each for each in sys.path if each))
    command = f'PYTHONPATH={modules} exec {shlex.quote(sys.executable)} -m subagents "$@"'
    script.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
    script.chmod(0o700)
    return str(script.parent)


def _config(programs: str) -> str:
    path = os.pathsep.join((programs, os.environ.get("PATH", os.defpath)))
    worker = str(Path(demo_worker.__file__))
    commands = {name: [sys.executable, "-I", worker, name] for name in LABELS if name != ASKS} | {
        ASKS: ["sh", "-c", "{task}"]
    }
    return "\n".join(
        f"[agents.{name}]\n"
        'runtime = "command"\n'
        f"command = {json.dumps(command)}\n"
        f"env = {{ PATH = {json.dumps(path)} }}\n"
        for name, command in commands.items()
    )


def fleet(directory: DemoDirectory) -> list[RunSpec]:
    """Three kinds of work and a fan-in, each with a contract; all or none are stored."""
    modules = len(directory.modules())
    counts = Artifact(
        path="counts.json", json=True, min_items=modules, required_keys=("module", "lines")
    )
    checked = Artifact(path="lint.json", json=True, required_keys=("modules", "findings"))
    runs = [
        RunSpec(
            task="Count the lines of every module into counts.json",
            label=RETRIED,
            verification=Contract(artifacts=(counts,), on_failure=OnFailure.RETRY_ONCE),
        ),
        RunSpec(
            task="Look for long lines and missing docstrings, into lint.json",
            label="lint",
            verification=Contract(artifacts=(checked,)),
        ),
        RunSpec(
            task=REPORT_TASK,
            label=ASKS,
            verification=Contract(artifacts=(Artifact(path="report.txt", min_bytes=500),)),
        ),
        RunSpec(
            task="Write summary.md and index.json from what the others found",
            label=LAST,
            depends_on=tuple(label for label in LABELS if label != LAST),
            include_dependency_result=True,
            verification=Contract(
                artifacts=(
                    Artifact(path="summary.md", min_bytes=400),
                    Artifact(path="index.json", schema=INDEX_SCHEMA),
                )
            ),
        ),
    ]
    return [
        msgspec.structs.replace(run, agent_id=run.label, cwd=str(directory.work)) for run in runs
    ]


def fleet_here(directory: DemoDirectory) -> list[RunSpec]:
    """The same for a daemon whose configuration knows no demo: each is a line for a shell."""
    worker, path = (
        shlex.join((sys.executable, "-I", demo_worker.__file__)),
        _bin_dir(directory.root),
    )
    return [
        msgspec.structs.replace(
            run,
            agent_id=DEFAULT_AGENT,
            task=f"export PATH={shlex.quote(path)}:$PATH\n{run.task.replace('60s', PATIENCE)}"
            if run.label == ASKS
            else f"# {run.task}\nexec {worker} {run.label}",
        )
        for run in fleet(directory)
    ]
