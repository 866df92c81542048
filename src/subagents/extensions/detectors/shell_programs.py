"""Which program a shell's command really runs: behind wrappers, and in lines given to a shell."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

from subagents.domain.alerts.detectors.shell import ASSIGNMENT, STEPS_MAX, Step, steps_of

NESTED_MAX: Final = 4
"""How deep ``bash -c`` may stand in ``bash -c``."""
WRAPPERS_MAX: Final = 8
_UV: Final = (
    "--with --with-editable --with-requirements --extra --group --only-group --no-group --python"
    " -p --project --directory --env-file --package --index --index-url --cache-dir -C --from"
)
_NPM: Final = "-w --workspace --prefix -C --filter -F --dir --package -p"
_CONTAINER: Final = (
    "+1 -e --env --env-file -v --volume -w --workdir -u --user --name -p --publish --network"
    " --mount --platform --entrypoint -f --file --profile --project-name -m --memory --cpus -l"
    " --label --index -n --namespace -c --container"
)
_WRAPPERS: Final = {
    tuple(name.split()): frozenset(own.split())
    for names, own in {
        "nohup, setsid, command, builtin, unbuffer, chronic, ccache, sccache, cross-env": "",
        "rtx, winpty, poetry run, pipenv run, rye run, hatch run, yarn exec, bundle exec": "",
        "composer exec, rbenv exec, pyenv exec, asdf exec, mise exec, mise x": "",
        "sudo, doas": "-u -g -C -h -p -D -R -T -U --user --group --chdir",
        "env": "-u -C -S --unset --chdir",
        "time": "-f -o --format --output",
        "nice": "-n --adjustment",
        "ionice": "-c -n --class --classdata",
        "stdbuf": "-i -o -e",
        "timeout, gtimeout": "+1 -k -s --kill-after --signal",
        "exec": "-a",
        "xargs": "-I -n -P -d -L -s -a -E --max-args --max-procs --delimiter --arg-file",
        "xvfb-run": "-s -n -e -f -w --server-args --server-num",
        "caffeinate": "-t -w",
        "dotenv": "-e -v -c",
        "ssh": "+1 -p -i -o -l -F -J -L -R",
        "direnv exec": "+1",
        "npx": "-p --package -w --workspace --prefix --cache -c --call",
        "bunx, bun x, yarn dlx": "-p --package",
        "uvx, uv run, uv tool run": _UV,
        "pdm run, pipx run, doppler run": "-p -c --project --config --spec --python",
        "pixi run": "-e --environment --manifest-path",
        "conda run, mamba run, micromamba run": "-n --name -p --prefix --cwd",
        "npm exec, npm x, pnpm exec, pnpm dlx": _NPM,
        "coverage run": "--source --omit --include --rcfile --data-file --context",
        "op run": "--env-file",
        "docker exec, docker run, podman exec, podman run, kubectl exec": _CONTAINER,
        "docker compose exec, docker compose run": _CONTAINER,
        "docker-compose exec, docker-compose run": _CONTAINER,
    }.items()
    for name in names.split(", ")
}
"""What stands before a program; its options that take a value, ``+1`` for one word besides."""
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish"})
_TAKE_LINES: Final = _SHELLS | {"nix-shell", "su", "npx"}
_SHELL_VALUED: Final = frozenset({"-o", "+o", "-O", "--rcfile", "--init-file"})
_LINE_OPTION: Final = re.compile(r"--(?:run|command|call)\Z|-\w{0,8}c\Z", re.ASCII)
_PYTHON: Final = re.compile(r"(?:python|pypy)(?:\d(?:\.\d{1,3})?)?\Z|py\Z", re.ASCII)
_SAME: Final = {
    "py.test": "pytest",
    "gmake": "make",
    "gradlew": "gradle",
    **dict.fromkeys(("mvnw", "mvnd"), "mvn"),
    "bazelisk": "bazel",
    "ninja-build": "ninja",
    "cmake3": "cmake",
    "ctest3": "ctest",
    "gotask": "task",
    "cucumber-js": "cucumber",
    "nodejs": "node",
}
"""Other names of the same program."""
IS_SCRIPT: Final = "./"
"""Begins the name of a program that is a file of the project."""


def expanded(line: str) -> tuple[Step, ...]:
    """The commands of a line and of the lines in it (``bash -c '…'``), as the shell joins them."""
    found = _expanded(steps_of(line), 0)
    if len(found) > STEPS_MAX:
        found[STEPS_MAX - 1] = found[STEPS_MAX - 1]._replace(is_beside=True)
    return tuple(found[:STEPS_MAX])


def program_of(words: Sequence[str]) -> tuple[str, ...]:
    """The program's name without its folder, and its words; empty = none is run.

    ``("python3", "-m", "pytest", "-q")`` is ``("pytest", "-q")``. A file of the project that is run
    (``./build.sh``, ``bash ci/test.sh``, ``python setup.py``) begins with ``./``.
    """
    left = _unwrapped(words)
    if not left:
        return ()
    name, options = base_name(left[0]), left[1:]
    if _PYTHON.match(name):
        while options and options[0].startswith("-") and options[0] not in {"-m", "-c", "-"}:
            options = options[2 if options[0] in {"-X", "-W", "-Q"} else 1 :]
        if options[:3] == ["-m", "coverage", "run"]:
            return program_of(options[1:])
        if options[:1] == ["-m"]:
            return (_SAME.get(options[1], options[1]), *options[2:]) if options[1:] else ()
        return _file(options) if options and options[0] not in {"-c", "-"} else ("python", *options)
    if name in _SHELLS:
        while options and options[0].startswith(("-", "+")):
            if options[0] == "-n":
                return ("bash", *options)
            options = options[2 if options[0] in _SHELL_VALUED else 1 :]
        return _file(options) if options else ()
    folder = left[0].replace("\\", "/").rpartition("/")[0]
    is_installed = not folder or folder.endswith(("bin", "Scripts")) or name in {"gradle", "mvn"}
    if is_installed or folder.startswith(("/usr", "/opt")):
        return (name, *options)
    return (f"{IS_SCRIPT}{name}", *options)


@lru_cache(maxsize=512)
def base_name(word: str) -> str:
    """The program's name without folder and ending, as the one that it is known by."""
    base = re.sub(r"\.(?:exe|cmd|bat)\Z", "", word.replace("\\", "/").rpartition("/")[2].lower())
    return _SAME.get(base, base)


