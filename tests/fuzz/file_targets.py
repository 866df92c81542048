"""What people and agents write for us in files and texts: configuration, plans, contracts,
patterns, what git says, durations; and what must hold of every text that is kept or shown."""

import contextlib
import json
import random
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast
from unittest import mock

from tests.api import home_daemon
from tests.fuzz.target import Target
from tests.published_secrets import printed

from subagents.api.wire.requests import parse_spec
from subagents.cli import output
from subagents.cli.runs import selectors
from subagents.config import agent_cards, keys
from subagents.config.files import documents
from subagents.config.files.documents import BadDocument
from subagents.config.files.env_files import variables_of
from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.domain.redaction.redact import Redactor, redact
from subagents.domain.redaction.secret_spans import REDACTED
from subagents.domain.rules.contract import validate
from subagents.domain.rules.path_patterns import pattern_of
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.outcome import CheckType
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import LineType
from subagents.domain.run.workspace import Worktree
from subagents.domain.text.report_text import find_report
from subagents.domain.transcript.transcript_query import LogQuery
from subagents.engine.verification.artifacts import check_artifact
from subagents.engine.verification.file_trees import matching_files
from subagents.engine.verification.verifier import check_schemas
from subagents.engine.verification.work_root import FileFault, WorkRoot
from subagents.errors import ConfigError, RuntimeUnavailable, UsageError
from subagents.extensions.conversation.provider_words import provider_message
from subagents.extensions.doctor.card_oddities import oddities
from subagents.extensions.install.foreign_agents import claude_agents, openclaw
from subagents.extensions.notifications.webhook_courier import RETRY_AFTER_MS_MAX, retry_after_ms
from subagents.extensions.plans.plan_file import read_plan
from subagents.extensions.worktrees.git import Git
from subagents.extensions.worktrees.worktree_changes import changes_of
from subagents.runtimes.output.terminal_text import line_items, plain
from subagents.store.transcripts.grep import Search, pattern
from subagents.store.transcripts.segments import Row
from subagents.text import DURATION_MS_MAX, fence, harmless, one_line, parse_duration, quoted

PART: Final = b"\n====\n"
"""Between what goes into one place and the next."""
ROOT: Final = Path(__file__).parents[2]
SUFFIXES: Final = (".toml", ".json", ".yaml", ".yml")
_MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@contextlib.contextmanager
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
        yield Path(name)


def plan(data: bytes) -> None:
    """The first byte says in which language it is."""
    with place() as folder:
        file = folder / f"plan{SUFFIXES[data[0] % len(SUFFIXES) if data else 0]}"
        file.write_bytes(data[1:])
        with contextlib.suppress(UsageError):
            assert read_plan(file).specs


def plan_seeds() -> Iterable[bytes]:
    runs = [{"task": "a", "agentId": "x", "timeout": "5m", "label": "one"}, {"task": "b"}]
    yield (
        b'\x00budget = { max_tokens = 5 }\n[[runs]]\ntask = "a"\nlabel = "x"\n[[runs]]\ntask = "b"'
    )
    yield b"\x01" + json.dumps({"runs": runs, "budget": {"maxCostUsd": 1.5}}).encode()
    matrix = {"a": ["1", 2], "b": [True], "exclude": [{"a": "1"}]}
    one = {"task": "${{ matrix.a }}$${{ ${{ vars.v }}", "label": "m", "matrix": matrix}
    two = {"task": "b", "depends_on": "m", "chain_after": "m", "retry_count": "${{ vars.v }}"}
    yield b"\x01" + json.dumps({"vars": {"v": "3"}, "runs": [one, two]}).encode()
    yield b'\x00[[runs]]\ntask = "${{ matrix.a }}"\nmatrix = [{ a = "1" }, { a = "2" }]'
    yield (
        b"\x02"
        b"budget:\n  max_tokens: 5\nruns:\n- task: a\n  tools: [Read, Edit]\n- &b {task: b}\n- *b\n"
    )
    nested = [
        f"          l{n}: &a{n} {{p: *a{n - 1}, q: *a{n - 1}, r: *a{n - 1}}}" for n in range(1, 16)
    ]
    schema = ["runs:", "- task: b", "  verification:", "    artifacts:", "    - path: x"]
    schema += ["      schema:", "        definitions:", "          l: &a0 {x: y}", *nested]
    yield b"\x02" + "\n".join(schema).encode()
    yield (
        b"\x02"
        b"a: &a [x, x]\nb: &b [*a, *a]\nruns:\n- task: >\n    folded\n  1: 2\n- !!set {a}\n- 2001-01-01\n"
    )


