"""What a repair asks: each used, and understood by the schema."""

from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import filled
from tests.store.sqlite.test_statements import require_understood

from subagents.extensions.repair import salvage


@pytest.mark.requirement("store:named-statements")
def test_every_statement_of_a_repair_is_used_and_understood(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=1)
    text = Path(salvage.__file__).read_text("utf-8")

    assert [name for name in salvage.own_statements() if f'"{name}"' not in text] == []
    require_understood(path, salvage.own_statements())
