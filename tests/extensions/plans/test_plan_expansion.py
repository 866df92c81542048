"""A plan's variables and matrices become runs that somebody might have written out."""

import pytest

from subagents.errors import UsageError
from subagents.extensions.plans.plan_expansion import Expansion

Runs = list[dict[str, object]]


def expanded(
    runs: Runs, declared: object = None, given: dict[str, str] | None = None
) -> list[dict[str, object]]:
    expansion = Expansion("p.toml", declared, given or {})
    steps = expansion.steps(runs)
    expansion.check_given()
    return [each.content for each in steps if isinstance(each.content, dict)]


@pytest.mark.requirement("plan:matrix")
def test_a_matrix_makes_a_run_of_each_combination_but_the_excluded_ones() -> None:
    matrix = {
        "python": ["3.11", "3.12"],
        "suite": ["unit", "e2e"],
        "exclude": [{"python": "3.11", "suite": "e2e"}],
    }
    found = expanded(
        [{"label": "test", "task": "py${{ matrix.python }} ${{matrix.suite}}", "matrix": matrix}]
    )
    assert found == [
        {"label": "test (3.11, unit)", "task": "py3.11 unit"},
        {"label": "test (3.12, unit)", "task": "py3.12 unit"},
        {"label": "test (3.12, e2e)", "task": "py3.12 e2e"},
    ]


@pytest.mark.requirement("plan:matrix")
def test_a_list_of_tables_is_the_combinations_themselves() -> None:
    matrix = [{"os": "linux", "n": 1}, {"os": "mac", "n": True}]
    found = expanded([{"task": "${{ matrix.os }}${{ matrix.n }}", "matrix": matrix}])
    assert found == [{"task": "linux1"}, {"task": "mactrue"}]


@pytest.mark.requirement("plan:matrix")
def test_a_label_that_names_its_combination_is_used_as_it_is() -> None:
    matrix = {"a": ["1", "2"]}
    (one, two) = expanded([{"label": "t${{ matrix.a }}", "task": "t", "matrix": matrix}])
    assert (one["label"], two["label"]) == ("t1", "t2")


@pytest.mark.requirement("plan:matrix")
def test_a_label_that_names_a_part_of_it_gets_the_rest() -> None:
    matrix = {"a": ["1", "2"], "b": ["x", "y"]}
    found = expanded([{"label": "t${{ matrix.a }}", "task": "t", "matrix": matrix}])
    assert [each["label"] for each in found] == ["t1 (1, x)", "t1 (1, y)", "t2 (2, x)", "t2 (2, y)"]


@pytest.mark.requirement("plan:matrix")
def test_a_dependency_on_the_label_of_a_matrix_is_one_on_each_of_its_runs() -> None:
    found = expanded(
        [
            {"label": "report", "task": "t", "depends_on": ["test", "other", "test"]},
            {"label": "test", "task": "t", "matrix": {"a": ["1", "2"]}},
            {"task": "t", "dependsOn": "test"},
        ]
    )
    assert found[0]["depends_on"] == ["test (1)", "test (2)", "other"]
    assert found[3]["dependsOn"] == ["test (1)", "test (2)"]


@pytest.mark.requirement("plan:matrix")
@pytest.mark.parametrize("wrong", [[["test"]], {"a": 1}, 3, None])
def test_a_dependency_that_is_no_text_is_left_to_its_check(wrong: object) -> None:
    run: dict[str, object] = {"label": "test", "task": "t", "depends_on": wrong, "chain_after": 1}
    assert expanded([run, {"label": "test", "task": "u", "chain_after": "test"}])[0] == run


@pytest.mark.requirement("plan:matrix")
def test_runs_of_two_matrices_wait_for_the_one_of_the_same_value() -> None:
    matrix = {"a": ["1", "2"]}
    found = expanded(
        [
            {"label": "build-${{ matrix.a }}", "task": "t", "matrix": matrix},
            {"task": "t", "matrix": matrix, "depends_on": ["build-${{ matrix.a }}"]},
        ]
    )
    assert [each.get("depends_on") for each in found[2:]] == [["build-1"], ["build-2"]]


