"""Does this version take over from 0.1.0 while workers are alive? With real processes.

``python -m tests.upgrade.run [OLD_SUBAGENTS]``: two scenarios, `tests/upgrade/takeover.py` and
`tests/upgrade/mixed_versions.py`, each in a temporary home. One line per check; exits 1 when one
failed. About 90 seconds, on Linux. The new version is the `subagents` beside this Python. Without
OLD_SUBAGENTS the old one is made from this repository's history (which a shallow clone lacks) the
first time, in ~/.cache/subagents-upgrade. ``make upgrade`` calls it.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.upgrade.mixed_versions import mixed_versions
from tests.upgrade.takeover import Takeover
from tests.upgrade.versioned_home import VersionedHome, tell

# The last commit that is version 0.1.0: what people have whose daemon is upgraded.
FIRST_VERSION = "d8995c8"
ROOT = Path(__file__).parents[2]
CACHE = Path.home() / ".cache" / "subagents-upgrade"


def first_version() -> Path:
    """Its `subagents`; installed when it is not there yet."""
    program = CACHE / "bin" / "subagents"
    if program.exists():
        return program
    tell(f"Installing 0.1.0 into {CACHE} (once)")
    archive = subprocess.run(
        ["git", "-C", ROOT, "archive", "--format=tar", FIRST_VERSION],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    with tempfile.TemporaryDirectory() as source, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(source, filter="data")
        subprocess.run([sys.executable, "-m", "venv", "--clear", CACHE], check=True)
        subprocess.run([CACHE / "bin" / "python", "-m", "pip", "install", "-q", source], check=True)
    return program


def main() -> None:
    if len(sys.argv) > 2 or any(each.startswith("-") for each in sys.argv[1:]):
        sys.exit(__doc__)
    old = Path(sys.argv[1]).absolute() if sys.argv[1:] else first_version()
    new = Path(sys.executable).absolute().parent / "subagents"
    failed: list[str] = []
    tell("1. kill -9 of the old daemon, then the new one takes over")
    with VersionedHome(old, new, failed) as home:
        Takeover(home).run()
    tell("2. the new command with the old daemon, then a clean change")
    with VersionedHome(old, new, failed) as home:
        mixed_versions(home)
    tell("\n  ".join([f"{len(failed)} checks failed", *failed]))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