def config(data: bytes) -> None:
    """A file of configuration, and variables of the environment."""
    text, _, variables = data.partition(PART)
    pairs = (each.partition(b"=") for each in variables.split(b"\n"))
    environ = {n.decode("latin-1"): v.decode("utf-8", "surrogateescape") for n, _, v in pairs if n}
    with place() as home:
        paths = Paths.resolve({"SUBAGENTS_HOME": str(home)})
        paths.config_file.parent.mkdir(parents=True, exist_ok=True)
        paths.config_file.write_bytes(text)
        paths.config_file.chmod(0o600)
        try:
            found = load(home, {**environ, "HOME": str(home)}, paths=paths)
        except ConfigError:
            return
        list(oddities(found.settings))
        agent_cards.rows(found.settings, "main")
        found.for_agents()
        assert all(leaf.key for leaf in found.leaves())


def config_seeds() -> Iterable[bytes]:
    yield home_daemon.CONFIG.encode()
    for page in (ROOT / "docs").glob("*.md"):
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            yield (
                block.encode()
                + PART
                + b"SUBAGENTS_DAEMON__HTTP_PORT=8000\nSUBAGENTS_AGENTS__A__RUNTIME=command"
            )


def variables(data: bytes) -> None:
    """A file of ``--env-file``."""
    with contextlib.suppress(UsageError):
        for name, value in variables_of(data.decode("utf-8", "replace"), {"A": "a"}, where="f"):
            assert CallerEnvironment(given={name: value})


def variable_seeds() -> Iterable[bytes]:
    yield b"# words\nexport A='one two'\n\nB=\"x\\ny\" # why\nA\nC = ${B:-c}${A}\r\nD=#e f #g"


def foreign(data: bytes) -> None:
    """Agent files and configurations of other programs; the configuration takes what comes of it."""
    text = data.decode("utf-8", "replace")
    found = [claude_agents({"a.md": text, "b.md": f"---\n{text}\n---\n"})]
    with contextlib.suppress(BadDocument, UsageError):
        document = documents.json5(text)
        found.append(openclaw({"agents": document}))
    for each in found:
        assert not list(keys.check({"agents": each.agents}))
        assert not list(keys.check({"agents": {"defaults": {"subagents": each.defaults}}}))


def foreign_seeds() -> Iterable[bytes]:
    yield b"---\nname: a\ndescription: a: b\ntools: Read, Bash(a,b)\nmaxTurns: 3\n---\nText\n"
    yield b"name: a\ndescription: >-\n  b\n  c\ntools:\n- Read\npermissionMode: plan\nmodel: x"
    yield (
        b"{defaults: {model: {primary: 'a'}, subagents: {maxConcurrent: 2}}, list: [{id: 'A', tools:"
        b" {allow: ['x']}, subagents: {allowAgents: ['*']}, capabilities: {costTier: 'low'}}]}"
    )


def contract(data: bytes) -> None:
    """A contract as an agent gives it, and a file of the worker's that is checked by it."""
    text, _, content = data.partition(PART)
    with place() as folder:
        try:
            spec = parse_spec({"task": "x", "verification": json.loads(text)})
        except (ValueError, RecursionError, UsageError):
            return
        checks = spec.verification
        if checks is None:
            return
        try:
            validate(checks, commands_allowed=False, within=str(folder))
            check_schemas(checks)
        except UsageError:
            return
        (folder / "out").mkdir()
        (folder / "out" / "a.json").write_bytes(content)
        root = WorkRoot(str(folder), str(folder.resolve()))
        for each in checks.artifacts:
            # Schemas are checked in a process that can be killed.
            artifact = replace(each, schema=None)
            names = ["out/a.json"]
            if each.is_glob:
                with contextlib.suppress(FileFault):
                    names = matching_files(pattern_of(each.path, field="path"), root)
            for name in names:
                found = check_artifact(replace(artifact, path=name), root)
                assert found.type is CheckType.ARTIFACT
                assert not found.could_not_check, found.reason
        for patterned in (*checks.must_change, *checks.must_not_change):
            pattern_of(patterned, field="x").matches("out/a.json")
            pattern_of(patterned, field="x").matches("a/" * 100 + "a" * 100)


