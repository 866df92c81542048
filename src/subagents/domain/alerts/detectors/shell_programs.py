"""Which program a command really runs: behind ``sudo``, ``timeout 60``, ``npx``, ``bash -c``.

What stands before a program is told apart by tables: words that are dropped, the options of theirs
that take a value, and how many words of their own follow.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from subagents.domain.alerts.detectors.shell_lines import (
    STEPS_MAX,
    Joined,
    Step,
    steps_of,
)

NESTED_MAX: Final = 4
WRAPPERS_MAX: Final = 8


class _Wrapper(NamedTuple):
    valued: frozenset[str] = frozenset()
    """Options whose value is the next word."""
    own: int = 0
    """Words that follow the options and are its own."""


def _wrapper(valued: str = "", own: int = 0) -> _Wrapper:
    return _Wrapper(frozenset(valued.split()), own)


_WRAPPERS: Final = {
    "sudo": _wrapper("-u -g -C -h -p -D -R -T -U --user --group --chdir"),
    "doas": _wrapper("-u -C"),
    "env": _wrapper("-u -C -S --unset --chdir"),
    "time": _wrapper("-f -o --format --output"),
    "nice": _wrapper("-n --adjustment"),
    "ionice": _wrapper("-c -n --class --classdata"),
    "nohup": _wrapper(),
    "setsid": _wrapper(),
    "stdbuf": _wrapper("-i -o -e"),
    "timeout": _wrapper("-k -s --kill-after --signal", own=1),
    "gtimeout": _wrapper("-k -s --kill-after --signal", own=1),
    "command": _wrapper(),
    "builtin": _wrapper(),
    "exec": _wrapper("-a"),
    "xargs": _wrapper("-I -n -P -d -L -s -a -E --max-args --max-procs --delimiter --arg-file"),
    "xvfb-run": _wrapper("-s -n -e -f -w --server-args --server-num"),
    "unbuffer": _wrapper(),
    "chronic": _wrapper(),
    "caffeinate": _wrapper("-t -w"),
    "ccache": _wrapper(),
    "sccache": _wrapper(),
    "cross-env": _wrapper(),
    "dotenv": _wrapper("-e -v -c"),
    "npx": _wrapper("-p --package -w --workspace --prefix --cache -c --call"),
    "bunx": _wrapper("-p --package"),
    "uvx": _wrapper("--with --from --python -p --index --index-url --with-editable"),
    "ssh": _wrapper("-p -i -o -l -F -J -L -R", own=1),
    "rtx": _wrapper(),
    "winpty": _wrapper(),
}
_UV: Final = (
    "--with --with-editable --with-requirements --extra --group --only-group --no-group --python"
    " -p --project --directory --env-file --package --index --index-url --cache-dir -C"
)
_NPM: Final = "-w --workspace --prefix -C --filter -F --dir --package -p"
_DOCKER: Final = (
    "-e --env --env-file -v --volume -w --workdir -u --user --name -p --publish --network --mount"
    " --platform --entrypoint -f --file --profile --project-name -m --memory --cpus -l --label"
    " --index -n --namespace -c --container"
)
_TWO_WORDS: Final = {
    ("uv", "run"): _wrapper(_UV),
    ("uv", "tool", "run"): _wrapper(_UV + " --from"),
    ("poetry", "run"): _wrapper(),
    ("pipenv", "run"): _wrapper(),
    ("pdm", "run"): _wrapper("-p --project"),
    ("rye", "run"): _wrapper(),
    ("hatch", "run"): _wrapper(),
    ("pixi", "run"): _wrapper("-e --environment --manifest-path"),
    ("conda", "run"): _wrapper("-n --name -p --prefix --cwd"),
    ("mamba", "run"): _wrapper("-n --name -p --prefix --cwd"),
    ("micromamba", "run"): _wrapper("-n --name -p --prefix --cwd"),
    ("pipx", "run"): _wrapper("--spec --python"),
    ("npm", "exec"): _wrapper(_NPM),
    ("npm", "x"): _wrapper(_NPM),
    ("pnpm", "exec"): _wrapper(_NPM),
    ("pnpm", "dlx"): _wrapper(_NPM),
    ("yarn", "exec"): _wrapper(),
    ("yarn", "dlx"): _wrapper("-p"),
    ("bun", "x"): _wrapper("-p"),
    ("bundle", "exec"): _wrapper(),
    ("composer", "exec"): _wrapper(),
    ("rbenv", "exec"): _wrapper(),
    ("pyenv", "exec"): _wrapper(),
    ("asdf", "exec"): _wrapper(),
    ("mise", "exec"): _wrapper(),
    ("mise", "x"): _wrapper(),
    ("direnv", "exec"): _wrapper(own=1),
    ("coverage", "run"): _wrapper("--source --omit --include --rcfile --data-file --context"),
    ("docker", "exec"): _wrapper(_DOCKER, own=1),
    ("docker", "run"): _wrapper(_DOCKER, own=1),
    ("podman", "exec"): _wrapper(_DOCKER, own=1),
    ("podman", "run"): _wrapper(_DOCKER, own=1),
    ("docker", "compose", "exec"): _wrapper(_DOCKER, own=1),
    ("docker", "compose", "run"): _wrapper(_DOCKER, own=1),
    ("docker-compose", "exec"): _wrapper(_DOCKER, own=1),
    ("docker-compose", "run"): _wrapper(_DOCKER, own=1),
    ("kubectl", "exec"): _wrapper(_DOCKER, own=1),
    ("doppler", "run"): _wrapper("-p -c --project --config"),
    ("op", "run"): _wrapper("--env-file"),
}
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish"})
_PYTHON: Final = re.compile(r"(?:python|pypy)(?:\d(?:\.\d{1,3})?)?(?:\.exe)?\Z|py\Z", re.ASCII)
_PYTHON_VALUED: Final = frozenset({"-X", "-W", "-Q"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w{0,200}=", re.ASCII)
_SHELL_VALUED: Final = frozenset({"-o", "+o", "-O", "--rcfile", "--init-file"})
_SAME: Final = {
    "py.test": "pytest",
    "gmake": "make",
    "gradlew": "gradle",
    "mvnw": "mvn",
    "mvnd": "mvn",
    "bazelisk": "bazel",
    "ninja-build": "ninja",
    "cmake3": "cmake",
    "ctest3": "ctest",
    "gotask": "task",
    "nodejs": "node",
}
"""Other names of the same program."""
IS_SCRIPT: Final = "./"
"""Begins the name of a program that is a file of the project."""


def expanded(line: str) -> tuple[Step, ...]:
    """The commands of a line and of the lines in it (``bash -c '…'``), as the shell joins them."""
    found = _expand(steps_of(line), 0)
    if len(found) > STEPS_MAX:
        found[STEPS_MAX - 1] = found[STEPS_MAX - 1]._replace(is_beside=True)
    return tuple(found[:STEPS_MAX])


def program_of(words: Sequence[str]) -> tuple[str, ...]:
    """The program's name without its folder, and its words; empty = none is run.

    ``("python3", "-m", "pytest", "-q")`` is ``("pytest", "-q")``. A file of the project that is run
    (``./build.sh``, ``bash ci/test.sh``, ``python setup.py``) begins with ``./``.
    """
    left = list(words)
    for _ in range(WRAPPERS_MAX):
        if not left:
            return ()
        name = _name(left[0])
        wrapper, count = _wrapper_of(name, left)
        if wrapper is not None:
            if name == "command" and left[1:2] and left[1] in {"-v", "-V"}:
                return ()
            left = _behind(left[count:], wrapper, is_uv=name == "uv")
        elif _PYTHON.match(name):
            return _python(left)
        elif name in _SHELLS:
            return _shell_file(left[1:])
        else:
            return (name if _is_plain(left[0]) else f"{IS_SCRIPT}{name}", *left[1:])
    return ()


def _expand(steps: Sequence[Step], depth: int) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        inner = _inner(step, depth) if depth < NESTED_MAX else []
        if not inner:
            found.append(step)
            continue
        last = len(inner) - 1
        found += [
            each._replace(
                joined=step.joined if number == 0 else each.joined,
                is_piped=each.is_piped or step.is_piped,
                is_beside=step.is_beside if number == last else each.is_beside,
                is_maybe=each.is_maybe or step.is_maybe,
                is_negated=each.is_negated or step.is_negated,
                is_hidden=each.is_hidden or step.is_hidden,
            )
            for number, each in enumerate(inner)
        ]
        if len(found) > STEPS_MAX:
            break
    return found


def _inner(step: Step, depth: int) -> list[Step]:
    """The commands of the line that a shell is given as a word."""
    words = list(step.words)
    for _ in range(WRAPPERS_MAX):
        if not words:
            return []
        name = _name(words[0])
        if name in _SHELLS or name in {"nix-shell", "su", "npx"}:
            break
        wrapper, count = _wrapper_of(name, words)
        if wrapper is None:
            return []
        words = _behind(words[count:], wrapper, is_uv=False)
    options, script = _script_word(words)
    if script is None:
        return []
    inner = _expand(steps_of(script), depth + 1)
    if options and inner:
        # Its options hold inside it; as ``set`` the exit codes are read by them.
        inner.insert(0, Step(("set", *options)))
        inner[1] = inner[1]._replace(joined=Joined.THEN)
    return inner


def _script_word(words: Sequence[str]) -> tuple[list[str], str | None]:
    options: list[str] = []
    at = 1
    while at < len(words):
        word = words[at]
        if word in {"--run", "--command", "--call"} or (
            word.startswith("-") and not word.startswith("--") and word.endswith("c")
        ):
            rest = [letter for letter in word[1:-1] if letter == "e"]
            options += [f"-{letter}" for letter in rest] if not word.startswith("--") else []
            return options, words[at + 1] if at + 1 < len(words) else None
        if not word.startswith(("-", "+")):
            return [], None
        if word in _SHELL_VALUED:
            options += words[at : at + 2]
            at += 2
            continue
        if "e" in word and not word.startswith("--"):
            options.append("-e")
        at += 1
    return [], None


def _wrapper_of(name: str, words: Sequence[str]) -> tuple[_Wrapper | None, int]:
    """The wrapper a command begins with, and how many words name it."""
    if name in _WRAPPERS:
        return _WRAPPERS[name], 1
    for count in (3, 2):
        found = _TWO_WORDS.get((name, *words[1:count]))
        if found is not None:
            return found, count
    return None, 0


def _behind(words: list[str], wrapper: _Wrapper, *, is_uv: bool) -> list[str]:
    """The words behind a wrapper's options and own words."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if is_uv and word in {"-m", "--module"}:
            return ["python", "-m", *words[at + 1 :]]
        if word.startswith("-") and len(word) > 1:
            at += 2 if word in wrapper.valued else 1
        elif _ASSIGNMENT.match(word):
            at += 1
        else:
            break
    at += wrapper.own
    if words[at : at + 1] == ["--"]:
        at += 1
    return words[at:]


