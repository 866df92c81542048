"""An advisory that nobody judged fails the audit; that none could be asked for is said."""

import pytest
from scripts.audit import JUDGED, Advisory, Audit, Package, judged_in, verdict

FOUND = Audit(
    (
        Package("good", "1.0"),
        Package("bad", "2.0", vulns=(Advisory("PYSEC-1", ("GHSA-1",), ("2.1",)),)),
        Package("ours", skip_reason="not on PyPI"),
    )
)


@pytest.mark.requirement("ci:audit")
def test_an_advisory_fails_until_its_id_or_an_alias_is_judged_with_a_reason() -> None:
    lines, is_well = verdict(FOUND, {})
    assert not is_well
    assert lines[0] == "bad 2.0: PYSEC-1, GHSA-1, mended in 2.1"
    assert lines[-1] == "2 packages looked up; nothing is known of 1 others"

    lines, is_well = verdict(FOUND, {"GHSA-1": "we never parse XML with it", "GHSA-9": "gone"})
    assert is_well
    assert lines[:2] == (
        "bad 2.0: GHSA-1, judged: we never parse XML with it",
        "judged_advisories.toml: GHSA-9 is found no more",
    )


@pytest.mark.requirement("ci:audit")
def test_no_data_is_no_clean_bill() -> None:
    nothing = Audit((Package("a", skip_reason="not found"), Package("b", skip_reason="not found")))

    for found in (nothing, Audit()):
        lines, is_well = verdict(found, {})
        assert is_well
        assert lines == ("no advisory data reachable: nothing was audited",)


@pytest.mark.requirement("ci:audit")
def test_what_is_judged_has_a_reason() -> None:
    judged_in(JUDGED.read_text("utf-8"))
    with pytest.raises(ValueError, match="GHSA-1 needs a reason"):
        judged_in('"GHSA-1" = " "')
