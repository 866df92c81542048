"""Files, variables and flags: where configuration is found and how each is read."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest
from tests.call_counts import calls_of
from tests.config.config_homes import LIMIT, LIMIT_VARIABLE, ConfigHome

from subagents.config.layers import load
from subagents.errors import ConfigError


@pytest.mark.requirement("config:project-file")
def test_the_nearest_project_file_above_the_working_directory_is_the_one_read(
    home: ConfigHome,
) -> None:
    nearest = home.cwd.parent / "subagents.toml"
    home.project.write_text(f"{LIMIT} = 10")
    nearest.write_text(f"{LIMIT} = 20")

    config = home.load()

    assert config.settings.defaults.max_concurrent == 20
    assert config.files == (nearest,)


@pytest.mark.requirement("config:project-file")
def test_without_a_working_directory_no_project_file_is_read(home: ConfigHome) -> None:
    home.project.write_text(f"{LIMIT} = 10")

    config = load(None, home.environ, paths=home.paths)

    assert config.settings.defaults.max_concurrent == 8
    assert config.files == ()


@pytest.mark.requirement("config:project-file")
def test_a_user_file_that_is_also_the_nearest_project_file_is_read_once(home: ConfigHome) -> None:
    home.user.write_text(f"{LIMIT} = 9")

    config = load(home.user.parent, home.environ, paths=home.paths)

    assert config.files == (home.user,)


@pytest.mark.requirement("config:project-file")
def test_an_agents_working_directory_starts_at_the_file_that_names_it(home: ConfigHome) -> None:
    home.user.write_text('[agents.here]\ncwd = "sub/.."\n[agents.home]\ncwd = "~/there"\n')
    home.project.write_text('[agents.there]\ncwd = "src"\n[agents.fixed]\ncwd = "/srv"\n')

    agents = home.load().settings.agents

    assert agents["here"].cwd == str(home.user.parent)
    assert agents["home"].cwd == "/home/somebody/there"
    assert agents["there"].cwd == str(home.project.parent / "src")
    assert agents["fixed"].cwd == "/srv"


@pytest.mark.requirement("config:project-file")
def test_a_relative_working_directory_without_a_project_is_refused(home: ConfigHome) -> None:
    home.environ["SUBAGENTS_AGENTS__COMMAND__CWD"] = "src"

    with pytest.raises(ConfigError) as caught:
        load(None, home.environ, paths=home.paths)

    assert caught.value.message == (
        'SUBAGENTS_AGENTS__COMMAND__CWD: agents.command.cwd must be an absolute path, not "src"'
    )


@pytest.mark.requirement("config:environment")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("claude-sonnet-5", "claude-sonnet-5"),
        ('"quoted"', "quoted"),
        ("5", "5"),
        ("true", "true"),
        ("a\nb = 2", "a\nb = 2"),
        ("1\nother = 2", "1\nother = 2"),
        pytest.param("[" * 5000, "[" * 5000, id="nested too deeply"),
    ],
)
def test_a_variable_that_is_no_fitting_toml_value_is_taken_as_text(
    home: ConfigHome, value: str, expected: str
) -> None:
    home.environ["SUBAGENTS_AGENTS__COMMAND__MODEL"] = value

    assert home.load().settings.agent("command").model == expected


@pytest.mark.requirement("config:environment")
def test_variables_set_lists_tables_and_keys_of_tables(home: ConfigHome) -> None:
    home.environ |= {
        "SUBAGENTS_AGENTS__MAIN__SUBAGENTS__ALLOW_AGENTS": '[" Command ", "*"]',
        "SUBAGENTS_LANES__HEAVY": "{ slots = 2 }",
        "SUBAGENTS_LANES__HEAVY__SLOTS": "3",
        "SUBAGENTS_AGENTS__COMMAND__ENV__Path__Like": "x",
    }

    settings = home.load().settings

    assert settings.agent("main").subagents.allow_agents == ("command", "*")
    assert settings.lane_slots("heavy") == 3
    assert settings.agent("command").env == {"Path__Like": "x"}


@pytest.mark.requirement("config:environment")
def test_a_variable_reaches_an_agent_whose_id_has_a_dash(home: ConfigHome) -> None:
    home.user.write_text('[agents.code-review]\nmodel = "a"\n')
    home.environ["SUBAGENTS_AGENTS__CODE_REVIEW__MODEL"] = "b"

    settings = home.load().settings

    assert settings.agent("code-review").model == "b"
    assert "code_review" not in settings.agents


@pytest.mark.requirement("config:environment")
def test_names_of_one_segment_and_of_other_programs_are_no_configuration(home: ConfigHome) -> None:
    expected = home.load().settings
    home.environ |= {"SUBAGENTS_TOKEN": "x", "SUBAGENTS_RUN_ID": "r", "OTHER__KEY": "1"}

    assert home.load().settings == expected


@pytest.mark.requirement("config:errors")
def test_a_wrong_variable_is_named_in_the_refusal(home: ConfigHome) -> None:
    home.environ[LIMIT_VARIABLE] = "many"

    assert home.refusal().message == (
        f'{LIMIT_VARIABLE}: {LIMIT} must be an integer from 1 to 10000, not "many"'
    )


@pytest.mark.requirement("config:errors")
def test_a_variable_with_undecodable_bytes_is_refused(home: ConfigHome) -> None:
    home.environ["SUBAGENTS_AGENTS__MAIN__MODEL"] = os.fsdecode(b"\xff")

    assert home.refusal().message == (
        "SUBAGENTS_AGENTS__MAIN__MODEL: agents.main.model is not valid UTF-8"
    )


@pytest.mark.requirement("config:errors")
def test_a_wrong_flag_is_named_in_the_refusal(home: ConfigHome) -> None:
    assert home.refusal(lanes__heavy__slots=0).message == (
        "flag lanes.heavy.slots: lanes.heavy.slots must be an integer from 1 to 10000, not 0"
    )


@pytest.mark.requirement("config:syntax")
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[agents\n", ":1:8: "),
        ("a = 1\nb = = 2\n", ":2:5: "),
        ("a = ", ":1: "),
        ("a = 1\nx", ":2: "),
    ],
)
def test_a_syntax_error_is_told_with_file_line_and_column(
    home: ConfigHome, text: str, where: str
) -> None:
    home.project.write_text(text)

    assert home.refusal().message.startswith(f"{home.project}{where}")


@pytest.mark.requirement("config:syntax")
def test_an_integer_of_thousands_of_digits_is_refused(home: ConfigHome) -> None:
    home.project.write_text("a = " + "9" * 5000)

    assert home.refusal().message == f"{home.project}:1: a number of over 4,300 digits"


@pytest.mark.requirement("config:syntax")
def test_a_file_nested_beyond_reason_is_refused(home: ConfigHome) -> None:
    home.project.write_text("a = " + "[" * 20_000)

    assert home.refusal().message == f"{home.project}: nested too deeply"


@pytest.mark.requirement("config:unreadable")
def test_a_file_that_is_not_utf8_is_refused_with_line_and_byte(home: ConfigHome) -> None:
    home.user.write_bytes(b"# fine\n# caf\xe9\n")

    assert home.refusal().message == f"{home.user}:2: not valid UTF-8 (byte 0xe9)"


@pytest.mark.requirement("config:unreadable")
def test_a_byte_order_mark_is_accepted(home: ConfigHome) -> None:
    home.user.write_bytes(b"\xef\xbb\xbf" + f"{LIMIT} = 3".encode())

    assert home.load().settings.defaults.max_concurrent == 3


@pytest.mark.requirement("config:unreadable")
def test_a_directory_in_place_of_the_file_is_refused(home: ConfigHome) -> None:
    home.project.mkdir()

    assert home.refusal().message == f"{home.project} is a directory, not a regular file"


@pytest.mark.requirement("config:unreadable")
def test_a_fifo_in_place_of_the_file_is_refused_without_waiting_for_a_writer(
    home: ConfigHome,
) -> None:
    os.mkfifo(home.project)

    assert home.refusal().message == f"{home.project} is a pipe, not a regular file"


@pytest.mark.requirement("config:unreadable")
def test_a_link_to_a_missing_file_is_refused(home: ConfigHome) -> None:
    home.user.symlink_to(home.user.parent / "gone")

    assert home.refusal().message == f"cannot read {home.user}: No such file or directory"


@pytest.mark.requirement("config:unreadable")
@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(home: ConfigHome) -> None:
    home.user.write_text("")
    home.user.chmod(0)

    assert home.refusal().message == f"cannot read {home.user}: Permission denied"


@pytest.mark.requirement("config:unreadable")
def test_an_absurdly_large_file_is_refused(home: ConfigHome) -> None:
    home.user.write_text("#" * (1024 * 1024 + 1))

    assert home.refusal().message == f"{home.user} is larger than 1,048,576 bytes"


@pytest.mark.requirement("config:unreadable")
def test_a_key_of_thousands_of_parts_is_refused_before_it_takes_minutes(home: ConfigHome) -> None:
    home.user.write_text(f"\n{'a.' * 100_000}a = 1")

    assert "subagents.toml:2: more than 32 names with dots" in home.refusal().message


@pytest.mark.requirement("config:unreadable")
def test_dots_in_a_text_are_no_key(home: ConfigHome) -> None:
    home.user.write_text(f'[agents.a]\ndescription = "{". " * 90}{"." * 300}"')

    assert home.load().settings.agents["a"].description


def _calls(home: ConfigHome, text: str) -> int:
    home.project.write_text(text)

    def read() -> None:
        with suppress(ConfigError):
            home.load().for_agents()

    return calls_of(read)


def _many(line: str) -> Callable[[int], str]:
    return lambda number: "".join(line.replace("#", str(each)) for each in range(number))


HOSTILE: Final = {
    "unknown keys": _many("a#=1\n"),
    "unknown tables": _many("[agentz.a#]\nx = 1\n"),
    "unknown keys of agents": _many("[agents.a#]\nruntim = 'x'\n"),
    "runtimes that are none": _many("[agents.a#]\nruntime = 'acme'\n"),
    "near misses": _many("[agents.a#]\nruntime = 'comand'\n"),
    "wrong values": _many("[agents.a#]\nruntime = 1\n"),
    "names that are none": _many("[agents.'A #']\nruntime = 'scripted'\n"),
    "wrong items of one list": lambda number: f"agents.a.tools = [{'1,' * number}]\n",
    "agents that are none": lambda number: (
        _many("[agents.a#]\nruntime = 'scripted'\nscript = [{exit = 0}]\n")(number)
        + f"[agents.main.subagents]\nallow_agents = {[f'b{each}' for each in range(number)]}"
    ),
    "lanes that are none": _many("[agents.a#]\nlane = 'l#'\nruntime = 'command'\ncommand=['x']\n"),
    "comments with blanks": lambda number: f"a = 1\n{' ' * number}#\n{' ' * number}#\n",
    "long key": lambda number: f"{'a' * number} = 1\n",
    "valid agents": _many("[agents.a#]\nruntime = 'command'\ncommand = ['x']\n"),
    "keys of several parts": _many("a#.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = 1\n"),
}
"""Whoever can write a project's file can write these."""


