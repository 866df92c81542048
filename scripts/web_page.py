"""Build the web page from web/ into the package, where the daemon and a wheel find it.

    python -m scripts.web_page [--if-possible]

Each file is compressed once, here: what is served, and what a wheel carries, is that. Needs npm,
its registry for what web/package-lock.json names, and a Python with our package: the page's types
are those of its OpenAPI document. With ``--if-possible`` a machine without npm is told what is
missing, and the exit code is 0: then the package has the API, and in place of the page one that
says how to build it.
"""

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SOURCE: Final = Path("web")
BUILT: Final = SOURCE / "dist"
PLACE: Final = Path("src/subagents/extensions/web/static")


def main(arguments: Sequence[str]) -> int:
    """Build; returns the exit code."""
    npm = shutil.which("npm")
    if npm is None:
        sys.stderr.write(
            "npm is not here (Node.js 20.19 or later has it): the web page is not built;"
            f" {f'the one in {PLACE} stays' if PLACE.exists() else 'the package has none'}\n"
        )
        return 0 if "--if-possible" in arguments else 1
    env = {**os.environ, "PYTHON": sys.executable}
    for argv in ([npm, "ci", "--no-audit", "--no-fund"], [npm, "run", "build"]):
        done = subprocess.run(argv, cwd=SOURCE, check=False, env=env)
        if done.returncode != 0:
            sys.stderr.write(f"{' '.join(argv)} failed in {SOURCE}/\n")
            return done.returncode
    total = pack(BUILT, PLACE)
    sys.stdout.write(f"{PLACE}: {total:,} bytes, compressed\n")
    return 0


def pack(built: Path, place: Path) -> int:
    """Put each file of ``built`` into ``place``, compressed, instead of what is there.

    Returns:
        How many bytes that takes.
    """
    draft = place.with_name(f"{place.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    total = 0
    for file in sorted(each for each in built.rglob("*") if each.is_file()):
        packed = gzip.compress(file.read_bytes(), mtime=0)
        target = draft / f"{file.relative_to(built)}.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(packed)
        total += len(packed)
    shutil.rmtree(place, ignore_errors=True)
    draft.rename(place)
    return total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
