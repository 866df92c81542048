"""Whether anything that is installed has a published vulnerability: ``python -m scripts.audit``.

Ends with 1 on one that ``judged_advisories.toml`` does not name with a reason. Where no service
with advisories can be reached it says so, and ends with 0: pip-audit itself reports that nothing is
known then.
"""

import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

SERVICES: Final = ("pypi", "osv")
"""Asked one after the other until one knows anything."""
JUDGED: Final = Path(__file__).with_name("judged_advisories.toml")
BOUND_S: Final = 600


class Advisory(msgspec.Struct, frozen=True):
    id: str
    aliases: tuple[str, ...] = ()
    fix_versions: tuple[str, ...] = ()


class Package(msgspec.Struct, frozen=True):
    name: str
    version: str = ""
    skip_reason: str | None = None
    vulns: tuple[Advisory, ...] = ()


class Audit(msgspec.Struct, frozen=True):
    dependencies: tuple[Package, ...] = ()

    @property
    def looked_up(self) -> int:
        return sum(each.skip_reason is None for each in self.dependencies)


class Verdict(NamedTuple):
    lines: tuple[str, ...]
    is_well: bool


def verdict(audit: Audit, judged: Mapping[str, str]) -> Verdict:
    """What is said of an audit.

    Args:
        audit: What pip-audit found.
        judged: By the id or an alias of an advisory: why it does not concern us.
    """
    if not audit.looked_up:
        return Verdict(("no advisory data reachable: nothing was audited",), is_well=True)
    lines, is_well, used = [], True, set[str]()
    for package in audit.dependencies:
        for each in package.vulns:
            known = next((name for name in (each.id, *each.aliases) if name in judged), None)
            if known is not None:
                used.add(known)
                lines.append(f"{package.name} {package.version}: {known}, judged: {judged[known]}")
                continue
            is_well = False
            fixed = f", mended in {', '.join(each.fix_versions)}" if each.fix_versions else ""
            names = ", ".join((each.id, *each.aliases))
            lines.append(f"{package.name} {package.version}: {names}{fixed}")
    lines += [f"{JUDGED.name}: {name} is found no more" for name in judged if name not in used]
    unknown = len(audit.dependencies) - audit.looked_up
    more = f"; nothing is known of {unknown} others" if unknown else ""
    lines.append(f"{audit.looked_up} packages looked up{more}")
    return Verdict(tuple(lines), is_well)


def judged_in(text: str) -> dict[str, str]:
    """Advisories by id, each with its reason.

    Raises:
        ValueError: One has no reason.
    """
    found = tomllib.loads(text)
    for name, reason in found.items():
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f"{JUDGED.name}: {name} needs a reason")
    return found


def asked(service: str) -> Audit:
    """What is found in this environment; empty when the service cannot be reached."""
    argv = [sys.executable, "-m", "pip_audit", "--format=json", "--progress-spinner=off"]
    done = subprocess.run(
        [*argv, f"--vulnerability-service={service}"],
        capture_output=True,
        check=False,
        timeout=BOUND_S,
    )
    try:
        return msgspec.json.decode(done.stdout, type=Audit)
    except msgspec.DecodeError:
        return Audit()


def main(services: Sequence[str] = SERVICES) -> int:
    judged = judged_in(JUDGED.read_text("utf-8"))
    audit = next((found for each in services if (found := asked(each)).looked_up), Audit())
    lines, is_well = verdict(audit, judged)
    print("\n".join(lines))
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
