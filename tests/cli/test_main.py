"""The overview, the help and what is imported for them; the pure parts of starting up."""

import inspect
import json
import os
import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import msgspec
import pytest
from tests.cli.cli_home import Home
from tests.cli.terminal import terminal

from subagents.api.wire.run_answers import RunResult
from subagents.cli.command_table import (
    ALIASES,
    MEANT,
    command_of,
    current,
    groups,
    meant,
    parents,
    renamed,
    target_of,
)
from subagents.cli.help_page import page
from subagents.cli.main import main, overview, overview_of_all
from subagents.cli.parser import declared, parse
from subagents.cli.topics import JSON, text_of, topics
from subagents.config.daemon_record import own, written
from subagents.config.paths import Paths
from subagents.errors import (
    EXIT_DENIED,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_PENDING,
    EXIT_RUN_UNSUCCESSFUL,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    EXIT_VERIFICATION_FAILED,
    UsageError,
)
from subagents.extension import Command

COMMANDS = [command for commands in groups().values() for command in commands]
CODES = [
    EXIT_OK,
    EXIT_FAILED,
    EXIT_USAGE,
    EXIT_NOT_FOUND,
    EXIT_DENIED,
    EXIT_RUN_UNSUCCESSFUL,
    EXIT_VERIFICATION_FAILED,
    EXIT_UNREACHABLE,
    EXIT_PENDING,
    EXIT_INTERRUPTED,
]


@pytest.mark.requirement("cli:help")
def test_the_overview_has_what_one_needs_in_the_first_week(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == main(["-h"]) == main([]) == main(["help"]) == EXIT_OK
    assert capsys.readouterr().out == overview() * 4
    listed = {line.split()[0] for line in overview().splitlines() if line.startswith("  ")}
    everyday = {each.name.split()[0] for each in COMMANDS if each.is_everyday}
    assert everyday <= listed
    assert len(everyday) <= 16
    assert all(topic in overview() for topic in topics())
    assert max(map(len, overview().splitlines())) <= 80


@pytest.mark.requirement("cli:help")
def test_help_all_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "all"]) == main(["--help-all"]) == EXIT_OK
    shown = capsys.readouterr().out
    assert shown == overview_of_all() * 2
    assert all(f"\n  {each.name} " in shown for each in COMMANDS)
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.requirement("cli:help:flags")
def test_help_shows_the_flags_that_matter_and_counts_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = re.compile(r"^  (?:-\w, )?--\w", re.MULTILINE)
    assert main(["run", "--help"]) == main(["run", "--help-all"]) == EXIT_OK
    short, _, whole = capsys.readouterr().out.partition("more options: subagents run --help-all\n")
    assert len(flags.findall(short)) <= 21
    more = len(flags.findall(whole)) - len(flags.findall(short))
    assert short.splitlines()[-1] == f"{more} "


