"""The frequent commands without the parser: what it understands, it understands as the parser."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from subagents.api.calls import run_search
from subagents.cli import quick_start, serving
from subagents.cli.command_table import ALIASES
from subagents.cli.flag_table import DEFAULTS, FLAGS, WORDS
from subagents.cli.main import spawn_arguments
from subagents.cli.parser import application
from subagents.cli.runs import receiving, submission
from subagents.cli.runs.selectors import PHASES, PHASES_AT_WORK, STATES, is_several
from subagents.cli.runs.spawn_values import TASK_BYTES_MAX
from subagents.cli.show import run_list, run_status
from subagents.cli.workers import worker_words
from subagents.domain.rules.parameter_checks import SELECTING
from subagents.domain.run import spec
from subagents.domain.run.run import SETTLED, Phase
from subagents.domain.run.spec import RunSpec

PARSER = application()
OF_A_CONTRACT = {"--on-failure", "--verification-timeout"}
"""Of which one alone is refused."""
Call = tuple[str, dict[str, object]]

IMPLEMENTATIONS = {
    submission: ("run", "spawn"),
    run_list: ("show_list",),
    run_status: ("show_status",),
    receiving: ("wait", "inbox"),
    serving: ("serve",),
    worker_words: ("report", "progress", "notify", "ask"),
}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What the commands would do, written down instead."""
    calls: list[Call] = []

    def instead(real: Callable[..., int]) -> Callable[..., int]:
        def call(*args: object, **kwargs: object) -> int:
            given = inspect.signature(real).bind(*args, **kwargs).arguments
            calls.append((real.__name__, {name: plain(each) for name, each in given.items()}))
            return 0

        return call

    for module, names in IMPLEMENTATIONS.items():
        for name in names:
            monkeypatch.setattr(module, name, instead(getattr(module, name)))
    return calls


def plain(value: object) -> object:
    """A spec as the daemon reads it, whichever way it is handed over."""
    if isinstance(value, RunSpec):
        return value
    if isinstance(value, Mapping) and "task" in value:
        return msgspec.convert(value, RunSpec)
    return dict(value) if isinstance(value, Mapping) else value


def parsed(argv: Sequence[str]) -> None:
    """What the parser does with a command line."""
    arguments = [ALIASES.get(argv[0], argv[0]), *argv[1:]]
    if arguments[0] in {"run", "spawn"}:
        arguments = spawn_arguments(arguments)
    PARSER(arguments)


PLAIN = [
    ["run", "true"],
    ["serve"],
    ["serve", "--background-child"],
    ["serve", "--port", "8765", "--host=127.0.0.2"],
    ["serve", "--node", "a", "--labels", "gpu,linux", "--slots", "8", "--listen", "[::]:7443"],
    ["run", "-l", "x", "--agent=auto", "sleep 1"],
    ["run", "echo", "a b", "c"],
    ["run", "--", "echo", "--json", "-x"],
    ["run", "--label", "none", "--model", "null", "x", "--json"],
    ["run", "x", "--timeout", "1h30m", "--max-time=90", "--retry-delay", "250ms", "--retry", "3"],
    ["run", "x", "--dependency-timeout", "1s", "--retry-max-time", "1d", "--backoff", "linear"],
    ["run", "x", "--keep", "--completion-message"],
    ["run", "x", "--delete", "--no-completion-message", "--progress", "--completion-report"],
    ["run", "x", "--cwd", "~/there", "--lane", "l", "--priority", "7", "--isolation", "worktree"],
    ["run", "x", "--cwd", "here", "--network", "none", "--idempotency-key", "k=v"],
    ["run", "x", "--tag", "a", "--tag=b", "--allow-tool", "T", "--deny-tool", "U", "--access=read"],
    ["run", "x", "--after", "a", "--after", "b", "--include-result", "--accept-partial"],
    ["run", "x", "--max-tokens", "1000", "--max-cost", "0.5", "--max-runs", "3", "--thinking", "t"],
    ["run", "x", "--retry-on", "a,b", "-d"],
    ["run", "x", "--detach", "--json"],
    ["run", "x", "--verify", "out.json", "--min-items=3", "--required-keys", "a,b", "--verify=y"],
    ["run", "x", "--verify-existing", "--verify", "o*", "--min-files", "2", "--newer-than", "in"],
    ["run", "x", "--verify", "r.xml", "--min-tests", "3", "--verify", "z", "--sha256", "ab" * 32],
    ["run", "x", "--require-report", "--on-failure", "fail", "--verification-timeout", "5s"],
    ["run", "x", "--verify-cmd", "make check", "--must-change", "src/**", "--must-not-change=a"],
    ["spawn", "äöü", "--label", "größe"],
    ["list"],
    ["ls", "--limit", "7", "--offset", "0", "--archived", "--json"],
    ["ps", "tree:r-1", "--mine"],
    ["list", "--dir", ".", "--session", "other", "--agent", "a", "--label", "l", "--text", "t"],
    ["list", "--tag", "a", "--tag", "b", "--phase", "running,queued", "--outcome", "ok,error"],
    ["list", "--since", "5m", "--until=2026-11-20"],
    ["status"],
    ["status", "a", "b", "--json"],
    ["status", "--agent", "x", "--tag", "y"],
    ["wait"],
    ["wait", "a", "tag:b", "--any", "--timeout", "5m", "--json"],
    ["inbox"],
    ["inbox", "--all", "--full", "--limit", "3", "--json"],
    ["report", "done"],
    ["report", "half", "--status", "partial", "--confidence", "low", "--artifact", "a=b", "--json"],
    ["report", "x", "--blocker", "a", "--blocker", "b", "--warning", "c", "--run", "r-1"],
    ["progress", "reading"],
    ["progress", "reading", "40.5", "--level", "L2_detail", "--metric", "a=1", "--metric", "b=2"],
    ["notify", "hello", "--priority", "blocker"],
    ["ask", "which?", "--option", "a", "--option", "b", "--context", "c", "--default", "d"],
    ["ask", "which?", "--timeout", "2m", "--decision", "--run", "r-1", "--json"],
]

