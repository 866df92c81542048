"""The Python workers of ``subagents demo``: plain programs, nothing of subagents is imported.

    python -I demo_worker.py count|lint|summary      (in a directory with the tree ``source``)

They take what any program can take: files in the working directory, the results of the runs before
them on stdin, and of a retry the reason in ``SUBAGENTS_RETRY_REASON``. What they write to stdout is
their result.
"""

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SOURCE: Final = Path("source")
COLUMNS_MAX: Final = 100
LARGEST_SHOWN: Final = 5


def count() -> str:
    """Lines of each module → counts.json.

    The first try looks in one directory only, finds nothing, and says that it is done: what a
    worker says is no proof. The retry is told what was wrong and looks below as well.
    """
    reason = os.environ.get("SUBAGENTS_RETRY_REASON")
    found = sorted(SOURCE.glob("*.py") if reason is None else SOURCE.rglob("*.py"))
    counts = [{"module": str(each), "lines": len(_lines(each))} for each in found]
    _write_json("counts.json", counts)
    if reason is None:
        return "All modules counted."
    return f"{len(counts)} modules counted, this time below {SOURCE}/, too; I was told: {reason}"


def lint() -> str:
    """Lines over 100 columns and public things without a docstring → lint.json."""
    modules = sorted(SOURCE.rglob("*.py"))
    findings: list[dict[str, object]] = []
    for index, module in enumerate(modules):
        if index == len(modules) // 2:
            # Any worker may say how far it is; nothing depends on it.
            subprocess.run(["subagents", "progress", "checking modules", "50"], check=False)
        lines = _lines(module)
        findings += [
            {"module": str(module), "line": number, "kind": "long line"}
            for number, line in enumerate(lines, start=1)
            if len(line) > COLUMNS_MAX
        ]
        findings += [
            {"module": str(module), "line": number, "kind": "no docstring"}
            for number in _undocumented("\n".join(lines))
        ]
    _write_json("lint.json", {"modules": len(modules), "findings": findings})
    return f"{len(modules)} modules checked, {len(findings)} findings."


def summary() -> str:
    """What the other three found → summary.md, and a list of all files → index.json."""
    results = sys.stdin.read().strip()
    counts = json.loads(Path("counts.json").read_text(encoding="utf-8"))
    checked = json.loads(Path("lint.json").read_text(encoding="utf-8"))
    largest = Path("report.txt").read_text(encoding="utf-8").splitlines()[:LARGEST_SHOWN]
    kinds = Counter(finding["kind"] for finding in checked["findings"])
    lines = [
        "# The source of subagents",
        "",
        f"{len(counts)} modules, {sum(each['lines'] for each in counts):,} lines.",
        "",
        "First in the report:",
        "",
        *(f"    {line.strip()}" for line in largest),
        "",
        f"Checks: {checked['modules']} modules; "
        + (", ".join(f"{kind}: {number}" for kind, number in sorted(kinds.items())) or "clean"),
        "",
        "What the workers said:",
        "",
        *(f"    {line}" if line else "" for line in results.splitlines()),
        "",
    ]
    Path("summary.md").write_text("\n".join(lines), encoding="utf-8")
    names = ("counts.json", "lint.json", "report.txt", "summary.md")
    _write_json("index.json", [_indexed(Path(name)) for name in names])
    return f"summary.md and index.json written from {len(names) - 1} files."


def _lines(module: Path) -> list[str]:
    return module.read_text(encoding="utf-8").splitlines()


def _undocumented(source: str) -> Iterator[int]:
    tree = ast.parse(source)
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if not node.name.startswith("_") and not ast.get_docstring(node):
            yield node.lineno


def _indexed(file: Path) -> dict[str, object]:
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return {"path": file.name, "bytes": len(content), "sha256": digest}


def _write_json(name: str, content: object) -> None:
    Path(name).write_text(json.dumps(content, indent=1), encoding="utf-8")


WORKERS: Final = {"count": count, "lint": lint, "summary": summary}


def main() -> int:
    """Do one job; the demo reads in starts.log who was ever started."""
    name = sys.argv[1]
    with Path("starts.log").open("a", encoding="utf-8") as log:
        log.write(f"{name} {os.environ.get('SUBAGENTS_ATTEMPT_NUMBER', '1')} {os.getpid()}\n")
    sys.stdout.write(f"{WORKERS[name]()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
