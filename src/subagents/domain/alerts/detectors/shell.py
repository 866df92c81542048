"""A shell's command line, read as far as detectors need it: which programs it runs, joined how.

Nothing is expanded: words keep their ``$NAME`` and ``$(…)`` as they were written, and groups, loops
and conditions are flattened into the commands in them. What is in a string, a comment or a
here-document is no command. One pass over the text; longer lines and deeper nesting are not read.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

COMMAND_CHARS_MAX: Final = 16_384
STEPS_MAX: Final = 200
DEPTH_MAX: Final = 16
NESTED_MAX: Final = 4
"""How deep ``bash -c`` may stand in ``bash -c``."""
WRAPPERS_MAX: Final = 8

Joined: TypeAlias = Literal["", "&&", "||", ";", "|", "&"]
"""The operator between a command and the one before it; "" = it is the first one."""


class Step(NamedTuple):
    """One simple command of a line, without assignments and redirections."""

    words: tuple[str, ...]
    joined: Joined = ""
    is_negated: bool = False
    """It follows a ``!``."""
    is_hidden: bool = False
    """Some of its output goes to a file."""
    is_piped: bool = False
    """It, or the group it stands in, is read by the next program."""
    is_beside: bool = False
    """The line goes on without waiting for it."""
    is_maybe: bool = False
    """It stands in a loop or a condition: it ran, or not, or several times."""


_HEREDOC: Final = r"<<-?[ \t]{0,8}(?:'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|\\?([\w.-]{1,80}))"
_TOKEN: Final = re.compile(
    rf"""(?P<space>[ \t\r]+|\\\n|(?<![^\s;&|()])\#[^\n]*)
    |(?P<heredoc>{_HEREDOC})
    |(?P<duplicate>(?:(?<![^\s;&|()])\d{{1,3}})?[<>]&(?:\d{{1,3}}|-)(?![\w./]))
    |(?P<nested>[<>]\(|\$\(|\$\{{|["`])
    |(?P<redirect>(?:(?<![^\s;&|()])\d{{1,3}})?(?:&>>?|<<<|[<>]&|>>|>\||<>|[<>]))
    |(?P<operator>&&|\|\||\|&|[;&|\n()])
    |(?P<quoted>'[^']*'?|\\.?)
    |(?P<plain>\$[?$!\#@*]?|[^\s'"\\$`;&|<>()]+|.)""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w{0,200}\+?=", re.ASCII)
_OPENING: Final = {"{": False, "if": True, "while": True, "until": True}
"""Whether what is inside may not run."""
_CLOSING: Final = frozenset({"}", "fi", "done", "esac"})
_KEYWORDS: Final = frozenset({*_OPENING, *_CLOSING, "then", "else", "elif", "do", "time"})
_LISTS: Final = frozenset({"for", "case", "select", "function"})
"""Their own words are no command; what they hold comes behind a separator."""


@lru_cache(maxsize=64)  # several detectors ask for the same command, one after the other
def steps_of(line: str) -> tuple[Step, ...]:
    """The commands of a line in the order they are written."""
    steps = _Reader(line[:COMMAND_CHARS_MAX]).read()
    if steps and (len(line) > COMMAND_CHARS_MAX or len(steps) >= STEPS_MAX):
        # What the line ends with is not known, so the exit code belongs to no known command.
        steps[-1] = steps[-1]._replace(is_beside=True)
    return tuple(steps)


def here_document(word: str) -> str | None:
    """The text inside ``$(cat <<'EOF' … EOF)``, as agents write messages of several lines."""
    found = re.search(_HEREDOC, word[:200], re.ASCII) if word.startswith("$(") else None
    start = -1 if found is None else word.find("\n", found.end())
    if found is None or start < 0:
        return None
    end = _heredoc_end(word, start, found[1] or found[2] or found[3])
    return word[start + 1 : end].rpartition("\n")[0]


class _Reader:
    """Collects words until a separator makes a step of them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps: list[Step] = []
        self._words: list[str] = []
        self._word: str | None = None
        """What there is of a word; None between words."""
        self._is_quoted = False
        """A part of that word was quoted: it is no keyword then, and no assignment."""
        self._is_target = False
        """The next word is where output goes."""
        self._joined: Joined = ""
        self._is_negated = False
        self._is_hidden = False
        self._groups: list[tuple[int, bool]] = []
        """Where each open group begins among the steps, and whether it may not run."""
        self._closed: int | None = None
        """Where the group began that ended just now."""

    def read(self) -> list[Step]:
        text, at = self._text, 0
        heredocs: list[str] = []
        while at < len(text) and len(self._steps) < STEPS_MAX:
            token = _TOKEN.match(text, at)
            assert token is not None  # noqa: S101 - the last form takes any character
            begin, at, piece = at, token.end(), token[0]
            match token.lastgroup:
                case "nested":
                    at = _closing(text, at, piece)
                    part, is_string = text[begin:at], piece == '"'
                    if is_string:
                        part = re.sub(r'\\([\\"$`])', r"\1", part[1:].removesuffix('"'))
                    self._add(part)
                    self._is_quoted = self._is_quoted or is_string
                case "quoted":
                    self._add(piece[1:].removesuffix("'") if piece[0] == "'" else piece[1:])
                    self._is_quoted = True
                case "plain":
                    self._add(piece)
                case "operator":
                    self._end(piece)
                    for name in heredocs if piece == "\n" else ():
                        at = _heredoc_end(text, at - 1, name)
                    heredocs = [] if piece == "\n" else heredocs
                case kind:
                    self._end_word()
                    if kind == "heredoc":
                        heredocs.append(next(each for each in token.groups()[2:5] if each))
                    self._is_target = self._is_target or kind == "redirect"
                    self._is_hidden = self._is_hidden or (kind == "redirect" and ">" in piece)
        self._end(";")
        return self._steps

    def _add(self, part: str) -> None:
        self._word = (self._word or "") + part

    def _end(self, operator: str) -> None:
        if operator == "(":  # a group's commands count as if they stood alone
            self._end_word()
            self._groups.append((len(self._steps), False))
        elif operator == ")":
            self._end_step(None)
            self._close()
        else:
            same: dict[str, Joined] = {"&&": "&&", "||": "||", "|": "|", "|&": "|", "&": "&"}
            self._end_step(same.get(operator, ";"))

    def _end_word(self) -> None:
        word, is_quoted, is_target = self._word, self._is_quoted, self._is_target
        if word is None:
            return
        self._word, self._is_quoted, self._is_target = None, False, False
        if is_target:
            return
        if not self._words and word == "!":
            self._is_negated = True
        elif not self._words and not is_quoted and word in _KEYWORDS:
            if word in _OPENING:
                self._groups.append((len(self._steps), _OPENING[word]))
            elif word in _CLOSING:
                self._close()
        elif self._words or not _ASSIGNMENT.match(word):
            self._words.append(word)

    def _close(self) -> None:
        if self._groups:
            self._closed, is_maybe = self._groups.pop()
            if is_maybe:
                self._mark(self._closed, is_maybe=True)

    def _mark(self, begin: int, **flags: bool) -> None:
        self._steps[begin:] = [each._replace(**flags) for each in self._steps[begin:]]  # type: ignore[arg-type]

    def _end_step(self, behind: Joined | None) -> None:
        """Make a step of the words so far; ``behind`` None = its group ends with it."""
        self._end_word()
        words, self._words = tuple(self._words), []
        if words and words[0] in _LISTS:
            self._groups.append((len(self._steps), True))
            words = ()
        if words:
            self._steps.append(Step(words, self._joined, self._is_negated, self._is_hidden))
            self._joined, self._closed = ";", None
        begin = max(len(self._steps) - 1, 0) if self._closed is None else self._closed
        if behind == "|":
            self._mark(begin, is_piped=True)
        elif behind == "&":
            self._mark(begin, is_beside=True)
        if behind is not None:
            # ``… &&`` at the end of a line continues in the next one.
            if self._steps and (words or self._closed is not None or behind != ";"):
                self._joined = behind
            self._closed = None
        self._is_negated = self._is_hidden = self._is_target = False


def _heredoc_end(text: str, newline: int, name: str) -> int:
    """The end of the line that ends a here-document whose first line follows ``newline``."""
    found = re.compile(rf"\n[ \t]*{re.escape(name)}(?=\s|\Z)").search(text, newline)
    return len(text) if found is None else found.end()


def _closing(text: str, at: int, opened: str, depth: int = 0) -> int:
    """Behind the sign that closes what was opened just before ``at``."""
    if opened in {"`", "${"} or depth >= DEPTH_MAX:
        end = text.find("`" if opened == "`" else "}", at) if depth < DEPTH_MAX else -1
        return len(text) if end < 0 else end + 1
    if opened == "$(" and text.startswith("(", at):  # $((…)) may hold any sign
        end = text.find("))", at)
        return len(text) if end < 0 else end + 2
    heredocs: list[str] = []
    while at < len(text):
        token = _TOKEN.match(text, at)
        char, kind = text[at], "" if token is None else token.lastgroup
        if char == ('"' if opened == '"' else ")"):
            return at + 1
        if char == "\\":
            at += 2
        elif char in "$`" and kind == "nested" and token is not None:
            at = _closing(text, token.end(), token[0], depth + 1)
        elif opened == '"' or token is None:
            at += 1
        elif char in '("':
            at = _closing(text, at + 1, char, depth + 1)
        else:
            at = token.end()
            if kind == "heredoc":
                heredocs.append(next(each for each in token.groups()[2:5] if each))
            for name in heredocs if char == "\n" else ():
                at = _heredoc_end(text, at - 1, name)
            heredocs = [] if char == "\n" else heredocs
    return len(text)


# -- which program a command really runs -----------------------------------------------------------

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
        elif _ASSIGNMENT.match(word):
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