@pytest.mark.requirement("plan:variables")
def test_a_given_variable_is_stronger_than_the_plans_own() -> None:
    runs: Runs = [{"task": "${{ vars.a }} ${{vars.b}}", "env": {"X": "${{ vars.c }}"}}]
    assert expanded(runs, {"a": "1", "b": 2}, {"b": "3", "c": ""}) == [
        {"task": "1 3", "env": {"X": ""}}
    ]


@pytest.mark.requirement("plan:variables")
def test_where_a_number_belongs_a_variable_is_read_as_one() -> None:
    judge = {"criteria": "${{ vars.n }}", "budget": {"maxTokens": "${{ vars.n }}"}}
    run: dict[str, object] = {
        "task": "${{ vars.n }}",
        "retry_count": "${{ vars.n }}",
        "thread": "${{ vars.yes }}",
        "retryDelay": "${{ vars.yes }}-",
        "verification": {"judge": judge, "artifacts": [{"min_bytes": "${{ vars.n }}0"}]},
    }
    assert expanded([run], {"n": "3", "yes": True}) == [
        {
            "task": "3",
            "retry_count": 3,
            "thread": True,
            "retryDelay": "true-",
            "verification": {
                "judge": {"criteria": "3", "budget": {"maxTokens": 3}},
                "artifacts": [{"min_bytes": 30}],
            },
        }
    ]


@pytest.mark.requirement("plan:variables")
def test_a_doubled_dollar_is_a_plain_one_and_values_are_not_read_again() -> None:
    found = expanded([{"task": "$${{ vars.a }} ${{ vars.a }} ${HOME}"}], {"a": "${{ vars.b }}"})
    assert found == [{"task": "${{ vars.a }} ${{ vars.b }} ${HOME}"}]


A: dict[str, object] = {"a": ["1"]}
REFUSED: list[tuple[dict[str, object], str]] = [
    ({"task": "${{ matrx.a }}"}, "did you mean matrix.a?"),
    ({"task": "${{ secrets.A }}"}, "is neither matrix.NAME nor vars.NAME"),
    ({"task": "${{ vars.a"}, "runs[0]: task: a ${{ is not closed by }}"),
    ({"task": "${{ vars.nme }}"}, "has no value; did you mean 'name'?"),
    ({"task": "${{ matrix.a }}"}, "this run has no matrix"),
    ({"task": "x", "max_cost_usd": "${{ vars.a"}, "runs[0]: max_cost_usd: a ${{"),
    ({"task": "x", "after": ["b", "${{ vars.a"]}, "runs[0]: after[1]: a ${{"),
    (
        {"task": "${{ matrix.b }}", "matrix": A},
        "runs[0] (1): task: ${{ matrix.b }}: its matrix has a",
    ),
    ({"matrix": 1}, "runs[0].matrix must be a table of lists"),
    ({"matrix": {}}, "makes no run"),
    ({"matrix": []}, "makes no run"),
    ({"matrix": [{}]}, "makes no run"),
    ({"matrix": {"a": []}}, "matrix.a must be a list of at least one value"),
    ({"matrix": {"a": [3.1]}}, 'matrix.a[0]: put 3.1 in quotes, as it shall be written: "3.1"'),
    ({"matrix": {"a": [[]]}}, "matrix.a[0] must be a text, a whole number, true or false"),
    ({"matrix": {"a b": ["1"]}}, "'a b' is no name"),
    ({"matrix": {"a": ["1", 1]}}, "has the same combination twice"),
    ({"matrix": [{"a": 1}, {"b": 1}]}, "each table must have the same names"),
    ({"matrix": [1]}, "matrix[0] must be a table"),
    ({"matrix": {**A, "exclude": 1}}, "matrix.exclude must be a list of tables"),
    ({"matrix": {**A, "exclude": [{}]}}, "exclude[0] is empty"),
    ({"matrix": {**A, "exclude": [{"b": 1}]}}, "exclude[0]: the matrix has no 'b'"),
    ({"matrix": {**A, "exclude": [{"a": 2}]}}, "exclude[0].a: '2' is none of its values"),
    ({"matrix": {**A, "exclude": [{"a": 1}]}}, "makes no run"),
    ({"matrix": {f"a{x}": [1, 2] for x in range(6_000)}}, "has 6000 names; at most 64 may be"),
    ({"matrix": {f"a{x}": [1] for x in range(65)}}, "has 65 names; at most 64 may be"),
    (
        {"matrix": {f"a{x}": [*range(10)] for x in range(64)}},
        "makes over 1,000,000,000,000,000,000",
    ),
    ({"matrix": {**A, "exclude": [{"a": 1}] * 1_001}}, "exclude has 1001 tables; at most 1000"),
    ({"matrix": {x: [*range(100)] for x in "abcdefgh"}}, "makes 10000000000000000 runs; a plan"),
]