def contract_seeds() -> Iterable[bytes]:
    junit = b'<testsuites><testsuite name="s" failures="1" errors="0"><testcase classname="c" name="n"><failure/></testcase></testsuite></testsuites>'
    forms: tuple[dict[str, Any], ...] = (
        {"path": "out/a.json", "json": True, "minItems": 1, "requiredKeys": ["a", "b.c"]},
        {"path": "out/*.json", "minFiles": 1, "maxFiles": 3, "minBytes": 2},
        {"path": "out/a.json", "regex": "^(a|b)*c$", "sha256": "0" * 64, "newerThan": "x"},
        {"path": "out/a.json", "junit": True, "minTests": 1},
        {"path": "**/[!x]*.json", "json": True, "schema": {
            "type": "array", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"pattern": "^a+$"}}}},
    )  # fmt: skip
    for form, content in zip(
        forms, (b'[{"a":1,"b":{"c":2}}]', b"x", b"aabc", junit, b"[]"), strict=True
    ):
        checks = {"artifacts": [form], "mustChange": ["src/**/*.py"], "mustNotChange": ["*.md"],
                  "verificationTimeoutMs": 5000, "judge": {"criteria": "good", "agentId": "x"}}  # fmt: skip
        yield json.dumps(checks).encode() + PART + content


def grep(data: bytes) -> None:
    """A pattern, and lines it is searched in."""
    first, _, rest = data.partition(b"\n")
    try:
        wanted = pattern(first.decode("utf-8", "surrogateescape"))
    except UsageError:
        return
    rows = [Row(1, 1, LineType.TEXT, 1, x) for x in rest.decode("utf-8", "replace").split("\n")]
    found = Search(wanted, LogQuery()).matching(rows)
    assert len(found) <= len(rows)


def grep_seeds() -> Iterable[bytes]:
    for each in (b"(a*)*b", b"error|fail(ed)?", br"\bTODO\b", b"(?i)x{2,50}", b"[^\\s]+$",
                 b"(?P<n>a)\\pL", b"((a{0,100}){0,100})", b"plain words"):  # fmt: skip
        yield each + b"\n" + b"a" * 200 + b"\nan error failed\nTODO plain words\n" + "ä€🙂".encode()


