"""What a contract may ask for is settled before any work is paid for."""

from dataclasses import dataclass

import pytest

from subagents.domain.rules.contract import (
    COMMAND_BYTES_MAX,
    SCHEMA_BYTES_MAX,
    old_files,
    validate,
)
from subagents.domain.run.baseline import Baseline, Fingerprint
from subagents.domain.run.spec import (
    ARTIFACTS_MAX,
    PATH_BYTES_MAX,
    VERIFICATION_TIMEOUT_MS_MAX,
    Artifact,
    Contract,
)
from subagents.errors import ContractError


def one(**fields: object) -> Contract:
    return Contract(artifacts=(Artifact(**{"path": "out.json", **fields}),))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Refused:
    contract: Contract
    message: str


REFUSED = [
    Refused(Contract(), "verification has nothing to check"),
    Refused(one(min_tests=1), "verification.artifacts[0].minTests needs junit: true"),
    Refused(one(junit=True, json=True), "verification.artifacts[0] cannot be both junit and json"),
    Refused(one(regex=""), "verification.artifacts[0].regex must not be empty"),
    Refused(
        one(path="../*.csv", min_files=1),
        "verification.artifacts[0].path must be a path or pattern below the working directory,"
        " relative to it",
    ),
    Refused(
        one(min_files=2, max_files=1),
        "verification.artifacts[0].maxFiles must not be less than minFiles",
    ),
    Refused(
        Contract(must_not_change=("/etc",)),
        "verification.mustNotChange[0] must be a path or pattern below the working directory,"
        " relative to it",
    ),
    Refused(one(path=""), "verification.artifacts[0].path must not be empty"),
    Refused(one(path="  "), "verification.artifacts[0].path must not be empty"),
    Refused(one(path="a\0b"), "verification.artifacts[0].path must not contain a NUL byte"),
    Refused(one(path="\ud800"), "verification.artifacts[0].path must be valid UTF-8"),
    Refused(
        one(path="é" * PATH_BYTES_MAX),
        "verification.artifacts[0].path must be at most 4096 bytes, not 8192",
    ),
    Refused(one(min_items=1), "verification.artifacts[0].minItems needs json: true"),
    Refused(one(required_keys=("a",)), "verification.artifacts[0].requiredKeys needs json: true"),
    Refused(
        one(json=True, min_items=-1), "verification.artifacts[0].minItems must be 0 or more, not -1"
    ),
    Refused(one(min_bytes=-5), "verification.artifacts[0].minBytes must be 0 or more, not -5"),
    Refused(one(sha256="abc"), "verification.artifacts[0].sha256 must be 64 hexadecimal digits"),
    Refused(
        one(sha256="a" * 64 + "\n"),
        "verification.artifacts[0].sha256 must be 64 hexadecimal digits",
    ),
    Refused(
        one(schema={"title": "x" * SCHEMA_BYTES_MAX}),
        "verification.artifacts[0].schema must be at most 262144 bytes, not 262156",
    ),
    Refused(
        one(json=True, required_keys=("k",) * 1001),
        "verification.artifacts[0].requiredKeys must have at most 1000 entries, not 1001",
    ),
    Refused(
        Contract(artifacts=(Artifact(path="a"), Artifact(path="b", min_items=2))),
        "verification.artifacts[1].minItems needs json: true",
    ),
    Refused(
        Contract(artifacts=(Artifact(path="a"),) * (ARTIFACTS_MAX + 1)),
        "verification.artifacts must have at most 1000 entries, not 1001",
    ),
    Refused(
        Contract(require_completion_report=True, verification_timeout_ms=0),
        "verification.verificationTimeoutMs must be 1 to 3600000, not 0",
    ),
    Refused(
        Contract(
            require_completion_report=True, verification_timeout_ms=VERIFICATION_TIMEOUT_MS_MAX + 1
        ),
        "verification.verificationTimeoutMs must be 1 to 3600000, not 3600001",
    ),
    Refused(Contract(commands=("",)), "verification.commands[0] must not be empty"),
    Refused(
        Contract(commands=("true", "a\0")), "verification.commands[1] must not contain a NUL byte"
    ),
    Refused(
        Contract(commands=("x" * (COMMAND_BYTES_MAX + 1),)),
        "verification.commands[0] must be at most 65536 bytes, not 65537",
    ),
    Refused(
        Contract(commands=("true",) * 101),
        "verification.commands must have at most 100 entries, not 101",
    ),
]


@pytest.mark.requirement("contract:bad:refused")
@pytest.mark.parametrize("refused", REFUSED, ids=lambda case: case.message[13:60])
def test_a_contract_that_could_never_be_checked_is_refused_with_its_field(refused: Refused) -> None:
    with pytest.raises(ContractError) as caught:
        validate(refused.contract, commands_allowed=True)

    assert caught.value.message == refused.message


@pytest.mark.requirement("contract:commands:gated")
def test_commands_are_refused_unless_the_operator_allowed_them() -> None:
    contract = Contract(artifacts=(Artifact(path="a"),), commands=("true",))

    with pytest.raises(
        ContractError, match=r"verification\.dangerously_allow_validation_commands = true"
    ):
        validate(contract, commands_allowed=False)
    validate(contract, commands_allowed=True)


@pytest.mark.requirement("contract:agents-stay-inside")
@pytest.mark.parametrize("field", ["path", "newer_than"])
def test_an_agents_contract_names_files_below_its_directory_alone(field: str) -> None:
    validate(one(**{field: "/project/here/a"}), commands_allowed=False, within="/project/here")
    validate(one(**{field: "/etc/shadow"}), commands_allowed=False)
    with pytest.raises(ContractError, match="must be below the working directory /project/here"):
        validate(one(**{field: "/etc/shadow"}), commands_allowed=False, within="/project/here")


@pytest.mark.requirement("contract:good:accepted")
@pytest.mark.parametrize(
    "contract",
    [
        one(),
        one(path="../elsewhere"),  # a failed check that says so, not a refusal
        one(path="/abs/path"),
        one(min_bytes=0),
        one(json=True, min_items=0, required_keys=("a", "")),
        one(schema={"type": "array"}, min_items=3),
        one(schema=False),
        one(sha256="ABCDEF" + "0" * 58),
        Contract(require_completion_report=True),
        Contract(require_completion_report=True, verification_timeout_ms=1),
    ],
)
def test_a_contract_that_can_be_checked_is_accepted(contract: Contract) -> None:
    validate(contract, commands_allowed=False)


@pytest.mark.requirement("contract:fresh")
def test_the_warning_of_old_files_is_about_artifacts_that_must_be_new_alone() -> None:
    found = Baseline(
        files=tuple(
            Fingerprint(path=each, size=1, sha256="", modified_ns=0)
            for each in ("src/a", "a.txt", "out/1.csv")
        )
    )
    wanted = Contract(
        artifacts=(Artifact(path="a.txt"), Artifact(path="out/*.csv", min_files=1)),
        must_not_change=("src",),
    )
    (warning,) = old_files(wanted, found)
    assert warning.startswith("a.txt, out/1.csv are there already and count only if")
    kept = (Artifact(path="a.txt", fresh=False),)
    assert old_files(Contract(artifacts=kept, must_change=("src",)), found) == ()
