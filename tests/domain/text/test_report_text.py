"""The completion report as text: found in whatever a model writes, and never at any price."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subagents.domain.run.run import Confidence, Report, ReportedArtifact, ReportStatus
from subagents.domain.text.report_text import FORM, REPORT_CHARS_MAX, Unreadable, find_report

WHOLE = """\
I am done.

[COMPLETION REPORT]
status: partial
confidence: low
summary: Counted the files.
  Two directories could not be read.
artifacts:
- out/results.json: the table
- out/log.txt
blockers:
- no right to read /root
  and /etc/shadow
warnings:
- none
[/COMPLETION REPORT]
"""
PARSED = Report(
    summary="Counted the files.\nTwo directories could not be read.",
    status=ReportStatus.PARTIAL,
    confidence=Confidence.LOW,
    artifacts=(
        ReportedArtifact(path="out/results.json", description="the table"),
        ReportedArtifact(path="out/log.txt"),
    ),
    blockers=("no right to read /root\nand /etc/shadow",),
)


def block(summary: str, *, end: str = "[/COMPLETION REPORT]") -> str:
    return f"[COMPLETION REPORT]\nsummary: {summary}\n{end}\n"


def summary_of(text: str) -> str:
    found = find_report(text)
    assert isinstance(found, Report), found
    return found.summary


@pytest.mark.requirement("report-text:parsed", "report:text-fallback")
@pytest.mark.parametrize("text", [WHOLE, WHOLE.upper(), WHOLE.replace("\n", "\r\n")])
def test_a_whole_block_is_a_report_in_any_case_and_with_any_line_end(text: str) -> None:
    found = find_report(text)

    assert isinstance(found, Report)
    assert str(found).casefold() == str(PARSED).casefold()


@pytest.mark.requirement("report-text:parsed")
def test_emphasis_missing_keys_and_inline_values_are_understood() -> None:
    text = (
        "**[Completion Report]**\n**Status:** `Complete`\n**Summary**: All well.\n"
        "Artifacts: `a.md`: notes\nBlockers: None.\nWarnings:\n* slow\n* n/a\n"
    )

    assert find_report(text) == Report(
        summary="All well.",
        artifacts=(ReportedArtifact(path="a.md", description="notes"),),
        warnings=("slow",),
    )


@pytest.mark.requirement("report-text:last-complete-block")
def test_the_last_complete_block_counts() -> None:
    assert summary_of(block("draft") + "text\n" + block("final") + "bye") == "final"
    assert summary_of(block("final") + block("cut off", end="")) == "final"
    assert summary_of(block("forgotten end", end="") + block("final")) == "final"


@pytest.mark.requirement("report-text:missing-end")
def test_without_an_end_mark_the_rest_of_the_text_is_the_block() -> None:
    text = "[COMPLETION REPORT]\nsummary: one\ntwo\nwarnings:\n- slow\n\nThat is all."

    found = find_report(text)

    assert found == Report(summary="one\ntwo", warnings=("slow",))


@pytest.mark.requirement("report-text:code-is-skipped")
def test_a_block_in_fenced_code_is_none() -> None:
    for fence in ("```", "~~~~", "   ```"):
        assert find_report(f"{fence}text\n{block('shown')}{fence}\n") is None
        assert summary_of(f"{block('meant')}{fence}\n{block('shown')}{fence}\n") == "meant"
    inner = f"````\n```\n{block('shown')}```\n````\n{block('meant')}"
    assert summary_of(inner) == "meant"
    assert find_report("    " + block("indented").replace("\n", "\n    ")) is None


@pytest.mark.requirement("report-text:code-is-skipped")
def test_a_fence_whose_other_end_was_cut_off_hides_nothing() -> None:
    assert summary_of(f"the end of some code\n```\n\n{block('meant')}") == "meant"
    assert summary_of(f"```python\n{block('meant')}") == "meant"


@pytest.mark.requirement("report-text:unknown-keys")
def test_unknown_keys_are_ignored_and_prose_in_the_summary_is_not() -> None:
    text = (
        "[COMPLETION REPORT]\nmood: fine\n  very\nsummary: Done.\nNote: one file is empty.\n"
        "author: me\nstatus: complete\nduration: 5m\n[/COMPLETION REPORT]"
    )

    assert find_report(text) == Report(summary="Done.\nNote: one file is empty.")


@pytest.mark.requirement("report-text:wrong-value", "report:every-form")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("status: done", 'has status "done" (allowed: complete, partial, failed)'),
        ("confidence: 90%", 'has confidence "90%" (allowed: high, medium, low)'),
        (f"status: {'x' * 99}", f'has status "{"x" * 59}…" (allowed'),
    ],
)
def test_a_wrong_value_is_no_report_and_the_reason_is_kept(line: str, reason: str) -> None:
    found = find_report(f"[COMPLETION REPORT]\n{line}\nsummary: s\n[/COMPLETION REPORT]")

    assert isinstance(found, Unreadable)
    assert reason in found.reason


@pytest.mark.requirement("report-text:wrong-value", "report:every-form")
def test_a_block_without_a_summary_or_with_too_much_text_is_no_report() -> None:
    assert find_report(FORM) == Unreadable(
        reason='the completion report in the text has status "complete | partial | failed"'
        " (allowed: complete, partial, failed)"
    )
    empty = find_report("[COMPLETION REPORT]\nstatus: complete\n[/COMPLETION REPORT]")
    assert empty == Unreadable(reason="the completion report in the text has no summary")
    long = find_report(block("x" * (REPORT_CHARS_MAX + 1)))
    assert isinstance(long, Unreadable)
    assert "at most 65536 are allowed" in long.reason


@pytest.mark.requirement("report-text:parsed")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "done",
        "I end with a [COMPLETION REPORT].",
        "see [COMPLETION REPORT] below",
        "[/COMPLETION REPORT]",
    ],
)
def test_a_text_without_a_block_is_no_report(text: str) -> None:
    assert find_report(text) is None


# -- whatever a worker writes ---------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *("[COMPLETION REPORT]", "[/completion report]", "**[COMPLETION REPORT]**", "\n", "\n\n"),
        *("status: complete", "status: x", "summary: s", "confidence:", "artifacts:", "- a: b"),
        *("```", "~~~~", "````py", "    ", "- none", "warnings: none", "\r", "\0", "🎉", ": ", "-"),
    ]
)


@pytest.mark.requirement("report-text:never-raises")
@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=40).map("\n".join))
def test_no_text_breaks_the_parser(text: str) -> None:
    find_report(text)
    find_report(text.replace("\n", ""))


LINE = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="`"),
    min_size=1,
    max_size=40,
).filter(lambda text: text == text.strip() and text.rstrip(".").lower() not in {"", "none", "n/a"})
LINES = st.lists(LINE, min_size=1, max_size=3).map("\n".join)
PATHS = st.text(
    st.characters(categories=("Ll", "Nd"), include_characters="/._-"), min_size=1, max_size=20
).filter(lambda path: path.rstrip(".") not in {"", "none", "n/a"} and path.strip("-*") == path)
REPORTS = st.builds(
    Report,
    summary=LINES,
    status=st.sampled_from(ReportStatus),
    confidence=st.one_of(st.none(), st.sampled_from(Confidence)),
    artifacts=st.lists(
        st.builds(ReportedArtifact, path=PATHS, description=st.one_of(st.none(), LINE)), max_size=3
    ).map(tuple),
    blockers=st.lists(LINES, max_size=3).map(tuple),
    warnings=st.lists(LINES, max_size=3).map(tuple),
)


def written(report: Report) -> str:
    """The block as a careful worker writes it: further lines of a value are indented."""

    def more(text: str) -> str:
        return text.replace("\n", "\n    ")

    def items(name: str, texts: list[str]) -> list[str]:
        return [f"{name}:", *(f"- {more(text)}" for text in texts or ["none"])]

    files = [f"{a.path}: {a.description}" if a.description else a.path for a in report.artifacts]
    confidence = [f"confidence: {report.confidence}"] if report.confidence else []
    return "\n".join(
        [
            "[COMPLETION REPORT]",
            f"status: {report.status}",
            *confidence,
            f"summary: {more(report.summary)}",
            *items("artifacts", files),
            *items("blockers", list(report.blockers)),
            *items("warnings", list(report.warnings)),
            "[/COMPLETION REPORT]",
        ]
    )


@pytest.mark.requirement("report-text:round-trip")
@given(REPORTS)
@example(Report(summary="x\n[/COMPLETION REPORT]\nstatus: failed\n```"))
def test_a_report_written_down_is_read_back(report: Report) -> None:
    assert find_report(f"Done.\n\n{written(report)}\nBye.") == report


SIZE = 256 * 1024
HOSTILE = {
    "brackets": "[" * SIZE,
    "begins": "[COMPLETION REPORT]\n" * (SIZE // 20),
    "ends": "[COMPLETION REPORT]\n" + "[/COMPLETION REPORT]\n" * (SIZE // 21),
    "fences": "[completion report]\n" + "```\n" * (SIZE // 4),
    "fences that never close": "[completion report]\n" + "```a\n" * (SIZE // 5),
    "shorter and shorter": "[completion report]\n" + "\n".join("`" * n for n in range(720, 2, -1)),
    "two kinds": "[completion report]\n" + "~~~\n```\n" * (SIZE // 8),
    "one long line": "[completion report]" + " " * SIZE + "x",
    "stars": "[completion report]\n" + "*" * SIZE,
    "keys": "[completion report]\nsummary: x\n" + "a:\n" * (SIZE // 3),
    "items": "[completion report]\nsummary: x\nwarnings:\n" + "- \n" * (SIZE // 3),
}


@pytest.mark.requirement("report-text:bounded")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_costs_no_more_than_its_length(name: str) -> None:
    began = time.process_time()
    find_report(HOSTILE[name])

    # 80 ms here; anything worse than linear takes minutes.
    assert time.process_time() - began < 30