def _file(words: Sequence[str]) -> tuple[str, ...]:
    return (f"{IS_SCRIPT}{words[0].replace(chr(92), '/').rpartition('/')[2]}", *words[1:])


def _unwrapped(words: Sequence[str], until: Collection[str] = ()) -> list[str]:
    """The words of the program behind its wrappers, or of one of ``until``."""
    left = list(words)
    for _ in range(WRAPPERS_MAX):
        name = base_name(left[0]) if left else ""
        key = next((key for n in (1, 3, 2) if (key := (name, *left[1:n])) in _WRAPPERS), None)
        if key is None or name in until:
            return left
        if name == "command" and left[1:2] and left[1] in {"-v", "-V"}:
            return []  # it only looks
        left = _behind(left[len(key) :], _WRAPPERS[key], is_uv=name == "uv")
    return []


def _behind(words: list[str], own: frozenset[str], *, is_uv: bool) -> list[str]:
    """The words behind a wrapper's options and own words."""
    at = 0
    while at < len(words) and words[at] != "--":
        word = words[at]
        if is_uv and word in {"-m", "--module"}:
            return ["python", "-m", *words[at + 1 :]]
        if word.startswith("-") and len(word) > 1:
            at += 2 if word in own else 1
        elif ASSIGNMENT.match(word):
            at += 1
        else:
            break
    at += (words[at : at + 1] == ["--"]) + ("+1" in own)
    return words[at + (words[at : at + 1] == ["--"]) :]


def _expanded(steps: Sequence[Step], depth: int) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        inner = _inner(step, depth) if depth < NESTED_MAX else []
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
        ] or [step]
        if len(found) > STEPS_MAX:
            break
    return found


def _inner(step: Step, depth: int) -> list[Step]:
    """The commands of the line that a shell is given as a word."""
    words = _unwrapped(step.words, _TAKE_LINES)
    if not words or base_name(words[0]) not in _TAKE_LINES:
        return []
    at, options, is_line = 1, list[str](), False
    while not is_line and at < len(words) and words[at].startswith(("-", "+")):
        word, is_line = words[at], _LINE_OPTION.match(words[at]) is not None
        is_valued = word in _SHELL_VALUED
        if is_valued or ("e" in word and not word.startswith("--")):
            options += words[at : at + 2] if is_valued else ["-e"]
        at += 2 if is_valued else 1
    if not is_line or at >= len(words):
        return []
    inner = _expanded(steps_of(words[at]), depth + 1)
    if options and inner:
        # Its options hold inside it; as ``set`` the exit codes are read by them.
        inner[:1] = [Step(("set", *options)), inner[0]._replace(joined=";")]
    return inner
