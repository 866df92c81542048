"""Files in the languages of others: read with bounded work, refused with a line and no value."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest
from tests.call_counts import calls_of

from subagents.config.files import documents
from subagents.config.files.documents import BadDocument

SECRET: Final = "Tm90QVJlYWxLZXk5OTk5"
PARSERS: Final[dict[str, Callable[[str], object]]] = {
    "toml": documents.toml,
    "yaml": lambda text: documents.yaml(text, values_max=3_000),
    "json": documents.json,
    "json5": documents.json5,
}


def _chained(first: str, line: str, levels: int) -> str:
    """Each line made of nine of the one before; the letters N and O stand for their names."""
    lines = [f"a0: &a0 {first}"]
    for each in range(1, levels):
        olds = ",".join([f"*a{each - 1}"] * 9)
        lines.append(line.replace("N", f"a{each}").replace("O", olds))
    return "\n".join(lines)


HOSTILE: Final = {
    "toml: a number of 6,000 digits": ("toml", f"a = 1\nb = {'9' * 6_000}", ":2: a number of over"),
    "toml: a hexadecimal of 6,000 digits": ("toml", f"a = 0x{'f' * 6_000}", "a number of over a"),
    "toml: a key of 20,000 parts": ("toml", f"\n{'a.' * 20_000}a = 1", ":2: more than 32 names"),
    "toml: a table of 20,000 parts": ("toml", f"[{'a.' * 20_000}a]", ":1: more than 32 names"),
    "toml: quoted parts": ("toml", "'x y'." * 20_000 + "a = 1", ":1: more than 32 names"),
    "toml: parts in an inline table": ("toml", f"a = {{{'a . ' * 99}a = 1}}", ":1: more than 32"),
    "toml: many keys of many parts": (
        "toml",
        "".join(f"k{each}.{'a.' * 30}a = 1\n" for each in range(4_000)),
        "more than 100,000 dots between names",
    ),
    "toml: brackets": ("toml", f"a = {'[' * 50_000}", "nested too deeply"),
    "toml: inline tables": ("toml", f"a = {'{a=' * 150}1{'}' * 150}", "nested too deeply"),
    "toml: a date that is none": ("toml", "a = 2001-99-99", ":1:"),
    "toml: nothing closes": ("toml", 'a = """' + "x\n" * 10_000, ":10001: "),
    "yaml: aliases of aliases": (
        "yaml",
        _chained("[x]", "N: &N [O]", 12),
        "more than 3,000 values",
    ),
    "yaml: merges of merges": (
        "yaml",
        _chained("{x: 1}", "N: &N {<<: [O]}", 9),
        "more than 3,000 values",
    ),
    "yaml: an alias of itself": ("yaml", "a: &a [*a]", "an alias stands for itself"),
    "yaml: a merge of itself": ("yaml", "a: &a {<<: *a}", "an alias stands for itself"),
    "yaml: brackets": ("yaml", f"a: {'[' * 50_000}", ":1: nested too deeply"),
    "yaml: braces": ("yaml", f"a: {'{' * 50_000}", ":1: nested too deeply"),
    "yaml: brackets with keys": ("yaml", f"a: {'[a: ' * 5_000}", ":1: nested too deeply"),
    "yaml: brackets on lines": ("yaml", "a:\n" + "  [\n" * 5_000, "maximum depth"),
    "yaml: dashes": ("yaml", "- " * 50_000 + "a", "maximum depth"),
    "yaml: question marks": ("yaml", "? " * 50_000 + "a", "maximum depth"),
    "yaml: 5,000 values": ("yaml", "- a\n" * 5_000, "more than 3,000 values"),
    "yaml: megabytes": ("yaml", "a: " + "x" * 2_000_000, "more than 1,048,576 characters"),
    "yaml: a date that is none": ("yaml", "a: 2001-99-99", "none of YAML"),
    "yaml: a number of 6,000 digits": ("yaml", f"a: {'9' * 6_000}", "none of YAML"),
    "yaml: a hexadecimal of 6,000 digits": ("yaml", f"a: 0x{'f' * 6_000}", "a number of over a"),
    "yaml: a key that is none": ("yaml", "? [[a]]\n: b", "none of YAML"),
    "yaml: an object of a program": (
        "yaml",
        "a: !!python/object/apply:os.system [id]",
        "could not determine a constructor",
    ),
    "yaml: two documents": ("yaml", "---\na: 1\n---\nb: 2", "found another document"),
    "json: brackets": ("json", "[" * 100_000, ""),
    "json: 200 deep": ("json", "[" * 200 + "]" * 200, "nested too deeply"),
    "json5: brackets": ("json5", "[" * 50_000, ""),
    "json5: a number of 6,000 digits": ("json5", f"{{a: {'9' * 6_000}}}", ""),
    "json5: megabytes": ("json5", f"{{a: '{'x' * 2_000_000}'}}", "more than 65,536 characters"),
    "json5: comments that do not end": ("json5", "/*" * 20_000, ""),
}