@pytest.mark.requirement("cli:renamed")
@pytest.mark.parametrize("name", renamed())
def test_a_command_of_an_earlier_version_is_still_taken(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    now = renamed()[name].split()
    words = [*takewhile(lambda word: not word.startswith("-") and word[-1] != ":", now)]
    assert name not in {each.name for each in COMMANDS}
    kind = now.pop() if now[-1].endswith(":") else ""
    line, said = current([*name.split(), "--json", "x"])
    assert line == [*now, "--json", f"{kind}x"]
    assert said.startswith(f"subagents {name} is: subagents {' '.join(now)}")
    assert main(["help", *name.split()]) == main(["help", *words]) == EXIT_OK
    page = capsys.readouterr().out
    assert page == page[: len(page) // 2] * 2
    # What it stands for is what its command takes, and says nothing twice.
    row = command_of(" ".join(words))
    known = {flag for each in declared(target_of(row)) for flag in each.names} if row else set()
    assert {each for each in now[1:] if each.startswith("-")} <= known


@pytest.mark.requirement("cli:renamed")
def test_who_types_a_name_that_has_changed_is_told_the_new_one(shared: Home) -> None:
    with terminal(shared, "export") as screen:
        screen.until("subagents export is: subagents list --format csv")
    assert "export is" not in shared.ok("export").err


@pytest.mark.requirement("cli:help")
@pytest.mark.parametrize("word", [each for each in MEANT if not each.startswith("-")])
def test_a_word_that_is_no_command_leads_to_one(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word, "x"]) == EXIT_USAGE
    hint = capsys.readouterr().err.partition("hint: ")[2]
    assert {*re.findall(r"subagents ([a-z]+)", hint)} <= {each.name.split()[0] for each in COMMANDS}


@pytest.mark.requirement("cli:help")
@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_a_flag_of_other_tools_leads_to_one_that_the_command_has(command: Command) -> None:
    known = {flag for each in declared(target_of(command)) for flag in each.names}
    for flag in {each for each in MEANT if each.startswith("-")} - known:
        with pytest.raises(UsageError) as refused:
            parse(target_of(command), [flag], meant)
        hint = refused.value.hint or ""
        assert not hint.startswith("-") or hint.split()[0].rstrip(",") in known, hint


@pytest.mark.requirement("cli:help")
@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_every_commands_help_has_two_examples(command: Command) -> None:
    text = inspect.getdoc(target_of(command)) or ""
    _, _, examples = text.partition("For example:\n")
    shown = [line for line in examples.splitlines() if line.startswith("    ")]
    assert len(shown) >= 2
    assert all(f"subagents {command.name}" in line for line in shown[:1])


@pytest.mark.requirement("cli:help")
@pytest.mark.parametrize("argv", [["run", "--help"], ["help", "run"], ["config", "-h"]])
def test_a_commands_help_is_printed_with_its_flags(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == EXIT_OK
    out = capsys.readouterr().out
    assert "For example:" in out
    assert "--json" in out


@pytest.mark.requirement("cli:help")
@pytest.mark.parametrize("parent", parents())
def test_a_group_of_commands_lists_them(parent: str, capsys: pytest.CaptureFixture[str]) -> None:
    # Some are commands, too; those speak to a client when they are called without another word.
    alone = [] if any(command.name == parent for command in COMMANDS) else [[parent]]
    ways = [*alone, [parent, "--help"], ["help", parent]]
    assert [main(way) for way in ways] == [EXIT_OK] * len(ways)
    text = capsys.readouterr().out
    for command in COMMANDS:
        if command.name.startswith(f"{parent} "):
            assert text.count(command.summary) == len(ways)


@pytest.mark.requirement("cli:help", "cli:exit-codes")
def test_every_topic_can_be_read_and_the_exit_codes_are_all_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for topic in topics():
        assert main(["help", topic]) == EXIT_OK
        assert capsys.readouterr().out == text_of(topic)
    first_words = {line.split()[0] for line in text_of("exit-codes").splitlines() if line.strip()}
    assert {str(code) for code in CODES} <= first_words
    assert main(["help", "nonsense"]) == EXIT_NOT_FOUND
    assert "topics: exit-codes, selectors" in capsys.readouterr().err


@pytest.mark.requirement("cli:help")
def test_the_page_of_json_names_each_field_of_a_result_as_plain_json_has_it() -> None:
    plain = json.loads(json.dumps(msgspec.to_builtins(RunResult(run_id="r-1"))))
    assert {*plain, *plain["outcome"]} <= {*re.findall(r"\w+", JSON)}
    assert plain["runId"] == "r-1"
    assert "subagents help json" in page("run", is_whole=False)


@pytest.mark.requirement("cli:help")
def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == EXIT_OK
    assert capsys.readouterr().out.startswith("subagents 0.")


HEAVY = ("starlette", "uvicorn", "asyncio", "pydantic", "ruamel", "jsonschema_rs")


def imported(*argv: str, home: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "subagents", *argv],
        capture_output=True,
        text=True,
        env={"SUBAGENTS_HOME": str(home), "PATH": "/usr/bin:/bin"},
        timeout=30,
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().split(".")[0] for line in lines}


@pytest.mark.requirement("cli:start-up")
def test_the_overview_and_a_status_import_nothing_heavy(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.ensure()
    # One that was told to stop, so that none is started.
    paths.lock_file.write_bytes(written(own(has_ended=True)))
    assert "msgspec" in imported("show", "x", home=tmp_path)
    assert not imported("show", "x", home=tmp_path) & set(HEAVY)
    assert not imported("--help", home=tmp_path) & {*HEAVY, "msgspec"}


@pytest.mark.requirement("cli:help")
@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_help_finds_every_command_by_its_name(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["help", *command.name.split()]) == EXIT_OK
    page = capsys.readouterr().out
    assert page.startswith("Usage: subagents ")
    assert f"subagents {command.name}" in page.splitlines()[0]


@pytest.mark.requirement("cli:help")
def test_other_programs_names_of_a_command_find_it(capsys: pytest.CaptureFixture[str]) -> None:
    pages = []
    for alias, name in ALIASES.items():
        assert main([alias, "--help"]) == EXIT_OK
        pages += [capsys.readouterr().out]
        assert pages[-1].startswith(f"Usage: subagents {name} ")
    assert main(["help", "logs"]) == EXIT_OK
    assert capsys.readouterr().out == pages[list(ALIASES).index("logs")]


@pytest.mark.requirement("cli:help")
def test_help_for_an_unknown_word_guesses_what_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["help", "exit-code"]) == EXIT_NOT_FOUND
    assert "did you mean 'exit-codes'?" in capsys.readouterr().err


@pytest.mark.requirement("cli:colour")
def test_a_colour_that_is_no_choice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--color", "sometimes"]) == EXIT_USAGE
    assert "--color must be auto, always or never, not 'sometimes'" in capsys.readouterr().err
    assert main(["list", "--color"]) == EXIT_USAGE


@pytest.mark.requirement("cli:colour")
def test_a_tasks_own_color_flag_is_the_tasks(shared: Home) -> None:
    done = shared.ok("run", "--", "echo", "--color", "x")
    assert done.out == "--color x\n"


USAGE = [
    (["run"], "the task is missing"),
    (["run", "x", "--bogus"], "there is no option --bogus"),
    (["run", "x", "--timeout", "soon"], "--timeout must be a duration"),
    (["run", "x", "--label", "y" * 81], "label must have at most 80 characters"),
    (["run", "x", "--retry", "-1"], "--retry must be 0 to 100, not -1"),
    (["run", "x", "--retry", "many"], "--retry"),
    (["run", "x", "--backoff", "never"], "--backoff"),
    (["run", "x", "--min-items", "1"], "--min-items"),
    (["run", "x", "--cwd", "nowhere"], "nowhere"),
    (["run", "x" * 262_145, "--label", "big"], "task must be at most 262144 bytes"),
    (["list", "phase:jumping"], "there is no phase 'jumping'"),
    (["show", "phase:running"], "this command takes one"),
    (["status", "last", "--tag", "x"], "name runs or search for them, not both"),
    (["bogus"], "there is no command 'bogus'"),
    (["lst"], "did you mean 'list'?"),
]


@pytest.mark.requirement("cli:bad-input", "cli:exit-codes", "cli:json")
@pytest.mark.parametrize(("argv", "message"), USAGE, ids=[message for _, message in USAGE])
def test_bad_input_ends_with_2_and_names_the_field(
    shared: Home, argv: list[str], message: str
) -> None:
    if len("".join(argv)) > 100_000:
        done = shared.cli(argv[0], "-", *argv[2:], "--json", stdin=argv[1])
        assert done.code == 2
        assert "task must be at most 262144 bytes" in str(done.json["message"])
        return
    done = shared.cli(*argv, "--json")
    assert done.code == 2
    assert list(done.json) == ["code", "message", "details", "retryable", "hint"]
    assert message in str(done.json["message"])


@pytest.mark.requirement("cli:bad-input", "cli:json")
def test_without_json_an_error_is_on_stderr_with_a_way_out_and_stdout_is_empty(
    shared: Home,
) -> None:
    done = shared.cli("lst")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "subagents: there is no command 'lst'; did you mean 'list'?\n  hint: subagents help all\n"
    )


@pytest.mark.requirement("cli:bad-input")
def test_arguments_that_are_no_text_are_refused(shared: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "subagents", "run", b"echo \xff"],
        capture_output=True,
        env=shared.env(),
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.decode().startswith("subagents: not valid UTF-8")


@pytest.mark.requirement("cli:exit-codes")
@pytest.mark.parametrize("command", ["status", "show", "result", "log", "why", "cancel", "retry"])
def test_an_unknown_run_ends_with_3(shared: Home, command: str) -> None:
    done = shared.cli(command, "no-such-run", "--json")
    assert done.code == 3
    assert done.json["code"] == "not_found"


@pytest.mark.requirement("cli:broken-pipe")
def test_a_reader_that_goes_away_is_no_news(shared: Home) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "subagents", "config", "--schema"],
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=shared.env(),
            timeout=30,
            check=False,
        )
    assert done.stderr == b""
    assert done.returncode == 141
