"""What parts m, n and s say, as rows."""

from collections.abc import Mapping, Sequence
from typing import Final

from bench.table import Row

Found = Mapping[str, Sequence[Mapping[str, float]]]

KINDS: Final = {"plain": "", "remote": ", each run on another node"}
CLUSTERS: Final = {
    "alone_sqlite": "one daemon, SQLite",
    "alone_postgres": "one daemon, PostgreSQL",
    "nodes1_postgres": "1 node",
    "nodes2_postgres": "2 nodes",
    "nodes4_postgres": "4 nodes",
    "nodes2_temporal": "2 nodes, Temporal",
    "nodes4_temporal": "4 nodes, Temporal",
}
PARTS: Final = {"nodes": "daemons", "postgres": "PostgreSQL", "temporal": "Temporal"}
CPU_PERCENT_MAX: Final = 1
STATEMENTS_MAX: Final = 5
CONNECTIONS_MAX: Final = 20
SPREAD_MIN: Final = 3
FORWARDED: Final = (("call_ratio", "a small call", None), ("run_ratio", "a run's calls", 1.3))


def cluster_rows(samples: Found) -> list[Row]:
    """Of all that was measured of several nodes."""
    found = samples.get("forwarded", ())
    return [
        *_coordination(samples),
        *_idle(samples),
        *(
            Row(
                f"n  {what} at another node ÷ at the owner, CPU", [e[name] for e in found], "", most
            )
            for name, what, most in FORWARDED
            if found
        ),
        *_spread(samples),
    ]


def _coordination(samples: Found) -> list[Row]:
    rows = []
    floor = [_total(each, "plain") for each in samples.get("alone_sqlite", ())]
    for name, what in CLUSTERS.items():
        found = samples.get(name, ())
        for kind, how in KINDS.items():
            if not found or f"{kind}_ms" not in found[0]:
                continue
            rows += [
                Row(f"m  {what}{how}", [each[f"{kind}_runs_per_s"] for each in found], "runs/s"),
                Row("m  … one run alone, p50", [each[f"{kind}_ms"] for each in found], "ms"),
            ]
            for part, whose in PARTS.items():
                used = [each[f"{kind}_{part}_ms"] for each in found]
                if any(used):
                    rows.append(Row(f"m  … CPU for 1,000 runs, {whose}", used, "s"))
            if name != "alone_sqlite" and floor:
                ratio = [_total(e, kind) / f for e, f in zip(found, floor, strict=True)]
                rows.append(Row("m  … all CPU ÷ one daemon, SQLite", ratio, ""))
    if plain := samples.get("temporal_parts", ()):
        total = [each["server_ms"] + each["worker_ms"] for each in plain]
        rows += [
            Row("m  plain Temporal workflows", [each["runs_per_s"] for each in plain], "runs/s"),
            Row("m  … CPU for 1,000 runs, server", [each["server_ms"] for each in plain], "s"),
            Row("m  … CPU for 1,000 runs, worker", [each["worker_ms"] for each in plain], "s"),
        ]
        if floor:
            ratio = [mine / theirs for mine, theirs in zip(total, floor, strict=True)]
            rows.append(Row("m  … all CPU ÷ one daemon, SQLite", ratio, ""))
    return rows


def _total(sample: Mapping[str, float], kind: str) -> float:
    return sum(sample[f"{kind}_{part}_ms"] for part in PARTS)


def _idle(samples: Found) -> list[Row]:
    rows = []
    for places in ("postgres", "temporal"):
        found = samples.get(f"idle_{places}", ())
        if not found:
            continue
        how = "3 idle nodes" if places == "postgres" else "3 idle nodes, Temporal"

        def of(field: str, found: Sequence[Mapping[str, float]] = found) -> list[float]:
            return [each[field] for each in found]

        rows += [
            Row(f"n  {how}: CPU of the worst", of("cpu_percent"), "%", CPU_PERCENT_MAX),
            Row("n  … statements of the worst", of("statements"), "/s", STATEMENTS_MAX),
            Row("n  … statements of all", of("statements_total"), "/s", STATEMENTS_MAX),
            Row("n  … connections of the worst", of("connections"), "", CONNECTIONS_MAX),
            Row("n  … CPU of PostgreSQL", of("postgres_percent"), "%"),
        ]
        if places == "temporal":
            rows.append(Row("n  … CPU of Temporal", of("temporal_percent"), "%"))
    return rows


def _spread(samples: Found) -> list[Row]:
    rows = []
    for places, how in (("postgres", ""), ("temporal", ", Temporal")):
        found = samples.get(f"spread4_{places}", ())
        if not found:
            continue
        one = [each["runs_per_s"] for each in samples["spread1"]]
        four = [each["runs_per_s"] for each in found]
        ratio = [mine / theirs for mine, theirs in zip(four, one, strict=True)]
        if places == "postgres":
            rows.append(Row("s  one session, 1 node × 8 slots", one, "runs/s"))
        rows += [
            Row(f"s  one session, 4 nodes × 8 slots{how}", four, "runs/s"),
            Row("s  … ÷ 1 node", ratio, "", SPREAD_MIN, "higher"),
        ]
    return rows
