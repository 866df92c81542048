"""Which commands a line has, and how it joins them."""

import pytest

from subagents.domain.alerts.detectors.shell import Step, here_document, steps_of


@pytest.mark.requirement("detectors:commands")
@pytest.mark.parametrize(
    ("line", "steps"),
    [
        ("a 'b c' \"d $(e \"f\")\" g\\ h", [Step(("a", "b c", 'd $(e "f")', "g h"))]),
        ("A=1 B='2 3' a x=1 # b", [Step(("a", "x=1"))]),
        ("a 2>&1 b", [Step(("a", "b"))]),
        ("a > 'b c' < d", [Step(("a",), is_hidden=True)]),
        ("a &> b; c", [Step(("a",), is_hidden=True), Step(("c",), ";")]),
        ("a <<EOF | b\n; c\nEOF\nd", [
            Step(("a",), is_piped=True), Step(("b",), "|"), Step(("d",), ";")
        ]),
        ("a &&\n# b\n\nc", [Step(("a",)), Step(("c",), "&&")]),
        ("! a || 'if' b", [Step(("a",), is_negated=True), Step(("if", "b"), "||")]),
        ("(a; b) | c", [
            Step(("a",), is_piped=True), Step(("b",), ";", is_piped=True), Step(("c",), "|")
        ]),
        ("if a; then b; fi & c", [
            Step(("a",), is_beside=True, is_maybe=True),
            Step(("b",), ";", is_beside=True, is_maybe=True),
            Step(("c",), "&"),
        ]),
        ("a 'b", [Step(("a", "b"))]),
        ('a "b $(c', [Step(("a", "b $(c"))]),
        ("a >(b) <(c d) e", [Step(("a", ">(b)", "<(c d)", "e"))]),
        ("", []),
        ("# nothing", []),
    ],
)  # fmt: skip
def test_a_line_is_read_as_a_shell_reads_it(line: str, steps: list[Step]) -> None:
    assert list(steps_of(line)) == steps


@pytest.mark.requirement("detectors:commands")
def test_the_text_of_a_here_document_in_a_word_is_found() -> None:
    (step,) = steps_of('git commit -m "$(cat <<\'EOF\'\nfeat: "x" (y)\n\nmore\nEOF\n)"')

    assert here_document(step.words[3]) == 'feat: "x" (y)\n\nmore'
    assert here_document("plain") is None
