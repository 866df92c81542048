"""Make a release, install its wheel as users do, and run its demo there.

    python -m scripts.package_check

Exit code 1: an installation or its demo failed, or there is more in it than ``PACKAGES_MAX`` and
``KIB_MAX``. What was made stays in dist/.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from scripts.release import DIST, command, environ, release

FIRST_RESULT_S: Final = 15.0
"""From nothing but uv to the first result; said, not enforced: networks differ."""
PACKAGES_MAX: Final = 14
"""With our own."""
KIB_MAX: Final = 32_000
"""29,900 when it was set, and room for what new releases of them add."""
OF_VENV: Final = ("pip", "pip-*", "setuptools", "setuptools-*", "_distutils_hack", "pkg_resources")
"""What a new environment has in it already."""


def main() -> int:
    """Check both installers; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="subagents-package-") as name:
        root = Path(name)
        pip = root / "pip"
        wheel = release(DIST, pip)
        report("pip: installed", pip)
        tried = [is_slim(pip), demo(pip, root)]
        if shutil.which("uv") is None:
            sys.stdout.write("uv is not installed here: only pip was tried\n")
        else:
            tried += [demo(by_uv(wheel, root), root), upgrades(root)]
    return 0 if all(tried) else 1


def uv_environ(root: Path, name: str) -> dict[str, str]:
    """For tools that are below this folder alone, with a cache of our own."""
    return {
        "UV_CACHE_DIR": str(root / "cache"),
        "UV_TOOL_DIR": str(root / name),
        "UV_TOOL_BIN_DIR": str(root / name / "bin"),
    }


def by_uv(wheel: Path, root: Path) -> Path:
    """The tool's environment, by uv with an empty cache."""
    began = time.monotonic()
    env = uv_environ(root, "tools")
    command("uv", "tool", "install", "-q", "--python", sys.executable, str(wheel), env=env)
    venv = root / "tools" / "subagents"
    report(f"uv: installed in {time.monotonic() - began:.0f} s", venv)
    program = str(venv / "bin/subagents")
    home = {"SUBAGENTS_HOME": str(root / "first")}
    try:
        command(program, "run", "echo hello", env=home, cwd=root)
    finally:
        command(program, "down", "--yes", env=home, cwd=root)
    seconds = time.monotonic() - began
    sys.stdout.write(f"uv: first result after {seconds:.0f} s (aim: {FIRST_RESULT_S:.0f})\n")
    return venv


def upgrades(root: Path) -> bool:
    """Whether ``uv tool upgrade`` installs what changed in the checkout, each time."""
    env, checkout = uv_environ(root, "upgraded"), root / "checkout"
    command("git", "clone", "-q", str(DIST.parent), str(checkout))
    command("uv", "tool", "install", "-q", "--python", sys.executable, str(checkout), env=env)
    (site,) = (root / "upgraded" / "subagents" / "lib").glob("python*/site-packages")
    name = "subagents/extensions/__init__.py"
    # Twice: the first one builds it anew in any case.
    for change in ("# first\n", "# second\n"):
        with (checkout / "src" / name).open("a", encoding="utf-8") as source:
            source.write(change)
        command("uv", "tool", "upgrade", "-q", "subagents", env=env)
        if not (site / name).read_text("utf-8").endswith(change):
            sys.stdout.write("uv tool upgrade: a change in src/ is not installed\n")
            return False
    return True


def demo(venv: Path, root: Path) -> bool:
    """Whether the installed program's demo finds all of it true, and its manual page is there."""
    done = subprocess.run(
        [str(venv / "bin/subagents"), "demo"],
        cwd=root,
        env=environ({"SUBAGENTS_HOME": str(root / "home")}),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:] or ["nothing"]
    page = venv / "share/man/man1/subagents.1"
    sys.stdout.write(f"{venv.name}: demo: exit code {done.returncode}; {last[0]}\n")
    if not page.exists():
        sys.stdout.write(f"{venv.name}: the manual page is missing\n")
    return done.returncode == 0 and page.exists()


def is_slim(venv: Path) -> bool:
    """Whether the packages that came along are as few and as small as they were."""
    (site,) = (venv / "lib").glob("python*/site-packages")
    excluded = [f"--exclude={each}" for each in ("__pycache__", *OF_VENV)]
    done = subprocess.run(
        ["du", "-sk", *excluded, str(site)], stdout=subprocess.PIPE, text=True, check=True
    )
    kib = int(done.stdout.split()[0])
    packages = [
        each.name
        for each in site.glob("*.dist-info")
        if not any(each.match(pattern) for pattern in OF_VENV)
    ]
    sys.stdout.write(
        f"{len(packages)} packages (at most {PACKAGES_MAX}),"
        f" {kib:,} KiB without bytecode (at most {KIB_MAX:,})\n"
    )
    return len(packages) <= PACKAGES_MAX and kib <= KIB_MAX


def report(installed: str, venv: Path) -> None:
    """One line: what was installed how, and what it takes on the disk."""
    size = sum(each.lstat().st_size for each in venv.rglob("*") if each.is_file())
    sys.stdout.write(f"{installed}, {size / 1e6:.0f} MB\n")


if __name__ == "__main__":
    sys.exit(main())
