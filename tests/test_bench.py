"""The benchmark harness measures every part and judges it honestly; its numbers are no test."""

import json
import math
import shutil
import sys
from pathlib import Path

import pytest
from bench import browser
from bench.__main__ import TINY, in_a_process, main, measurements, preparations, table
from bench.table import Row, percentiles, render
from tests.extensions.cluster.postgres.postgres_server import programs


@pytest.mark.requirement("bench:measures")
def test_every_run_of_the_benchmark_is_really_over_and_its_rows_can_be_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "samples.json"

    status = main(["--tiny", "--only", "f", "--json", str(kept), "--dir", str(tmp_path)])

    samples = json.loads(kept.read_text())["samples"]
    assert status in {0, 1}
    assert set(samples) == {"engine", "full"}
    assert all(sample["runs_per_s"] > 0 for found in samples.values() for sample in found)
    assert "÷ (a)" in capsys.readouterr().out


@pytest.mark.requirement("bench:standing")
@pytest.mark.skipif(sys.platform != "linux", reason="CPU time is read from /proc")
def test_a_daemon_beside_finished_runs_is_measured_with_their_track_records_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "samples.json"

    status = main(["--tiny", "--only", "k,x", "--json", str(kept), "--dir", str(tmp_path)])

    samples = json.loads(kept.read_text())["samples"]
    assert status in {0, 1}
    measured = {"engine", "vast", "start_none", "start_many", "lists_few", "lists_many"}
    assert set(samples) == measured
    assert all(value > 0 for found in samples.values() for value in found[0].values())
    assert "k  … with 1,100 finished runs ÷ none" in capsys.readouterr().out


@pytest.mark.requirement("bench:floor")
def test_the_floor_writes_the_rows_that_the_engine_wrote(tmp_path: Path) -> None:
    calls = {each.name: each.call for each in measurements(TINY)}
    in_a_process(preparations(TINY)["floor"], here=tmp_path, kept=tmp_path)

    in_a_process(calls["floor"], here=tmp_path, kept=tmp_path)

    assert _rows(tmp_path / "db") == _rows(tmp_path / "recorded.db")


@pytest.mark.requirement("bench:floor")
def test_the_frozen_floor_writes_the_recorded_rows_under_as_many_ids_as_are_asked_for(
    tmp_path: Path,
) -> None:
    in_a_process("frozen_floor.measure(Path('{here}/db'), runs=40)", here=tmp_path, kept=tmp_path)

    rows = _rows(tmp_path / "db")
    assert len(rows) == 48 * (1 + 8 + 1)


def _rows(database: Path) -> list[tuple[object, ...]]:
    import sqlite3  # noqa: PLC0415 - only this looks behind the store

    connection = sqlite3.connect(database)
    try:
        return [
            *connection.execute("SELECT run_id, seq, phase, state FROM run ORDER BY run_id"),
            *connection.execute("SELECT run_id, seq, key, data FROM journal ORDER BY run_id, seq"),
            *connection.execute("SELECT message_id, consumed_at_ms FROM inbox ORDER BY message_id"),
        ]
    finally:
        connection.close()


@pytest.mark.requirement("bench:daemon")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize(
    "name",
    [
        "spawn8",
        "handoff",
        "live",
        "commands",
        "command_runs",
        "mcp_LEGACY",
        "mcp_MODERN",
        "mcp_cpu",
    ],
)
def test_a_real_daemon_is_measured(name: str, tmp_path: Path) -> None:
    calls = {each.name: each.call for each in measurements(TINY)}

    sample = in_a_process(calls[name], here=tmp_path, kept=tmp_path)

    assert all(math.isfinite(value) for value in sample.values())


@pytest.mark.requirement("bench:cluster")
@pytest.mark.skipif(sys.platform != "linux", reason="CPU time is read from /proc")
@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
@pytest.mark.parametrize("name", ["alone_postgres", "nodes1_postgres", "spread1", "forwarded"])
def test_a_real_node_on_a_real_database_is_measured(name: str, tmp_path: Path) -> None:
    calls = {each.name: each.call for each in measurements(TINY)}

    sample = in_a_process(calls[name], here=tmp_path, kept=tmp_path)

    assert all(math.isfinite(value) for value in sample.values())
    if name.endswith("postgres"):
        assert sample["plain_nodes_ms"] > 0
        assert sample["plain_postgres_ms"] > 0


