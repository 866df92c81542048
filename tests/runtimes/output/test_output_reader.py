"""What a worker wrote becomes signals and pieces: the same ones however and whenever it is read."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subagents.domain.run.signals import (
    ProgressSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import AttemptId
from subagents.domain.run.worker_output import (
    LINE_CHARS_MAX,
    RESULT_BYTES_MAX,
    OutputBatch,
    OutputItem,
)
from subagents.ports import LongResult
from subagents.runtimes.output import lines as lines_module
from subagents.runtimes.output import output_reader as output_module
from subagents.runtimes.output.output_reader import (
    CHUNK_BYTES,
    ITEMS_MAX,
    Output,
    Seen,
    Sizes,
    has_result,
    whole_text,
)
from subagents.runtimes.output.worker_events import LINE_BYTES_MAX
from subagents.runtimes.process import discard as discard_module
from subagents.runtimes.process.discard import discard_before, discarded

ATTEMPT = AttemptId("r-a#1")


def _output(
    directory: Path, *, cursor: int = 0, positions: Mapping[str, int] | None = None
) -> Output:
    out, err = directory / "out", directory / "err"
    return Output(str(out), str(err), ATTEMPT, cursor=cursor, positions=positions or {})


def _written(tmp_path: Path, out: bytes, err: bytes = b"") -> Path:
    (tmp_path / "out").write_bytes(out)
    (tmp_path / "err").write_bytes(err)
    return tmp_path


def _read(output: Output, *, result_before: bool = False) -> list[Seen]:
    found, more = output.read()
    while more:
        seen, more = output.read()
        found += seen
    return found + output.rest(result_before=result_before)


def _signals(seen: list[Seen]) -> list[tuple[Signal, int]]:
    return [(_short(each), at) for each, at in seen if not isinstance(each, OutputBatch)]


def _last(seen: list[Seen]) -> Signal | LongResult:
    last = seen[-1][0]
    assert not isinstance(last, OutputBatch)
    return last


def _short(seen: Signal | LongResult) -> Signal:
    return seen.seen if isinstance(seen, LongResult) else seen


def _items(seen: list[Seen]) -> list[OutputItem]:
    return [item for each, _ in seen if isinstance(each, OutputBatch) for item in each.items]


def _texts(seen: list[Seen]) -> list[tuple[str, str]]:
    return [(item.type.value, item.text) for item in _items(seen)]


@pytest.mark.requirement("results:whole")
@pytest.mark.parametrize("bytes_max", [10**9, 200_000, 70_000])
def test_the_whole_text_is_what_the_worker_wrote_without_events_and_bounded_from_its_end(
    tmp_path: Path, bytes_max: int
) -> None:
    lines = [f"line {number} {'é' * (number % 90)}" for number in range(6_000)]
    event = '{"subagents":"progress","phase":"x"}'
    path = tmp_path / "out"
    path.write_text("\n\n".join(lines[:3_000]) + f"\n{event}\n" + "\n".join(lines[3_000:]) + "\n\n")
    wanted = "\n\n".join(lines[:3_000]) + "\n" + "\n".join(lines[3_000:])

    found = "".join(whole_text(str(path), bytes_max, end=path.stat().st_size))

    assert wanted.endswith(found)
    assert len(found.encode()) <= bytes_max
    assert found.startswith("line ")
    assert found == wanted or len(found.encode()) > bytes_max - 300


@pytest.mark.requirement("runtimes:signal-keys-repeat")
def test_reading_on_from_any_cursor_repeats_the_same_keys_and_nothing_else(tmp_path: Path) -> None:
    data = (
        b'noise\n{"subagents":"tool","name":"one"}\nmore\n'
        b'{"subagents":"tool","name":"two"}\n{"subagents":"result","text":"r"}\n'
        b'{"subagents":"tool","name":"unterminated"}'
    )
    place = _written(tmp_path, data)
    whole = _signals(_read(_output(place)))

    assert [signal.key for signal, _ in whole] == [
        f"{ATTEMPT}:out:{data.index(needle)}"
        for needle in (
            b'{"subagents":"tool","name":"one"',
            b'{"subagents":"tool","name":"two"',
            b'{"subagents":"result"',
            b'{"subagents":"tool","name":"unt',
        )
    ]
    assert whole[-1][1] == len(data)
    for index, (_, cursor) in enumerate(whole):
        output = _output(place, cursor=cursor, positions={"out": len(data)})
        before = has_result(str(place / "out"), start=0, stop=output.begin)
        assert _signals(_read(output, result_before=before)) == whole[index + 1 :]


@pytest.mark.requirement("transcript:said-by-plain-programs")
def test_every_line_of_both_streams_is_heard_in_order_and_blank_ones_are_not(
    tmp_path: Path,
) -> None:
    place = _written(
        tmp_path,
        b'one\n\n  \n{"subagents":"text","text":"two"}\r\n{"subagents":"broken"}\nthree',
        b"warning: odd\nValueError: bad\n\n0 errors",
    )
    seen = _read(_output(place))

    assert _texts(seen) == [
        ("text", "one"),
        ("text", "two"),
        ("text", '{"subagents":"broken"}'),
        ("text", "warning: odd"),
        ("error", "ValueError: bad"),
        ("text", "three"),
        ("text", "0 errors"),
    ]
    last = [each for each, _ in seen if isinstance(each, OutputBatch)][-1]
    assert last.positions == {
        "out": (place / "out").stat().st_size,
        "err": (place / "err").stat().st_size,
    }


@pytest.mark.requirement("transcript:heard-once-over-restarts")
def test_a_reader_that_goes_on_hears_nothing_twice_where_signals_and_pieces_stand_apart(
    tmp_path: Path,
) -> None:
    first = b'one\n{"subagents":"tool","name":"a"}\n'
    place = _written(tmp_path, first + b'two\n{"subagents":"tool","name":"b"}\nthree\n')
    size = (place / "out").stat().st_size
    ahead = _read(_output(place, cursor=0, positions={"out": len(first), "err": 0}))
    behind = _read(_output(place, cursor=size, positions={"out": len(first), "err": 0}))

    assert [text for _, text in _texts(ahead)] == ["two", "✅ b", "three"]
    assert [each.name for each, _ in _signals(ahead) if isinstance(each, ToolSeen)] == ["a", "b"]
    assert _texts(behind) == _texts(ahead)
    assert [each for each, _ in _signals(behind) if isinstance(each, ToolSeen)] == []
    assert all(cursor == size for _, cursor in behind)


@pytest.mark.requirement("runtimes:bounded-memory")
def test_much_is_heard_in_batches_and_a_turn_of_reading_is_bounded(tmp_path: Path) -> None:
    place = _written(tmp_path, b"".join(b"%d\n" % n for n in range(50_000)), b"e\n" * 50_000)
    output = _output(place)
    batches: list[OutputBatch] = []
    more = True
    while more:
        before = output.position
        seen, more = output.read()
        assert output.position - before <= 2 * CHUNK_BYTES
        batches += [each for each, _ in seen if isinstance(each, OutputBatch)]

    assert max(len(batch.items) for batch in batches) <= ITEMS_MAX
    items = [item.text for batch in batches for item in batch.items]
    assert [text for text in items if text != "e"] == [str(n) for n in range(50_000)]
    assert items.count("e") == 50_000
    positions = [(heard.positions["out"], heard.positions["err"]) for heard in batches]
    assert positions == sorted(positions)


@pytest.mark.requirement("runtimes:bounded-memory")
def test_a_line_over_a_mebibyte_is_heard_by_its_beginning_before_it_ends(tmp_path: Path) -> None:
    place = _written(tmp_path, b"first\n" + b"x" * (3 * LINE_BYTES_MAX))
    output = _output(place)
    found, more = output.read()
    while more:
        seen, more = output.read()
        found += seen
    [first, long] = _items(found)
    positions = [each for each, _ in found if isinstance(each, OutputBatch)][-1].positions
    with (place / "out").open("ab") as file:
        file.write(b"still the same line\nlast\n")
    again = _read(_output(place, cursor=0, positions=positions))
    behind = _read(_output(place, cursor=positions["out"], positions=positions))

    assert first.text == "first"
    assert long.text.endswith("x… (more than 1 MiB in one line; the rest is left out)")
    assert len(long.text) <= LINE_CHARS_MAX
    assert positions["out"] == len("first\n") + 3 * LINE_BYTES_MAX
    assert _texts(again) == _texts(behind) == [("text", "last")]


@pytest.mark.requirement("transcript:long-lines-are-cut")
def test_a_long_line_is_cut_behind_its_secrets_and_says_by_how_much(tmp_path: Path) -> None:
    secret = "sk-" + "a1" * 30
    line = "y" * (LINE_CHARS_MAX - 90) + " " + secret + "z" * 100_000
    [item] = _items(_read(_output(_written(tmp_path, line.encode() + b"\n"))))

    assert "sk-a" not in item.text
    assert item.text.endswith(" more characters)")
    assert len(item.text) <= LINE_CHARS_MAX


@pytest.mark.requirement("runtimes:result-is-the-tail")
def test_without_a_result_event_the_result_is_the_last_32_kib_cut_between_characters(
    tmp_path: Path,
) -> None:
    text = "a" + "\N{SNOWMAN}" * 20_000 + "\n"
    place = _written(tmp_path, text.encode())
    [(signal, cursor)] = _signals(_read(_output(place)))

    assert isinstance(signal, ResultSeen)
    assert signal.key == f"{ATTEMPT}:result"
    assert set(signal.text) == {"\N{SNOWMAN}"}
    assert RESULT_BYTES_MAX - 4 < len(signal.text.encode()) + 1 <= RESULT_BYTES_MAX
    assert signal.bytes_total == cursor == len(text.encode())


@pytest.mark.requirement("runtimes:result-is-the-tail")
def test_the_tail_shows_text_events_as_text_and_no_other_events(tmp_path: Path) -> None:
    place = _written(
        tmp_path,
        b'before\n{"subagents":"usage","tokensIn":1}\n{"subagents":"text","text":"said"}\n'
        b'{"subagents":"broken"}\nafter\n\n',
    )
    result = _short(_last(_read(_output(place))))

    assert isinstance(result, ResultSeen)
    assert result.text == 'before\nsaid\n{"subagents":"broken"}\nafter'
    assert result.bytes_total == 0


@pytest.mark.requirement("runtimes:result-is-the-tail")
def test_the_end_of_an_event_that_was_cut_in_two_is_not_the_result(tmp_path: Path) -> None:
    event = b'{"subagents":"tool","name":"Read","output":"' + b"x" * 200_000 + b'"}\n'
    place = _written(tmp_path, event + b"the answer\n")
    result = _short(_last(_read(_output(place))))

    assert isinstance(result, ResultSeen)
    assert result.text == "the answer"


@pytest.mark.requirement("budgets:nothing-taken-back")
def test_a_total_that_shrinks_within_one_turn_takes_nothing_back(tmp_path: Path) -> None:
    place = _written(
        tmp_path,
        b'{"subagents":"usage","tokensIn":5000,"costUsd":0.5}\n'
        b'{"subagents":"usage","tokensIn":1,"tokensOut":7}\n',
    )
    usages = [each for each, _ in _signals(_read(_output(place))) if isinstance(each, UsageSeen)]

    assert [each.usage for each in usages] == [Usage(tokens_in=5000, tokens_out=7, cost_usd=0.5)]


@pytest.mark.requirement("redact:before-cutting")
def test_a_result_that_begins_in_the_middle_of_a_secret_shows_nothing_of_it(
    tmp_path: Path,
) -> None:
    secret = b"ghp_" + b"Ab3" * 12
    for kept in (1, 10, 30):
        after = b"z" * (RESULT_BYTES_MAX - kept)
        place = _written(tmp_path, b"w" * 9_000 + b" " + secret + b"\n" + after)
        result = _signals(_read(_output(place)))[-1][0]

        assert isinstance(result, ResultSeen)
        assert "Ab3" not in result.text
        assert "b3" not in result.text
        assert result.text.endswith("z" * (RESULT_BYTES_MAX - 100))


@pytest.mark.requirement("runtimes:result-event-beats-tail")
@pytest.mark.parametrize("ending", [b"\n", b""], ids=["terminated", "unterminated"])
def test_a_result_event_before_the_cursor_still_keeps_the_tail_from_being_the_result(
    tmp_path: Path, ending: bytes
) -> None:
    data = b'{"subagents":"result","text":"the answer"}' + ending
    place = _written(tmp_path, data)
    output = _output(place, cursor=len(data), positions={"out": len(data)})
    before = has_result(str(place / "out"), start=0, stop=output.begin)

    assert before
    assert not has_result(str(place / "out"), start=0, stop=len(data) - 3)
    assert _read(output, result_before=before) == []


@pytest.mark.requirement("runtimes:flood-is-coalesced")
def test_a_flood_of_progress_and_usage_yields_only_the_newest_of_a_turn(tmp_path: Path) -> None:
    lines = [
        f'{{"subagents":"progress","phase":"p{n}"}}\n{{"subagents":"usage","tokensIn":{n}}}\n'
        for n in range(10_000)
    ]
    place = _written(tmp_path, "".join(lines).encode() + b'{"subagents":"tool","name":"t"}\n')
    output, turns, found = _output(place), 0, list[tuple[Signal, int]]()
    more = True
    while more:
        seen, more = output.read()
        turns += 1
        found += _signals(seen)
    signals = [signal for signal, _ in found + _signals(output.rest(result_before=False))]

    assert turns <= 12
    assert sum(isinstance(each, ProgressSeen) for each in signals) <= turns
    assert sum(isinstance(each, UsageSeen) for each in signals) <= turns
    assert [type(each) for each in signals[-4:]] == [ProgressSeen, UsageSeen, ToolSeen, ResultSeen]
    newest = [each.usage for each in signals if isinstance(each, UsageSeen)][-1]
    assert newest.tokens_in == 9_999


@pytest.mark.requirement("results:whole")
def test_a_line_that_is_longer_than_a_block_keeps_its_characters(tmp_path: Path) -> None:
    text = "\N{SNOWMAN}" * (LINE_BYTES_MAX // 2)
    path = tmp_path / "out"
    path.write_text(text)

    assert "".join(whole_text(str(path), 10**9, end=path.stat().st_size)) == text


@pytest.mark.requirement("runtimes:events-survive-restart")
def test_what_follows_when_a_worker_empties_its_output_is_heard(tmp_path: Path) -> None:
    place = _written(tmp_path, b"a long line that was read\n", b"another one\n")
    output = _output(place)
    output.read()
    written = b'{"subagents":"result","text":"42"}\nlast\n'
    _written(tmp_path, written, b"oops\n")

    seen = _read(output)

    assert [text for _, text in _texts(seen)] == ["42", "last", "oops"]
    (result,) = (signal for signal, _ in _signals(seen))
    assert isinstance(result, ResultSeen)
    assert output.fed == Sizes(out=len(written), err=5)
    known = [batch.positions for batch, _ in seen if isinstance(batch, OutputBatch)][-1]
    _written(tmp_path, written + b"more\n", b"oops\n")
    again = _output(place, cursor=output.position, positions=known)
    assert [text for _, text in _texts(again.read()[0])] == ["more"]


@pytest.mark.requirement("runtimes:output-is-bounded-at-exit")
def test_nothing_is_read_past_the_sizes_at_the_end(tmp_path: Path) -> None:
    place = _written(tmp_path, b"mine\ntheirs\n", b"mine too\ntheirs too\n")
    output, seen, more = _output(place), list[Seen](), True
    while more:
        found, more = output.read(until=Sizes(out=5, err=9))
        seen += found

    assert [text for _, text in _texts(seen)] == ["mine", "mine too"]
    assert output.position == 5


# -- restarts at every place ------------------------------------------------------------------

LINES = (
    *(
        b"a",
        b"some words",
        b"",
        b"   ",
        b"{",
        b'{"subagents":1}',
        b"\x1b[1mred\x1b[0m",
        b"10%\r20%",
    ),
    *(b"caf\xc3\xa9 \xe2\x98\x83", b"\xff\xc3", b"n\x00l", b"fatal: no", b"x" * 90, b"y" * 300),
    *(b'{"subagents":"text","text":"said"}', b'{"subagents":"tool","name":"Bash","exitCode":1}'),
    *(b'{"subagents":"result","text":"42"}', b'{"subagents":"progress","phase":"p"}'),
    *(b'{"subagents":"tool","name":"Bash","status":"started","input":"ls"}', b"\r\r"),
)
ERR_LINES = tuple(b"E " + line for line in LINES if line.strip() and b"\r" not in line)


def _streams(lines: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    some = st.lists(st.sampled_from(lines), max_size=14)
    return some.flatmap(
        lambda chosen: st.sampled_from((b"\n".join(chosen), b"\n".join((*chosen, b""))))
    )


@pytest.mark.requirement("transcript:heard-once-over-restarts")
@settings(max_examples=400, deadline=None)
@given(
    out=_streams(LINES),
    err=_streams(ERR_LINES),
    seed=st.integers(0, 2**32),
    does_discard=st.booleans(),
)
def test_readers_killed_anywhere_together_hear_what_one_reader_hears(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    out: bytes,
    err: bytes,
    seed: int,
    does_discard: bool,
) -> None:
    place = tmp_path_factory.mktemp("attempt")
    with pytest.MonkeyPatch.context() as patch:
        _make_small(patch)
        whole = _read(_output(_written(place, out, err)))
        rng = random.Random(seed)  # noqa: S311 - repeatable
        hops = _Hops(_written(place, b"", b""), rng, does_discard=does_discard)
        hops.read(out, err)

    assert _of_err(hops.output) == _of_err(_items(whole))
    assert _of_out(hops.output) == _of_out(_items(whole))
    keys = {signal.key: signal for signal, _ in _signals(whole)}
    known = {key for key, each in keys.items() if not isinstance(each, ProgressSeen)}
    assert known <= set(hops.signals)
    assert {key for key in hops.signals if key.endswith(":result")} <= set(keys)
    assert [hops.signals[key] for key in known] == [keys[key] for key in known]


def _of_err(items: list[OutputItem]) -> list[OutputItem]:
    return [each for each in items if each.text.startswith("E ")]


def _of_out(items: list[OutputItem]) -> list[OutputItem]:
    return [each for each in items if not each.text.startswith("E ")]


def _make_small(patch: pytest.MonkeyPatch) -> None:
    """Every bound is met with a few bytes."""
    for name, value in (("CHUNK_BYTES", 17), ("READ_BYTES_MAX", 40), ("ITEMS_MAX", 3)):
        patch.setattr(output_module, name, value)
    patch.setattr(output_module, "RESULT_BYTES_MAX", 64)
    patch.setattr(output_module, "MARGIN_BYTES", 20)
    patch.setattr(output_module, "_SCAN_BYTES", 19)
    patch.setattr(lines_module, "LINE_BYTES_MAX", 120)
    patch.setattr(lines_module, "BEGINNING_BYTES", 24)
    patch.setattr(discard_module, "KEPT_BYTES", 90)
    patch.setattr(discard_module, "punch", _overwrite)


def _overwrite(path: str, *, until: int) -> None:
    with Path(path).open("r+b") as file:
        file.write(b"\0" * max(until, 0))


class _Hops:
    """Readers that are killed after any thing seen, while the files grow."""

    def __init__(self, place: Path, rng: random.Random, *, does_discard: bool) -> None:
        self._place = place
        self._rng = rng
        self._does_discard = does_discard
        self._cursor = 0
        self._positions: dict[str, int] = {}
        self.output: list[OutputItem] = []
        self.signals: dict[str, Signal] = {}

    def read(self, out: bytes, err: bytes) -> None:
        sizes = [0, 0]
        is_over = False
        while not is_over:
            sizes = [
                min(len(data), size + self._rng.randrange(60))
                for data, size in zip((out, err), sizes, strict=True)
            ]
            self._grow(out[: sizes[0]], err[: sizes[1]])
            is_whole = sizes == [len(out), len(err)]
            is_over = self._one_reader(is_whole=is_whole)

    def _grow(self, out: bytes, err: bytes) -> None:
        for name, data in (("out", out), ("err", err)):
            path = self._place / name
            with path.open("ab") as file:
                file.write(data[path.stat().st_size :])

    def _one_reader(self, *, is_whole: bool) -> bool:
        output = _output(self._place, cursor=self._cursor, positions=self._positions)
        for _ in range(self._rng.randrange(1, 60)):  # so far, then killed
            seen, more = output.read()
            if not self._take(seen):
                return False
            if not more and is_whole:
                path, gone = str(self._place / "out"), discarded(self._place)
                before = gone.has_result or has_result(path, start=gone.out, stop=output.begin)
                return self._take(output.rest(result_before=before))
        return False

    def _take(self, seen: list[Seen]) -> bool:
        """What the reader was given before it was killed; False = it was."""
        for each, cursor in seen:
            if self._rng.random() < 0.08:
                return False
            if isinstance(each, OutputBatch):
                self.output += each.items
                self._positions = {**self._positions, **each.positions}
            else:
                self.signals[_short(each).key] = _short(each)
            if self._rng.random() < 0.7:
                self._cursor = cursor  # else it was not kept yet, as between two leases
            if self._does_discard and self._rng.random() < 0.3:
                discard_before(
                    self._place,
                    out=min(self._cursor, self._positions.get("out", 0)),
                    err=self._positions.get("err", 0),
                )
        return True
