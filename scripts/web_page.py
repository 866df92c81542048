"""Build the web page from web/ into the package, where the daemon and every wheel find it.

    python -m scripts.web_page            build it (needs npm and its registry)
    python -m scripts.web_page --check    exit 1 where the page in the package is not of web/

What is built is part of the checkout, so that installing needs no npm: each file is compressed
once, here, and ``sources.sha256`` beside them says of which sources they are. The check builds
where there is npm, and compares what the browser would get; elsewhere it compares the sources
alone. A build needs a Python with our package: the page's types are those of its OpenAPI document.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

SOURCE: Final = Path("web")
BUILT: Final = SOURCE / "dist"
PLACE: Final = Path("src/subagents/extensions/web/static")
DIGEST: Final = "sources.sha256"
MADE: Final = frozenset({"node_modules", "dist", "schema.ts"})
"""Names of what is fetched or built below ``web/``; tests are no part of the page, either."""


def main(arguments: Sequence[str]) -> int:
    """Build or check; returns the exit code."""
    is_check = "--check" in arguments
    npm = shutil.which("npm")
    if npm is None:
        sys.stderr.write("npm is not here (Node.js 20.19 or later has it): no page is built\n")
        return _told(is_current=(PLACE / DIGEST).read_text() == digest()) if is_check else 1
    env = {**os.environ, "PYTHON": sys.executable}
    for argv in ([npm, "ci", "--no-audit", "--no-fund"], [npm, "run", "build"]):
        done = subprocess.run(argv, cwd=SOURCE, check=False, env=env)
        if done.returncode != 0:
            sys.stderr.write(f"{' '.join(argv)} failed in {SOURCE}/\n")
            return done.returncode
    if is_check:
        is_same = built_files(BUILT) == packed_files(PLACE)
        return _told(is_current=is_same and (PLACE / DIGEST).read_text() == digest())
    total = pack(BUILT, PLACE)
    (PLACE / DIGEST).write_text(digest())
    sys.stdout.write(f"{PLACE}: {total:,} bytes, compressed\n")
    return 0


def pack(built: Path, place: Path) -> int:
    """Bring ``place`` to what is built, compressed.

    A file whose content is there already stays as it is: other libraries compress to other bytes.

    Returns:
        How many bytes the files take.
    """
    new, old = built_files(built), packed_files(place)
    for name in old.keys() - new.keys():
        (place / f"{name}.gz").unlink()
    for name, content in new.items():
        if old.get(name) != content:
            target = place / f"{name}.gz"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.compress(content, mtime=0))
    return sum(each.stat().st_size for each in place.rglob("*.gz"))


def built_files(built: Path) -> Mapping[str, bytes]:
    """What is built, by its path below the page."""
    files = (each for each in built.rglob("*") if each.is_file())
    return {str(each.relative_to(built)): each.read_bytes() for each in files}


def packed_files(place: Path) -> Mapping[str, bytes]:
    """What the package has, as a browser reads it, by its path below the page."""
    return {
        str(each.relative_to(place)).removesuffix(".gz"): gzip.decompress(each.read_bytes())
        for each in place.rglob("*.gz")
    }


def digest() -> str:
    """The hash of everything below ``web/`` that the page is made of, and a line's end."""
    found = hashlib.sha256()
    for file in sorted(_sources(SOURCE)):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        found.update(f"{content}  {file.as_posix()}\n".encode())
    return f"{found.hexdigest()}\n"


def _sources(folder: Path) -> Iterator[Path]:
    for each in folder.iterdir():
        if each.name in MADE or each.match("*.test.ts"):
            continue
        if each.is_dir():
            yield from _sources(each)
        else:
            yield each


def _told(*, is_current: bool) -> int:
    if not is_current:
        sys.stderr.write(f"{PLACE} is not built from {SOURCE}/: run `make web` and commit both\n")
    return 0 if is_current else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