LEFT_TO_THE_PARSER = [
    ["run"],
    ["run", "-"],
    ["run", ""],
    ["run", "--help"],
    ["run", "x", "--bogus"],
    ["run", "x", "--label"],
    ["run", "x", "--label", "-x"],
    ["run", "x", "--label="],
    ["run", "x", "--label", " "],
    ["run", "x", "--label", "y" * 81],
    ["run", "x", "--label", "a\nb"],
    ["run", "x", "--label", "a", "--label", "b"],
    ["run", "x", "--retry", "-1"],
    ["run", "x", "--retry", "101"],
    ["run", "x", "--retry", "1e1"],
    ["run", "x", "--max-cost", "nan"],
    ["run", "x", "--timeout", "soon"],
    ["run", "x", "--timeout", "31d"],
    ["run", "x", "--json=true"],
    ["run", "x", "--backoff", "never"],
    ["run", "x", "--min-items", "3"],
    ["run", "x", "--verify", "out", "--min-items", "many"],
    ["run", "x", "--verify", "out", "--schema", "schema.json"],
    ["run", "x", "--verify"],
    ["run", "x", "--on-failure", "fail"],
    ["run", "x", "--judge", "a", "--judge-criteria", "b"],
    ["run", "x", "--mode", "session"],
    ["run", "x", "--on-dependency-failure", "run"],
    ["run", "x", "--env", "A=1"],
    ["run", "x", "--tag", "y" * 256],
    ["run", "x\udcff"],
    ["list", "a", "b"],
    ["list", "--phase", "jumping"],
    ["list", "--mine", "--session", "x"],
    ["list", "r-1"],
    ["list", "--limit", "many"],
    ["wait", "--an"],
    ["report"],
    ["report", "x", "--status", "fine"],
    ["progress", "x", "-1"],
    ["progress", "x", "many"],
    ["show", "last"],
]


@pytest.mark.requirement("cli:start-up")
@pytest.mark.parametrize("argv", PLAIN, ids=" ".join)
def test_a_frequent_command_line_is_read_as_the_parser_reads_it(
    argv: list[str], called: list[Call]
) -> None:
    parsed(argv)
    command = quick_start.command_of([ALIASES.get(argv[0], argv[0]), *argv[1:]])
    assert command is not None
    command()
    by_parser, by_table = called
    assert by_table == by_parser


@pytest.mark.requirement("cli:start-up", "cli:bad-input")
@pytest.mark.parametrize("argv", LEFT_TO_THE_PARSER, ids=lambda argv: ascii(" ".join(argv))[:60])
def test_whatever_is_out_of_the_ordinary_is_left_to_the_parser(
    argv: list[str], called: list[Call]
) -> None:
    assert quick_start.command_of(argv) is None
    assert not called


@pytest.mark.requirement("cli:start-up")
def test_every_flag_of_the_table_is_read_as_the_parser_reads_it(called: list[Call]) -> None:
    values: Mapping[str, Callable[[Any], list[str]]] = {
        "set": lambda _: [],
        "int": lambda _: ["1"],
        "float": lambda _: ["1"],
        "choice": lambda choices: [choices[-1]],
        "texts": lambda _: ["1m"],
        "text": lambda _: ["1m"],
    }
    for name, flags in FLAGS.items():
        for flag, (_, kind, allowed) in flags.items():
            if flag == "--phase":
                continue
            contract = ["--verify", "f"] if flag in OF_A_CONTRACT else []
            words = ["x"] if name not in DEFAULTS or any(w[2] for w in WORDS[name]) else []
            argv = [name, *words, flag, *values[kind](allowed), *contract]
            called.clear()
            parsed(argv)
            command = quick_start.command_of(argv)
            assert command is not None, argv
            command()
            assert called[0] == called[1], argv


@pytest.mark.requirement("cli:start-up")
def test_what_is_spelled_out_to_start_quickly_is_what_the_domain_says() -> None:
    assert tuple(Phase) == PHASES
    assert STATES == run_search.STATES
    assert all(is_several(each) is (each != "agent:") for each in SELECTING)
    assert set(PHASES_AT_WORK) == set(Phase) - SETTLED
    assert spec.TASK_BYTES_MAX == TASK_BYTES_MAX
