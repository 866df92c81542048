"""Make all that a release has, in dist/ or another folder: ``python -m scripts.release [FOLDER]``.

The wheel and the source distribution; from a fresh installation of that wheel its packages as a
bill of materials (CycloneDX), the manual page, the completions and the JSON Schemas, with their
catalog as soon as the project has an address; and ``SHA256SUMS`` of all of these. Times are the
commit's, or ``SOURCE_DATE_EPOCH``: the same commit gives the same bytes, but for the bill, which
names what the package index had that day.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from scripts import web_page

DIST: Final = Path("dist")
SUMS: Final = "SHA256SUMS"
PRINTED: Final = {
    "subagents.bash": ("completion", "bash"),
    "_subagents": ("completion", "zsh"),
    "subagents.fish": ("completion", "fish"),
    "subagents.schema.json": ("config", "--schema"),
    "plan.schema.json": ("plan", "schema"),
}
"""What the installed program prints, under the names by which shells and editors look for it."""
CATALOG: Final = "schema-catalog.json"
PLAN_SUFFIXES: Final = ("toml", "yaml", "yml", "json")


def main(arguments: Sequence[str]) -> int:
    """Make a release; returns the exit code."""
    if (web_page.PLACE / web_page.DIGEST).read_text("utf-8") != web_page.digest():
        sys.stderr.write(f"{web_page.PLACE} is not built from {web_page.SOURCE}/: run `make web`\n")
        return 1
    out = Path(arguments[0]) if arguments else DIST
    with tempfile.TemporaryDirectory(prefix="subagents-release-") as name:
        release(out, Path(name) / "venv")
    sys.stdout.write((out / SUMS).read_text("utf-8"))
    return 0


def release(out: Path, venv: Path) -> Path:
    """Everything of a release, in ``out``.

    Args:
        out: Emptied first.
        venv: A new environment, into which the wheel is installed.

    Returns:
        The wheel.
    """
    env = dated()
    wheel = build(out, env)
    install(wheel, venv)
    bill = out / f"{wheel.name.rsplit('-', 3)[0]}.cdx.json"
    options = ["--pyproject", "pyproject.toml", "--output-reproducible", "--output-file", str(bill)]
    command("cyclonedx-py", "environment", *options, str(venv / "bin/python"), env=env)
    shutil.copyfile(venv / "share/man/man1/subagents.1", out / "subagents.1")
    for name, words in PRINTED.items():
        (out / name).write_bytes(_printed(venv, words))
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    if repository := project.get("urls", {}).get("Repository"):
        (out / CATALOG).write_text(f"{json.dumps(catalog(repository), indent=2)}\n", "utf-8")
    lines = [f"{_digest(each)}  {each.name}\n" for each in sorted(out.iterdir())]
    (out / SUMS).write_text("".join(lines), encoding="utf-8")
    return wheel


def build(out: Path, env: Mapping[str, str]) -> Path:
    """The wheel and the source distribution of this checkout, in ``out``; returns the wheel."""
    shutil.rmtree(out, ignore_errors=True)
    argv = (sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out))
    command(*argv, env=env, quiet=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def install(wheel: Path, venv: Path) -> None:
    """An environment of its own with the wheel and what it needs, and nothing else."""
    command(sys.executable, "-m", "venv", "--without-pip", str(venv))
    pip = (sys.executable, "-m", "pip", "--python", str(venv / "bin/python"))
    command(*pip, "install", "-qq", "--disable-pip-version-check", str(wheel))


def dated() -> dict[str, str]:
    """``SOURCE_DATE_EPOCH``: the commit's time; outside of a repository the start of 1980."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    argv = ["git", "log", "-1", "--format=%ct"]
    told = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()
    return {"SOURCE_DATE_EPOCH": given or told or "315532800"}


def catalog(repository: str) -> dict[str, object]:
    """The schemas as SchemaStore and editors list them, at the releases of a repository."""
    base = f"{repository}/releases/latest/download/"
    return {
        "$schema": "https://json.schemastore.org/schema-catalog.json",
        "version": 1,
        "schemas": [
            {
                "name": "subagents.toml",
                "description": "Configuration of subagents",
                "fileMatch": ["subagents.toml"],
                "url": f"{base}subagents.schema.json",
            },
            {
                "name": "subagents plan",
                "description": "A plan for subagents: runs and what they wait for",
                "fileMatch": [f"*.subagents.{suffix}" for suffix in PLAN_SUFFIXES],
                "url": f"{base}plan.schema.json",
            },
        ],
    }


def command(
    *argv: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, quiet: bool = False
) -> None:
    """Run a program that must end well.

    Raises:
        subprocess.CalledProcessError: It did not.
    """
    out = subprocess.DEVNULL if quiet else None
    subprocess.run(argv, check=True, env=environ(env or {}), cwd=cwd, stdout=out)


def environ(more: Mapping[str, str]) -> dict[str, str]:
    """Ours, without what a run or an environment of this checkout would add."""
    own = {n: v for n, v in os.environ.items() if not n.startswith(("SUBAGENTS_", "VIRTUAL_ENV"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{own.get('PATH', os.defpath)}"
    return {**own, "PATH": path, **more}


def _printed(venv: Path, words: Sequence[str]) -> bytes:
    argv = [str(venv / "bin/subagents"), *words]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, env=environ({})).stdout


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
