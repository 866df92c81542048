"""The page about notebooks, its cells run by a real IPython kernel."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.cli.cli_home import temporary_home
from tests.page_blocks import ROOT, blocks

PAGE: Final = ROOT / "docs" / "howto" / "notebooks.md"
NOTEBOOK: Final = """\
import json, sys
import nbformat
from nbclient import NotebookClient

cells = [nbformat.v4.new_code_cell(each) for each in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
results = [[o["data"]["text/plain"] for o in c.outputs if "data" in o] for c in cells]
print(json.dumps(results))
"""
"""In a process of its own: Jupyter's packages warn, and start a kernel."""


@pytest.mark.requirement("docs:blocks", "python:notebooks")
def test_every_cell_of_the_page_runs_in_a_kernel(tmp_path: Path) -> None:
    cells = [block.body for block in blocks(PAGE)]
    with temporary_home(tmp_path) as home:
        done = subprocess.run(
            [sys.executable, "-c", NOTEBOOK],
            input=msgspec.json.encode(cells).decode(),
            capture_output=True,
            text=True,
            cwd=home.work,
            env=home.env(),
            check=False,
        )

    assert done.returncode == 0, done.stderr
    opened, waited, listed, closed = msgspec.json.decode(done.stdout)
    assert (opened, waited, closed) == ([], ["['a', 'b']"], [])
    assert listed[0].count("'ok'") == 2
