"""``python -m bench [--quick] [--rounds N] [--only a,b,…] [--json FILE]``

Every measurement of every round is a process of its own on files of its own; the rounds are
interleaved (a1 b1 c1, a2 b2 c2, …), so that a busy minute of the machine hits all alike.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import llm_workers, log_search, machine, standing
from bench.cluster_rows import cluster_rows
from bench.table import Row, render

PARTS: Final = "abcdefghijklw"
ON_DEMAND: Final = "xptmns"
"""Parts that take long, or need what is not everywhere: only when they are asked for by name."""
TIMEOUT_S: Final = 1_800.0

Sample = dict[str, float]
Samples = dict[str, list[Sample]]


class Sizes(NamedTuple):
    """How much of everything."""

    runs: int
    peer_runs: int
    finished: int
    very_many: int
    few: int
    burst: int
    probes: int
    open_runs: int
    workers: int
    seconds: float
    rounds: int
    lines: int
    commands: int
    idle: int
    wide: int
    fan_in: int
    listed: int
    tree: int
    drawn: int
    pages: int
    cluster_runs: int
    waves: int
    quiet_s: float
    """Longer than connections between nodes are kept (60 s)."""


FULL: Final = Sizes(
    runs=2_000,
    peer_runs=200,
    finished=100_000,
    very_many=1_000_000,
    few=1_000,
    burst=1_000,
    probes=100,
    open_runs=10_000,
    workers=200,
    seconds=10.0,
    rounds=5,
    lines=1_000_000,
    commands=9,
    idle=300,
    wide=10_000,
    fan_in=5_000,
    listed=5_000,
    tree=3_000,
    drawn=1_000,
    pages=10,
    cluster_runs=320,
    waves=4,
    quiet_s=75.0,
)
QUICK: Final = Sizes(
    runs=500,
    peer_runs=40,
    finished=5_000,
    very_many=20_000,
    few=500,
    burst=200,
    probes=20,
    open_runs=1_000,
    workers=20,
    seconds=2.0,
    rounds=1,
    lines=100_000,
    commands=5,
    idle=300,
    wide=1_000,
    fan_in=500,
    listed=1_000,
    tree=600,
    drawn=200,
    pages=10,
    cluster_runs=96,
    waves=2,
    quiet_s=10.0,
)
TINY: Final = Sizes(
    runs=20,
    peer_runs=3,
    finished=1_100,
    very_many=1_200,
    few=60,
    burst=5,
    probes=2,
    open_runs=10,
    workers=2,
    seconds=0.2,
    rounds=1,
    lines=2_000,
    commands=1,
    idle=3,
    wide=20,
    fan_in=20,
    listed=80,
    tree=40,
    drawn=10,
    pages=2,
    cluster_runs=16,
    waves=1,
    quiet_s=0.1,
)
"""For the test that the harness works at all; its numbers mean nothing."""


class Measurement(NamedTuple):
    """One function of one module, called in a fresh process with fresh files."""

    name: str
    parts: str
    call: str
    """``{here}`` is a fresh directory, ``{kept}`` one that outlives the rounds."""


def measurements(sizes: Sizes) -> tuple[Measurement, ...]:
    """All there are, in the order of a round."""
    runs = f"runs={sizes.runs}"
    return (
        Measurement("engine", "aftx", f"lifecycle.measure(Path('{{here}}/db'), {runs})"),
        Measurement(
            "floor", "a", f"floor.measure(Path('{{here}}/db'), Path('{{kept}}/recording'), {runs})"
        ),
        Measurement("frozen", "a", f"frozen_floor.measure(Path('{{here}}/db'), {runs})"),
        Measurement("dbos", "a", f"peer_dbos.measure(Path('{{here}}/db'), runs={sizes.peer_runs})"),
        Measurement(
            "temporal", "t", f"peer_temporal.measure(Path('{{here}}/db'), runs={sizes.peer_runs})"
        ),
        Measurement("full", "f", f"lifecycle.measure(Path('{{kept}}/full.db'), {runs})"),
        Measurement("vast", "x", f"lifecycle.measure(Path('{{kept}}/vast.db'), {runs})"),
        *(
            Measurement(f"{what}_{size}", "k", f"standing.{what}(Path('{{kept}}/{size}'))")
            for what, sizes_of in (("start", ("none", "many")), ("lists", ("few", "many")))
            for size in sizes_of
        ),
        *(
            Measurement(
                name, "l", f"wide.measure(Path('{{here}}/db'), shape={shape!r}, number={n})"
            )
            for name, shape, n in (
                ("narrow", "children", min(100, sizes.wide)),
                ("wide", "children", sizes.wide),
                ("fan_in", "fan_in", sizes.fan_in),
            )
        ),
        Measurement(
            "spawn1", "b", f"spawning.measure(Path('{{here}}'), runs={sizes.burst}, spawners=1)"
        ),
        Measurement(
            "spawn8", "b", f"spawning.measure(Path('{{here}}'), runs={sizes.burst}, spawners=8)"
        ),
        Measurement("handoff", "c", f"handoff.measure(Path('{{here}}'), runs={sizes.probes})"),
        Measurement(
            "restart", "d", f"restart.measure(Path('{{here}}/open'), runs={sizes.open_runs})"
        ),
        Measurement(
            "live",
            "e",
            f"live.measure(Path('{{here}}'), workers={sizes.workers}, seconds={sizes.seconds})",
        ),
        *(
            Measurement(
                f"mcp_{era}",
                "g",
                f"agents.measure(Path('{{here}}'), runs={sizes.probes}, version=agents.{era})",
            )
            for era in ("LEGACY", "MODERN")
        ),
        Measurement(
            "commands", "j", f"commands.measure(Path('{{here}}/h'), rounds={sizes.commands})"
        ),
        Measurement("mcp_cpu", "g", f"agents.measure_cpu(Path('{{here}}'), runs={sizes.probes})"),
        Measurement("logs", "h", f"log_search.measure(Path('{{here}}/logs'), lines={sizes.lines})"),
        Measurement(
            "command_runs",
            "i",
            f"command_runs.measure(Path('{{here}}'), runs={sizes.probes}, beside={sizes.idle})",
        ),
        Measurement(
            "workers", "w", f"llm_workers.measure(Path('{{here}}/w'), rounds={sizes.commands})"
        ),
        Measurement(
            "page_runs",
            "p",
            f"page_runs.measure(Path('{{here}}/p'), runs={sizes.listed}, tree={sizes.tree},"
            f" drawn={sizes.drawn}, pages={sizes.pages},"
            f" probes={sizes.probes}, seconds={sizes.seconds})",
        ),
        Measurement(
            "page_transcript",
            "p",
            f"page_transcript.measure(Path('{{here}}/p'), lines={sizes.lines})",
        ),
        Measurement("page_restart", "p", "page_restart.measure(Path('{here}/p'))"),
        *cluster_measurements(sizes),
    )


def cluster_measurements(sizes: Sizes) -> tuple[Measurement, ...]:
    """Those of several nodes."""
    runs = f"runs={sizes.cluster_runs}"
    return (
        *(
            Measurement(
                name, "m", f"coordination.alone(Path('{{here}}'), {runs}, is_shared={is_shared})"
            )
            for name, is_shared in (("alone_sqlite", False), ("alone_postgres", True))
        ),
        *(
            Measurement(
                f"nodes{nodes}_{places}",
                "m",
                f"coordination.cluster(Path('{{here}}'), {runs}, nodes={nodes}, places={places!r})",
            )
            for nodes, places in (
                (1, "postgres"),
                (2, "postgres"),
                (4, "postgres"),
                (2, "temporal"),
                (4, "temporal"),
            )
        ),
        Measurement(
            "temporal_parts",
            "m",
            f"peer_temporal.measure_parts(Path('{{here}}/db'), runs={sizes.peer_runs // 2})",
        ),
        *(
            Measurement(
                f"idle_{places}",
                "n",
                f"idle_cluster.measure(Path('{{here}}'), seconds={sizes.seconds},"
                f" quiet_s={sizes.quiet_s}, places={places!r})",
            )
            for places in ("postgres", "temporal")
        ),
        Measurement(
            "forwarded",
            "n",
            f"forwarded.measure(Path('{{here}}'), calls={2 * sizes.cluster_runs})",
        ),
        *(
            Measurement(
                name,
                "s",
                f"spread.measure(Path('{{here}}'), nodes={nodes}, slots=8, waves={sizes.waves},"
                f" places={places!r})",
            )
            for name, nodes, places in (
                ("spread1", 1, "postgres"),
                ("spread4_postgres", 4, "postgres"),
                ("spread4_temporal", 4, "temporal"),
            )
        ),
    )


def preparations(sizes: Sizes) -> dict[str, str]:
    """What is made once before the rounds, by the measurement that needs it."""
    return {
        "floor": (
            f"lifecycle.record(Path('{{kept}}/recorded.db'), Path('{{kept}}/recording'), "
            f"runs={sizes.runs})"
        ),
        "full": f"full.fill(Path('{{kept}}/full.db'), runs={sizes.finished})",
        "vast": f"full.fill(Path('{{kept}}/vast.db'), runs={sizes.very_many})",
        "start_none": "standing.fill(Path('{kept}/none'), runs=0)",
        "start_many": f"standing.fill(Path('{{kept}}/many'), runs={sizes.finished})",
        "lists_few": f"standing.fill(Path('{{kept}}/few'), runs={sizes.few})",
        "restart": f"restart.fill(Path('{{kept}}/open'), runs={sizes.open_runs})",
    }


def in_a_process(call: str, *, here: Path, kept: Path) -> Sample:
    """Run ``module.function(…)`` of this package in a new interpreter; returns what it returned.

    Raises:
        RuntimeError: It failed; the message has the end of what it printed.
    """
    module = call.partition(".")[0]
    text = call.format(here=here, kept=kept)
    code = (
        "import json; from pathlib import Path; "
        f"from bench import {module}; print(json.dumps({text}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{call}: {done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return found if isinstance(found, dict) else {}


def collect(sizes: Sizes, parts: str, rounds: int, kept: Path) -> Samples:
    """All samples of the measurements that ``parts`` need."""
    wanted = [each for each in measurements(sizes) if set(each.parts) & set(parts)]
    for name, call in preparations(sizes).items():
        if any(each.name == name for each in wanted):
            _say(f"preparing {name}")
            in_a_process(call, here=kept, kept=kept)
    samples: Samples = {}
    for number in range(rounds):
        for each in wanted:
            here = kept / "here"
            here.mkdir()
            if each.name == "restart":
                shutil.copytree(kept / "open", here / "open", ignore=_sockets)
            try:
                sample = in_a_process(each.call, here=here, kept=kept)
            finally:
                shutil.rmtree(here)
            samples.setdefault(each.name, []).append(sample)
            _say(f"round {number + 1}/{rounds} {each.name}: {_short(sample)}")
    return samples


def table(samples: Samples, sizes: Sizes) -> list[Row]:
    """The judged rows and those that explain them, for what was measured."""
    rows: list[Row] = []

    def of(name: str, field: str) -> list[float]:
        return [sample[field] for sample in samples.get(name, ())]

    def over(name: str, other: str, field: str = "runs_per_s") -> list[float]:
        pairs = zip(of(name, field), of(other, field), strict=True)
        return [mine / theirs for mine, theirs in pairs]

    if "floor" in samples:
        rows += [
            Row("a  whole life, scripted", of("engine", "runs_per_s"), "runs/s"),
            Row("a  raw SQLite, the same rows", of("floor", "runs_per_s"), "runs/s"),
            Row("a  raw SQLite, the rows of 2026-11-25", of("frozen", "runs_per_s"), "runs/s"),
            Row("a  DBOS, SQLite, six steps", of("dbos", "runs_per_s"), "runs/s"),
            Row("a  ÷ raw SQLite", over("engine", "floor"), "", 0.3, "higher"),
            Row("a  whole life ÷ frozen floor", over("engine", "frozen"), "", 0.5, "higher"),
            Row("a  ÷ DBOS", over("engine", "dbos"), "", 70, "higher"),
        ]
    if "temporal" in samples:
        rows += [
            Row("t  Temporal, six activities", of("temporal", "runs_per_s"), "runs/s"),
            Row("t  (a) ÷ Temporal", over("engine", "temporal"), ""),
        ]
    rows += spawning_rows(samples)
    if "handoff" in samples:
        rows += [
            Row("c  worker's end → result, p50", of("handoff", "p50"), "ms", 20),
            Row("c  worker's end → result, p99", of("handoff", "p99"), "ms"),
        ]
    if "restart" in samples:
        rows.append(
            Row(f"d  restart with {sizes.open_runs:,} open runs", of("restart", "seconds"), "s", 2)
        )
    if "live" in samples:
        rows += [
            Row(f"e  daemon CPU, {sizes.workers} live workers", of("live", "cpu_percent"), "%", 1),
            Row("e  memory per live worker", of("live", "mb_per_worker"), "MB", 1),
            Row("e  … of it the daemon's", of("live", "daemon_kb_per_worker"), "kB"),
            Row("e  … of it the shim's", of("live", "shim_kb_per_worker"), "kB"),
        ]
    rows += agent_rows(samples)
    rows += command_rows(samples.get("commands", []))
    rows += log_rows(samples.get("logs", []), sizes.lines)
    rows += command_run_rows(samples.get("command_runs", []), sizes.idle)
    rows += worker_rows(samples.get("workers", []))
    rows += page_rows(samples, sizes)
    rows += cluster_rows(samples)
    if "full" in samples:
        rows += [
            Row(
                f"f  (a) with {sizes.finished:,} finished runs", of("full", "runs_per_s"), "runs/s"
            ),
            Row("f  ÷ (a)", over("full", "engine"), "", 0.95, "higher"),
        ]
    if "vast" in samples:
        many = f"x  (a) with {sizes.very_many:,} finished runs ÷ (a)"
        rows.append(Row(many, over("vast", "engine"), "", 0.95, "higher"))
    if "wide" in samples:
        rows += [
            Row("l  a child among 100, CPU", of("narrow", "all_us"), "µs"),
            Row(
                f"l  … among {sizes.wide:,} ÷ among 100", over("wide", "narrow", "all_us"), "", 1.3
            ),
            Row(f"l  fan-in of {sizes.fan_in:,}, CPU each", of("fan_in", "all_us"), "µs"),
        ]
    return [*rows, *standing_rows(samples, sizes)]


def standing_rows(samples: Samples, sizes: Sizes) -> list[Row]:
    """What part k says."""
    if "start_many" not in samples:
        return []

    def over(name: str, many: str, few: str) -> list[float]:
        pairs = zip(samples[many], samples[few], strict=True)
        return [mine[name] / theirs[name] for mine, theirs in pairs]

    many = f"with {sizes.finished:,} finished runs"
    return [
        Row("k  start, CPU until quiet", [each["quiet_s"] for each in samples["start_none"]], "s"),
        Row(f"k  … {many} ÷ none", over("quiet_s", "start_many", "start_none"), "", 1.5),
        *(
            row
            for name in standing.ASKED
            for row in (
                Row(f"k  {name}, CPU", [each[name] for each in samples["lists_few"]], "ms"),
                Row(f"k  … {many} ÷ {sizes.few:,}", over(name, "lists_many", "lists_few"), "", 2),
            )
        ),
    ]


def command_rows(found: list[Sample]) -> list[Row]:
    """What part j says."""
    names = {"list": "list", "run": "run true", "status": "status", "report": "a worker's report"}
    if not found:
        return []
    return [
        *(
            Row(f"j  {what} ÷ python -c pass", [sample[name] for sample in found], "", 6)
            for name, what in names.items()
        ),
        Row("j  python -c pass, CPU", [sample["pass_ms"] for sample in found], "ms"),
    ]


def agent_rows(samples: Samples) -> list[Row]:
    """What part g says."""

    def of(name: str, field: str) -> list[float]:
        return [sample[field] for sample in samples.get(name, ())]

    rows: list[Row] = []
    for name, era in (("mcp_LEGACY", "2025-11-25"), ("mcp_MODERN", "2026-07-28")):
        if name in samples:
            rows += [
                Row(f"g  the worker alone, {era}", of(name, "own"), "ms"),
                Row(f"g  spawn → wait adds, p50, {era}", of(name, "added_p50"), "ms", 15),
                Row(f"g  spawn → wait adds, p99, {era}", of(name, "added_p99"), "ms"),
            ]
    if "mcp_cpu" in samples:
        rows += [
            Row("g  daemon CPU, spawn and wait, HTTP", of("mcp_cpu", "http"), "ms"),
            Row("g  … MCP ÷ HTTP, 2025-11-25", of("mcp_cpu", "mcp_legacy_ratio"), "", 1.5),
            Row("g  … MCP ÷ HTTP, 2026-07-28", of("mcp_cpu", "mcp_modern_ratio"), "", 1.5),
            Row("g  daemon CPU, ping", of("mcp_cpu", "ping"), "ms"),
            Row("g  … ping ÷ /healthz", of("mcp_cpu", "ping_ratio"), "", 2),
        ]
    return rows


def log_rows(found: list[Sample], lines: int) -> list[Row]:
    """What part h says."""
    if not found:
        return []

    def of(field: str) -> list[float]:
        return [sample[field] for sample in found]

    rows = [
        Row(f"h  keeping {lines:,} lines", of("append_s"), "s"),
        Row("h  the newest 50 of them", of("newest_ms"), "ms"),
    ]
    for name, what in log_search.SEARCHES.items():
        rows += [
            Row(f"h  log --grep '{what}'", of(f"{name}_s"), "s", 2),
            Row("h  … ÷ grep on the same text", of(f"{name}_ratio"), "", 10),
        ]
    return [
        *rows,
        Row("h  event loop late meanwhile, p99", of("late_p99"), "ms", 50),
        Row("h  redacting text without secrets", of("redact_mb_per_s"), "MB/s", 150, "higher"),
    ]


def spawning_rows(samples: Samples) -> list[Row]:
    """What part b says."""
    rows: list[Row] = []
    for name, who in (("spawn1", "1 spawner"), ("spawn8", "8 spawners")):
        found = samples.get(name, [])

        def of(field: str, found: list[Sample] = found) -> list[float]:
            return [sample[field] for sample in found]

        if found:
            rows += [
                Row(f"b  spawn p50, {who}", of("spawn_p50"), "ms"),
                Row(f"b  spawn p99, {who}", of("spawn_p99"), "ms", 15),
                Row(f"b  status p50, {who}", of("status_p50"), "ms"),
                Row(f"b  status p99, {who}", of("status_p99"), "ms", 50),
                Row(f"b  spawns, {who}", of("spawns_per_s"), "/s"),
            ]
    return rows


def command_run_rows(found: list[Sample], idle: int) -> list[Row]:
    """What part i says."""
    if not found:
        return []

    def of(field: str) -> list[float]:
        return [sample[field] for sample in found]

    return [
        Row("i  CPU of a scripted run", of("scripted"), "ms"),
        Row("i  CPU of a run of `true`", of("real"), "ms"),
        Row("i  ÷ scripted", of("ratio"), "", 2),
        Row(f"i  … beside {idle} idle processes", of("ratio_beside"), "", 2),
    ]


def worker_rows(found: list[Sample]) -> list[Row]:
    """What part w says."""
    if not found:
        return []
    rows = [
        Row(f"w  CPU of an llm worker, {name}", [sample[name] for sample in found], "s")
        for name in llm_workers.ADDRESSES
    ]
    if "claude" in found[0]:
        with_us = [sample["claude_ours"] / sample["claude"] for sample in found]
        rows += [
            Row("w  CPU of Claude Code alone", [sample["claude"] for sample in found], "s"),
            Row("w  … with our tools ÷ alone", with_us, ""),
        ]
    return rows


def page_rows(samples: Samples, sizes: Sizes) -> list[Row]:
    """What part p says."""

    def row(
        what: str, unit: str, name: str, *fields: str, target: float | None = None
    ) -> list[Row]:
        """Of several fields the worst of each sample."""
        found = [max(sample[field] for field in fields) for sample in samples.get(name, ())]
        return [Row(f"p  {what}", found, unit, target)] if found else []

    runs, text, restart = "page_runs", "page_transcript", "page_restart"
    return [
        *row(
            f"rows of {sizes.listed:,} runs, from the address",
            "ms",
            runs,
            "first_rows_ms",
            target=1_000,
        ),
        *row("… the slowest", "ms", runs, "first_rows_worst_ms"),
        *row(
            "DOM nodes, Runs, a tree unfolded",
            "",
            runs,
            "nodes_runs",
            "nodes_runs_open",
            target=3_000,
        ),
        *row(
            f"DOM nodes, a tree of {sizes.tree:,}, unfolded",
            "",
            runs,
            "nodes_tree",
            "nodes_tree_open",
            target=3_000,
        ),
        *row("DOM nodes, its graph, as a table", "", runs, "nodes_table", target=3_000),
        *row(f"DOM nodes, a graph of {sizes.drawn:,}", "", runs, "nodes_graph", target=3_000),
        *row("DOM nodes, Now", "", runs, "nodes_now"),
        *row("longest frame, scrolling all runs", "ms", runs, "frame_worst_ms", target=100),
        *row("… p99", "ms", runs, "frame_p99_ms"),
        *row("… longest that scripts and layout took", "ms", runs, "work_worst_ms"),
        *row(f"opening {sizes.lines:,} lines", "ms", text, "open_ms", target=500),
        *row("a search in them, the slowest", "ms", text, "search_worst_ms", target=2_000),
        *row("memory of the page's process, highest", "MB", text, "rss_worst_mb", target=300),
        *row("… of its script at the end", "MB", text, "heap_mb"),
        *row("DOM nodes, transcript", "", text, "nodes", target=3_000),
        *row("hand-off p50, no page open", "ms", runs, "handoff_alone_ms"),
        *row(f"… {sizes.pages} pages open ÷ none", "", runs, "handoff_ratio", target=1.1),
        *row("daemon's CPU for a hand-off, no page open", "ms", runs, "handoff_cpu_alone_ms"),
        *row(f"… {sizes.pages} pages open", "ms", runs, "handoff_cpu_beside_ms"),
        *row(
            f"idle daemon's CPU, {sizes.pages} pages open", "%", runs, "idle_cpu_percent", target=2
        ),
        *row("two pages right after kill -9, from the start", "s", restart, "right_s", target=3),
        *row("… of it until the daemon answered", "s", restart, "answers_s"),
    ]


def _sockets(directory: str, names: list[str]) -> set[str]:
    return {name for name in names if Path(directory, name).is_socket()}


def _short(sample: Sample) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in sample.items())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--tiny", action="store_true", help="only to see that everything runs")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (5; quick: 1)")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, such as a,f")
    parser.add_argument("--json", type=Path, help="write every sample there")
    parser.add_argument("--dir", type=Path, help="measure on this disk (the temporary directory)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a target was missed."""
    asked = parse(argv)
    sizes = TINY if asked.tiny else QUICK if asked.quick else FULL
    parts = "".join(part.strip() for part in asked.only.split(","))
    if not parts or set(parts) - set(PARTS + ON_DEMAND):
        _say(f"--only takes some of {','.join(PARTS + ON_DEMAND)}, not {asked.only}")
        return 2
    rounds = asked.rounds or sizes.rounds
    with tempfile.TemporaryDirectory(prefix="bench-", dir=asked.dir) as scratch:
        kept = Path(scratch)
        where = machine.describe(kept)
        _say(where)
        samples = collect(sizes, parts, rounds, kept)
    rows = table(samples, sizes)
    print(f"{where}; {rounds} rounds, interleaved\n\n{render(rows)}")
    missed = [row for row in rows if row.is_met is False]
    print(f"\n{len(missed)} target(s) missed" if missed else "\nall targets met")
    if asked.json is not None:
        medians = {row.what: statistics.median(row.values) for row in rows}
        content = {"machine": where, "medians": medians, "samples": samples}
        asked.json.write_text(json.dumps(content, indent=1), "utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