class SaidGit:
    """git, saying what the input says."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def __call__(self, *_arguments: str, timeout_s: float = 1) -> str:
        del timeout_s
        return self._said.pop(0) if self._said else ""


def git(data: bytes) -> None:
    """What git says of a worktree; an answer that cannot be read is a refusal."""
    said = [each.decode("utf-8", "surrogateescape") for each in data.split(PART)]
    tree = Worktree(repository="/r", path="/nowhere", branch="b", origin="/r")
    with contextlib.suppress(RuntimeUnavailable):
        found = changes_of(cast(Git, SaidGit(said)), "base", tree)
        json.dumps([each.path for each in found.changed]).encode()
        assert found.files >= len(found.changed)


def git_seeds() -> Iterable[bytes]:
    yield PART.join((
        b"1\t2\ta b\0-\t-\tpic\xff\0" + b"3\t0\td\0", b"M\0a b\0A\0pic\xff\0D\0d\0", b"new\0n\xc3\xa4w\0",
        b"2\n", b"node_modules/\0x.pyc\0left\0", b"b-attempt-1\nb-attempt-2\n",
    ))  # fmt: skip


def texts(data: bytes) -> None:
    """Durations, retry-after, selectors, reports; and no text leaves the way it must not."""
    text = data.decode("utf-8", "replace")
    first, _, rest = text.partition("\n")
    with contextlib.suppress(UsageError):
        assert 0 <= parse_duration(first, field="x") <= DURATION_MS_MAX
    with contextlib.suppress(UsageError):
        selectors.phases(first)
    wait_ms = retry_after_ms(first, now_s=1.7e9)
    assert wait_ms is None or 0 <= wait_ms <= RETRY_AFTER_MS_MAX
    find_report(text)
    provider_message(text)
    clean = harmless(text)
    assert _CONTROLS.search(clean) is None
    assert harmless(clean) == clean
    line = one_line(text)
    assert line.isprintable()
    assert len(line) <= 300
    ticks, *_ = fence(text).split("\n")
    assert ticks not in text
    assert "\n" not in quoted(text) or "```" in quoted(text)
    assert "\0" not in plain(text)
    line_items(data, is_stderr=True)
    raw = json.dumps({first: rest}, ensure_ascii=False).encode()
    shown = output.harmless_json(raw)
    assert json.loads(shown) == {first: rest}
    assert _CONTROLS.search(shown) is None
    with mock.patch.object(output, "is_tty", return_value=False):
        output.cells_wide(first)


def text_seeds() -> Iterable[bytes]:
    for each in (
        "1h30m",
        "250ms",
        "PT5M",
        "90",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "120",
        "queued,running",
    ):
        yield each.encode() + b"\nmore"
    yield b"\x1b[31mred\x1b[0m \xc2\x9b5n \x1b]0;title\x07 ``` ```` \xe2\x80\xaeflip"
    yield b"[completion report]\nstatus: partial\nsummary: did\nartifacts:\n- a: b\nblockers:\n- none\n[/completion report]"
    yield b'{"error":{"type":"overloaded","message":"try again"}}'


def secrets(data: bytes) -> None:
    """Redaction: never raises, does not go on when it is done again, and hides what it was told to."""
    text = data.decode("utf-8", "replace")
    own, _, rest = text.partition("\n")
    once = redact(text)
    assert redact(once) == once
    assert len(once) <= len(text) + len(REDACTED) * once.count(REDACTED)
    lines, after = Redactor().fold(text.split("\n"), ())
    assert len(lines) == text.count("\n") + 1
    assert isinstance(after, Redactor)
    if len(own) >= 12 and own.isalnum() and own.isascii():
        assert own not in redact(rest, (own,))


def secret_seeds() -> Iterable[bytes]:
    chance = random.Random(1)
    said = [text for text, _ in printed(chance).values()]
    for at in range(0, len(said), 20):
        yield "\n".join(said[at : at + 20]).encode()
    yield b"abcdefgh12345678\nthe password is abcdefgh12345678 and abcdefgh\n12345678"
    yield b"-----BEGIN RSA PRIVATE KEY-----\n" + b"QUJD" * 16 + b"\n-----END RSA PRIVATE KEY-----\n"


FILE_TARGETS: Final = (
    Target("plan", "plan files", plan, plan_seeds,
           (b"&a", b"*a", b"!!", b"? ", b"<<: *a", b"|\n", b"- ", b"[[runs]]", b"[runs]"),
           seconds=10.0),  # YAML is read in pure Python, and only for who writes it

    Target("config", "files of configuration and the environment", config, config_seeds),
    Target("variables", "files of variables", variables, variable_seeds,
           (b"'", b'"', b"\\", b"${", b":-", b"}", b"export ", b" #", b"\r", b"=\n")),
    Target("foreign", "agents of other programs", foreign, foreign_seeds,
           (b"&a", b"*a", b"<<: *a", b"---\n", b": ", b"- ", b"[", b"{", b"|\n", b"'", b"name: "),
           seconds=10.0),  # YAML and JSON5 are read in pure Python
    Target("contract", "contracts, and files checked by them", contract, contract_seeds,
           (b"**", b"*", b"[", b"?", b"<!DOCTYPE a>", b"&#0;", b"]]>", b"<?xml?>")),
    Target("grep", "patterns of log --grep", grep, grep_seeds,
           (b"(", b")*", b"{1,1000}", b"|", b"\\pL", b"(?i)", b"[^", b".*", b"\\b")),
    Target("git", "what git says of a worktree", git, git_seeds, (b"\0", b"\t", PART)),
    Target("texts", "durations and other small texts, and what is shown", texts, text_seeds),
    Target("secrets", "redaction", secrets, secret_seeds,
           (b"password=", b"Bearer ", b"AKIA", b"-----BEGIN ", b"://a:b@", b"\\n", b'"token": "')),
)  # fmt: skip