@pytest.mark.requirement("files:bounded-work")
@pytest.mark.parametrize(("language", "text", "why"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_would_take_minutes_or_gigabytes_is_refused_in_words(
    language: str, text: str, why: str
) -> None:
    with pytest.raises(BadDocument) as refused:
        PARSERS[language](text)

    assert why in refused.value.at("")
    assert len(refused.value.at("")) < 200


LONG: Final[tuple[tuple[str, Callable[[int], str]], ...]] = (
    ("toml", lambda size: "".join(f"k{each} = [{each}]\n" for each in range(size))),
    ("toml", lambda size: f"a = [{'1,' * size}]"),
    ("toml", lambda size: f"a = '''{'Look at it. ' * size}'''"),
    ("toml", lambda size: "".join(f"k{each}.a.b = 1\n" for each in range(size))),
    ("toml", lambda size: "".join(f"[[a]]\nb.c = {each}\n" for each in range(size))),
    ("yaml", lambda size: "".join(f"k{each}: {each}\n" for each in range(size))),
    ("yaml", lambda size: "- &a x\n" * size),
    ("yaml", lambda size: "a: " + "x\n  " * size),
    ("yaml", lambda size: "a: {" + ",".join(f"k{each}" for each in range(size)) + "}"),
    ("json", lambda size: f'{{"a": [{"[]," * size}[]]}}'),
    ("json5", lambda size: "{" + ",".join(f"k{each}: 1" for each in range(size)) + "}"),
)


@pytest.mark.requirement("files:bounded-work")
@pytest.mark.parametrize(("language", "text"), LONG)
def test_twice_as_much_of_what_is_right_is_at_most_twice_the_work(
    language: str, text: Callable[[int], str]
) -> None:
    parse = PARSERS[language]
    few, many = (calls_of(partial(parse, text(size))) for size in (100, 200))

    assert many < 2.2 * few + 1_000


LEAKS: Final = {
    "toml": (
        "a = {0}", "a = '{0}", 'a = "{0}\\q"', "a = '{0}' '{0}'", "a = 1{0}", "a = [1, {0}]",
        'a = "{0}\n', "a = '{0}'\na = '{0}'", 'a = "\\u{0}"', "a = {{b = '{0}', b = '{0}'}}",
        "[a]\n[a]\nb = '{0}'", "a = '{0}'\n[a.b]", "a = 2001-99-99 # {0}", "a = 0x{0}",
    ),
    "yaml": (
        "a: '{0}", 'a: "{0}', "a: {0}: {0}", "a: {0}\na: {0}", "a: [{0}", "a: {{{0}: {0}",
        "a: &{0} x\nb: *{0}1", "a: *{0}", "a: !{0} x", "a: !!{0} x", "a: |{0}", "a: %{0}\n%{0}",
        "\ta: {0}", "a: @{0}", "a: `{0}", 'a: "\\{0}"', 'a: "\\u{0}"', "a: !!timestamp {0}",
        "a: !!binary {0}é", "a: !!int {0}", "a: !!float {0}", "a: !!bool {0}", "- a\nb: {0}",
        "a: 2001-99-99 # {0}", "%YAML {0}\n---\na", "%TAG {0} {0}\n---\na", "a: x\n b: {0}",
        "<<: {0}", "<<: [{0}]", "? {0}\n? {0}", "--- {0}\n--- {0}", "a: >{0}\n x", "a: !<{0}> x",
    ),
    "json": (
        '{{"a": {0}}}', '{{"a": "{0}', '{{"a": "{0}" "{0}"}}', '["{0}",', "{0}", '{{"{0}"}}',
        '{{"a": "\\q{0}"}}', '{{"a": "\\u{0}"}}', '"{0}"x', '{{"a": 1{0}}}',
    ),
    "json5": (
        "{{a: {0}}}", "{{a: '{0}", "{{a: '{0}' '{0}'}}", "['{0}',", "{0}", "{{'{0}'}}",
        "{{a: '\\u{0}'}}", "'{0}'x", "{{a: 1{0}}}", "/* {0}", '{{a: "{0}\n"}}',
    ),
}  # fmt: skip


@pytest.mark.requirement("files:no-value-in-a-message")
@pytest.mark.parametrize(
    ("language", "form"),
    [(language, form) for language, forms in LEAKS.items() for form in forms],
)
def test_no_message_of_a_parser_has_a_value_in_it(language: str, form: str) -> None:
    with pytest.raises(BadDocument) as refused:
        PARSERS[language](form.format(SECRET))

    error: BaseException | None = refused.value
    assert SECRET not in refused.value.at("file")
    assert error is not None
    assert "\n" not in refused.value.at("file")


@pytest.mark.requirement("files:byte-order-mark")
@pytest.mark.parametrize(
    ("language", "text"),
    [("toml", "a = 1"), ("yaml", "a: 1"), ("json", '{"a": 1}'), ("json5", "{a: 1}")],
)
def test_a_byte_order_mark_before_a_document_is_no_part_of_it(language: str, text: str) -> None:
    found: Any = PARSERS[language](f"\ufeff{text}")

    assert found == {"a": 1}
