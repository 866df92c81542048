"""The agent programs that are installed here, and whether somebody is logged in to them.

Only files and variables are looked at: nothing is started and no request is made. A login that is
found is a hint, then: a key can have expired. Blocking, some ``stat`` calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from subagents.config.programs import program_catalog as programs
from subagents.config.programs.program_catalog import PROGRAMS, Program, package_root, where
from subagents.installation import extra_command

LLM_PROVIDERS: Final = (
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5"),
    ("OPENAI_API_KEY", "openai:gpt-6-luna"),
    ("GEMINI_API_KEY", "google:gemini-3.8-flash"),
    ("GOOGLE_API_KEY", "google:gemini-3.8-flash"),
)
"""Variable → a model to begin with, in the order they are looked for."""
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
PLACEHOLDER_BYTES_MAX: Final = 256 * 1024
"""The size below which a program is only what npm puts in place of a missing platform package."""


@dataclass(frozen=True, slots=True)
class Found:
    """A program that is installed here."""

    program: Program
    place: str
    """Its absolute path, or where it is bundled."""
    login: str | None
    """What shows that somebody is logged in; None = nothing does."""


def detect(environ: Mapping[str, str]) -> tuple[Found, ...]:
    """The known agent programs that can be found from there, in the order of ``PROGRAMS``.

    Args:
        environ: Its PATH is searched; its variables and HOME say who is logged in.
    """
    found = []
    for program in PROGRAMS:
        place = where(program, environ)
        if place is not None and not is_placeholder(Path(place)):
            found.append(Found(program, place, login_of(program, environ)))
    model = _llm(environ)
    return (*found, model) if model is not None else tuple(found)


def login_of(program: Program, environ: Mapping[str, str]) -> str | None:
    """What shows that somebody is logged in: a variable's name or a file; None = nothing does."""
    for name in program.variables:
        if environ.get(name):
            return name
    for pattern in program.login_files:
        file, _, word = pattern.partition(":")
        place = _expanded(file, environ)
        if place is not None and _has(place, word):
            return str(place)
    return None


def is_placeholder(place: Path) -> bool:
    """Whether it is only a stub: `claude.exe` or `opencode.exe` whose package was never set up
    (npm runs no scripts of packages unless told to), or npm's empty `openclaw`.
    """
    try:
        real = place.resolve(strict=True)
        if real.suffix == ".exe":
            return real.stat().st_size < PLACEHOLDER_BYTES_MAX
        package = package_root(real)
        if package is None or package.name != "openclaw":
            return False
        return _size(package, most=PLACEHOLDER_BYTES_MAX) < PLACEHOLDER_BYTES_MAX
    except OSError:
        return False


def _size(directory: Path, *, most: int) -> int:
    size = 0
    for file in directory.rglob("*"):
        size += file.lstat().st_size
        if size >= most:
            break
    return size


def _llm(environ: Mapping[str, str]) -> Found | None:
    package = programs.package_directory(programs.LLM_MODULE)
    if package is None:
        return None
    for name, model in LLM_PROVIDERS:
        if environ.get(name):
            program = Program(
                name="llm",
                runtime="llm",
                title=f"Our own loop on {model.partition(':')[0]}'s models",
                model=model,
                package=extra_command("llm"),
                variables=(name,),
            )
            return Found(program, str(package), name)
    return None


def _expanded(pattern: str, environ: Mapping[str, str]) -> Path | None:
    head, _, rest = pattern.partition("/")
    base = environ.get("HOME", "") if head == "~" else environ.get(head.removeprefix("$"), "")
    return Path(base, rest) if base else None


def _has(file: Path, word: str) -> bool:
    try:
        if not file.is_file():
            return False
        if not word:
            return file.stat().st_size > 0
        if file.stat().st_size > FILE_BYTES_MAX:
            return False
        return word in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