def _python(words: Sequence[str]) -> tuple[str, ...]:
    at = 1
    while at < len(words):
        word = words[at]
        if word == "-m":
            module = words[at + 1 :]
            if not module:
                return ()
            if module[0] == "coverage" and module[1:2] == ["run"]:
                return program_of(module)
            return (_SAME.get(module[0], module[0]), *module[1:])
        if word == "-c" or (word == "-" or not word.startswith("-")):
            break
        at += 2 if word in _PYTHON_VALUED else 1
    if at >= len(words) or words[at] in {"-c", "-"}:
        return ("python", *words[at:])
    return (f"{IS_SCRIPT}{_base(words[at])}", *words[at + 1 :])


def _shell_file(words: Sequence[str]) -> tuple[str, ...]:
    """``bash ci/test.sh``; a line given as a word is expanded before."""
    at = 0
    while at < len(words) and words[at].startswith(("-", "+")):
        if words[at] == "-n":
            return ("bash", *words)
        at += 2 if words[at] in _SHELL_VALUED else 1
    if at >= len(words):
        return ()
    return (f"{IS_SCRIPT}{_base(words[at])}", *words[at + 1 :])


def _is_plain(word: str) -> bool:
    """Found on the path, or a tool that lives in the project by custom."""
    if "/" not in word and "\\" not in word:
        return True
    folder = word.replace("\\", "/").rpartition("/")[0]
    return (
        folder.endswith(("bin", "Scripts", "sbin"))
        or word.startswith(("/usr/", "/opt/"))
        or _name(word) in {"gradle", "mvn"}
    )


def _name(word: str) -> str:
    base = _base(word).lower()
    for ending in (".exe", ".cmd", ".bat"):
        base = base.removesuffix(ending)
    return _SAME.get(base, base)


def _base(word: str) -> str:
    return word.replace("\\", "/").rpartition("/")[2]