@pytest.mark.requirement("plan:matrix", "plan:variables")
@pytest.mark.parametrize(("run", "message"), REFUSED)
def test_what_is_wrong_is_named(run: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        expanded([run], {"name": "x"})
    assert message in refused.value.message
    assert refused.value.message.startswith("p.toml: runs[0]")


@pytest.mark.requirement("plan:matrix")
def test_all_matrices_together_make_no_more_runs_than_a_plan_may_have() -> None:
    with pytest.raises(UsageError, match="at most 1000 entries, with those that a matrix makes"):
        expanded([{"task": "t", "matrix": {"a": [*range(501)]}}] * 2)


@pytest.mark.requirement("plan:matrix")
def test_one_run_cannot_chain_after_many() -> None:
    runs: Runs = [
        {"label": "test", "task": "t", "matrix": {"a": ["1", "2"]}},
        {"task": "t", "chain_after": "test"},
    ]
    with pytest.raises(UsageError, match=r"runs\[1\].chain_after takes one run; 'test' is 2"):
        expanded(runs)


@pytest.mark.requirement("plan:variables")
def test_a_variable_that_the_plan_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="no variable 'brnch'; did you mean 'branch'"):
        expanded([{"task": "t"}], {"branch": "x"}, {"brnch": "y"})


@pytest.mark.requirement("plan:variables")
def test_a_few_lines_cannot_make_more_than_a_machine_holds() -> None:
    with pytest.raises(UsageError, match="larger than 16 MiB"):
        expanded([{"task": "${{ vars.a }}" * 1000}], {"a": "x" * 100_000})


@pytest.mark.requirement("plan:variables")
def test_variables_that_are_no_table_are_refused() -> None:
    with pytest.raises(UsageError, match="vars must be a table"):
        expanded([{"task": "t"}], ["a"])


@pytest.mark.requirement("plan:matrix")
def test_a_dependency_that_is_named_thousands_of_times_is_one_on_each_run_of_the_matrix() -> None:
    runs = [
        {"task": "x", "label": "m", "matrix": {"a": [*range(900)]}},
        {"task": "y", "depends_on": ["m"] * 50_000},
    ]

    *_, last = Expansion("p.toml", None, {}).steps(runs)

    assert isinstance(last.content, dict)
    assert len(last.content["depends_on"]) == 900


@pytest.mark.requirement("for-each:plan")
def test_items_are_left_to_the_daemon_and_their_run_is_named_with_its_combination() -> None:
    found = expanded(
        [
            {"label": "find", "task": "t", "matrix": [{"a": "1"}]},
            {"task": "${{ vars.x }} ${{ item.f }} $${{", "for_each": "find"},
            {"task": "${{ item }}", "forEach": {"run": "find", "max_items": 3}},
        ],
        {"x": "${{ y }}"},
    )
    assert found[1] == {"task": "$${{ y }} ${{ item.f }} $${{", "for_each": "find (1)"}
    assert found[2]["forEach"] == {"run": "find (1)", "max_items": 3}


@pytest.mark.requirement("for-each:plan")
@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"task": "${{ item }}"}, "${{ item }} belongs in task or verification, with for_each"),
        ({"task": "t", "label": "${{ item.a }}", "for_each": "b"}, "label: ${{ item.a }} belongs"),
        ({"task": "${{ item }}", "for_each": "two"}, "for_each takes one run; 'two' is 2"),
    ],
)
def test_items_elsewhere_or_of_many_runs_are_refused(run: dict[str, object], message: str) -> None:
    two: dict[str, object] = {"label": "two", "task": "t", "matrix": {"a": ["1", "2"]}}
    with pytest.raises(UsageError) as found:
        expanded([two, run])
    assert message in str(found.value)