@pytest.mark.requirement("config:bounded-work")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_twice_as_much_of_whatever_stands_in_a_file_is_at_most_twice_the_work(
    home: ConfigHome, text: Callable[[int], str]
) -> None:
    few, many = _calls(home, text(400)), _calls(home, text(800))

    assert many < 2.2 * few + 1_000
    assert many < 600_000


@pytest.mark.requirement("config:bounded-work")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("threads.user", "@" + ":" * 200_000 + " "),
        ("threads.room", "!" + "a" * 200_000 + " "),
        ("daemon.store", "postgresql://" + ":" * 200_000 + " "),
        ("daemon.http_host", "a." * 100_000 + " "),
        ("cluster.listen", "a" * 200_000),
        ("telemetry.otlp_endpoint", "http://" + "a/" * 100_000 + " "),
        ("notifications.x.url", "a" * 200_000),
    ],
)
def test_no_pattern_of_a_key_takes_time_with_the_square_of_its_text(
    home: ConfigHome, key: str, value: str
) -> None:
    home.project.write_text(f'{key} = "{value}"')

    assert len(home.refusal().message) < 2_000


@pytest.mark.requirement("config:bounded-work")
def test_of_thousands_of_problems_the_first_are_told_with_their_lines(home: ConfigHome) -> None:
    home.project.write_text(_many("a#=1\n")(4_000))

    told = home.refusal().message.split("\n")

    assert told[1].startswith(f"{home.project}:2: unknown key a1, ")
    assert told[20:] == [f"{home.project}: and more like these"]


@pytest.mark.requirement("config:syntax")
def test_a_long_line_of_sentences_is_no_key_of_many_parts(home: ConfigHome) -> None:
    sentences = "Look at a.b.c. Then e.g. at docs.example.org. " * 200
    home.project.write_text(f'agents.a.instructions = "{sentences}" # {"a. " * 20}\n')

    assert home.load().settings.agents["a"].instructions == sentences