@pytest.mark.requirement("bench:cluster")
def test_what_nodes_cost_is_told_over_one_daemon_of_the_same_round() -> None:
    def sample(kind: str, nodes_ms: float) -> dict[str, float]:
        names = ("runs_per_s", "ms", "nodes_ms", "postgres_ms", "temporal_ms")
        return {f"{kind}_{name}": nodes_ms if name == "nodes_ms" else 0.0 for name in names}

    samples = {
        "alone_sqlite": [sample("plain", 10.0), sample("plain", 20.0)],
        "nodes2_postgres": [
            sample("plain", 15.0) | sample("remote", 40.0),
            sample("plain", 30.0) | sample("remote", 60.0),
        ],
    }

    ratios = [row.values for row in table(samples, TINY) if "÷" in row.what]

    assert ratios == [[1.5, 1.5], [4.0, 3.0]]


@pytest.mark.requirement("bench:daemon")
def test_a_restart_is_measured_with_every_open_run_in_memory(tmp_path: Path) -> None:
    calls = {each.name: each.call for each in measurements(TINY)}
    in_a_process(preparations(TINY)["restart"], here=tmp_path, kept=tmp_path)

    sample = in_a_process(calls["restart"], here=tmp_path, kept=tmp_path)

    assert sample["open_runs"] >= TINY.open_runs
    assert sample["seconds"] > 0


@pytest.mark.requirement("bench:logs")
@pytest.mark.skipif(shutil.which("grep") is None, reason="there is nothing to compare with")
def test_searching_a_transcript_is_measured_against_grep_with_the_same_answers(
    tmp_path: Path,
) -> None:
    calls = {each.name: each.call for each in measurements(TINY)}

    sample = in_a_process(calls["logs"], here=tmp_path, kept=tmp_path)

    assert all(math.isfinite(value) and value > 0 for value in sample.values())


@pytest.mark.requirement("bench:page")
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.skipif(browser.missing() is not None, reason=browser.missing() or "")
def test_the_web_page_is_measured_in_a_real_browser(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "samples.json"

    status = main(["--tiny", "--only", "p", "--json", str(kept), "--dir", str(tmp_path)])

    samples = json.loads(kept.read_text())["samples"]
    assert status in {0, 1}
    assert set(samples) == {"page_runs", "page_transcript", "page_restart"}
    assert all(math.isfinite(value) for found in samples.values() for value in found[0].values())
    assert "p  a search in them, the slowest" in capsys.readouterr().out


@pytest.mark.requirement("bench:misses-are-shown")
def test_a_missed_target_is_printed_as_missed() -> None:
    met = Row("met", [1.0, 3.0, 2.0], "ms", 20)
    missed = Row("missed", [10.0], "runs/s", 30, "higher")

    shown = render([met, missed]).splitlines()

    assert "2 [1–3] ms" in shown[2]
    assert "met" in shown[2]
    assert "10.00×" in shown[2]
    assert "MISSED" in shown[3]
    assert "0.33×" in shown[3]


@pytest.mark.requirement("bench:misses-are-shown")
def test_a_target_of_a_ratio_is_judged_by_the_pairs_of_each_round() -> None:
    samples = {
        "engine": [{"runs_per_s": 100.0}, {"runs_per_s": 200.0}],
        "full": [{"runs_per_s": 50.0}, {"runs_per_s": 200.0}],
    }

    (_, ratio) = table(samples, TINY)

    assert ratio.values == [0.5, 1.0]
    assert ratio.is_met is False


@pytest.mark.requirement("bench:measures")
def test_percentiles_are_nearest_ranks_in_milliseconds() -> None:
    seconds = [number / 1000 for number in range(1, 101)]

    assert percentiles(seconds) == (50, 99)
    assert percentiles([0.004]) == (4, 4)


@pytest.mark.requirement("bench:measures")
def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "a,z"]) == 2
    assert "a,b,c,d,e,f" in capsys.readouterr().err
