"""What each distribution needs at run time: the part of requirements.lock that its dependencies reach, with hashes and
licences.

    python -m scripts.sbom          # writes licences.toml again, from what is installed
    python -m scripts.sbom needs    # what the other distributions of this project ask of others, a line each

The licences are kept in a file, because they stand in the packages, not in the lock: those that only other systems need
are not installed here. `tests/release` holds the file against the lock. The bill of materials is CycloneDX 1.6 as JSON
(docs/adr/0021-sbom-from-the-lock.md says why it is written here).
"""

import hashlib
import json
import re
import sys
import tomllib
import uuid
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
LICENCES = ROOT / "licences.toml"
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]*?))? ?\\?$")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
VIA = re.compile(r"^ +#(?: +via)? +(\S+)")
OWN_NAME = "synapsed"
DISTRIBUTIONS = {OWN_NAME: ROOT, "synapsed-fleet": ROOT / "packages" / "synapsed-fleet"}
"""The folder of each that is made of this checkout."""


class Locked(NamedTuple):
    """One pin. `via` are the names of those that need it, ours among them."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    via: tuple[str, ...]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project(name: str = OWN_NAME) -> dict[str, Any]:
    with (DISTRIBUTIONS[name] / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]


def name_in(requirement: str) -> str:
    """Returns the name of what is asked for, without its version and extras."""
    return canonical(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])


def needs() -> list[str]:
    """Returns what the distributions beside synapsed ask of others, with all their extras."""
    others = [project(name) for name in DISTRIBUTIONS if name != OWN_NAME]
    asked = [one for told in others for one in told["dependencies"]]
    asked += [one for told in others for extra in told.get("optional-dependencies", {}).values() for one in extra]
    return sorted(one for one in asked if name_in(one) not in DISTRIBUTIONS)


def version() -> str:
    """The one place that has it is synapsed/__init__.py."""
    found = re.search(r'^__version__ = "([^"]+)"$', (ROOT / "synapsed/__init__.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def pins(text: str) -> list[Locked]:
    """Every pin of a lock file, in its order."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        if pin := PIN.match(line):
            found.append({**pin.groupdict(), "hashes": [], "via": []})
        elif found and (digest := HASH.search(line)):
            found[-1]["hashes"].append(digest[1])
        elif found and line.startswith(" ") and (via := VIA.match(line)):
            found[-1]["via"].append(canonical(via[1]))
    return [
        Locked(canonical(one["name"]), one["version"], one["marker"] or "", tuple(one["hashes"]), tuple(one["via"]))
        for one in found
    ]


def locked(name: str = OWN_NAME) -> list[Locked]:
    """The pins that a distribution needs at run time, directly or not, beside another of ours; those for developing and
    measuring are left out."""
    every = pins(LOCK.read_text())
    wanted = {name_in(one) for one in project(name)["dependencies"]} - DISTRIBUTIONS.keys()
    while more := {one.name for one in every if wanted & set(one.via)} - wanted:
        wanted |= more
    return [one for one in every if one.name in wanted]


def licences() -> dict[str, str]:
    """SPDX expressions by name."""
    with LICENCES.open("rb") as file:
        return dict(tomllib.load(file)["licences"])


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def document(parts: list[Locked], *, epoch: int, name: str = OWN_NAME) -> bytes:
    """The bill of materials of a distribution; of the same lock at the same moment the same bytes."""
    known = licences()
    own = _own(name, "application" if name == OWN_NAME else "library")
    refs = {one.name: _purl(one.name, one.version) for one in parts}
    direct = {name_in(one) for one in project(name)["dependencies"]}
    ours = [_own(one, "application") for one in DISTRIBUTIONS if one in direct]
    first = sorted([*(one["bom-ref"] for one in ours), *(refs[one] for one in direct & refs.keys())])
    needs = {one.name: sorted(refs[other.name] for other in parts if one.name in other.via) for one in parts}
    told: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z"),
            "component": own,
        },
        "components": [*ours, *(_component(one, known[one.name]) for one in parts)],
        "dependencies": [
            {"ref": own["bom-ref"], "dependsOn": first},
            *({"ref": refs[one.name], "dependsOn": needs[one.name]} for one in parts),
        ],
    }
    # Random in general; here it is a name for what the document says, so that the same says the same.
    told["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(told, sort_keys=True))}"
    return (json.dumps(told, indent=2, sort_keys=True) + "\n").encode()


def _own(name: str, kind: str) -> dict[str, Any]:
    """One of ours."""
    purl = _purl(name, version())
    told = {"type": kind, "name": name, "version": version(), "bom-ref": purl, "purl": purl}
    return {**told, "licenses": [{"expression": project(name)["license"]}]}


def _component(one: Locked, licence: str) -> dict[str, Any]:
    """The hashes are those of the files that the lock allows, of which one is installed: a file each."""
    files = [
        {
            "type": "file",
            "name": f"{one.name}-{one.version}#{number}",
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        for number, digest in enumerate(one.hashes, 1)
    ]
    properties = [{"name": "synapsed:marker", "value": one.marker}] if one.marker else []
    purl = _purl(one.name, one.version)
    told = {"type": "library", "name": one.name, "version": one.version, "bom-ref": purl, "purl": purl}
    told |= {"licenses": [{"expression": licence}], "components": files, "scope": "required"}
    return told | ({"properties": properties} if properties else {})


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def lock_text(parts: list[Locked]) -> str:
    """These pins alone as a lock file: what an installation gets."""
    lines = []
    for one in parts:
        marker = f" ; {one.marker.strip()}" if one.marker else ""
        lines.append(" ".join([f"{one.name}=={one.version}{marker}", *(f"--hash=sha256:{it}" for it in one.hashes)]))
    return "\n".join(lines) + "\n"


SPDX = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "psf": "PSF-2.0",
    "bsd license": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "isc": "ISC",
    "mit license": "MIT",
    "mit": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
"""What packages say in other words, in lower case."""


def licence_of(name: str) -> str | None:
    """The SPDX expression that an installed package gives, None where it is not installed or says nothing known."""
    try:
        told = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    if expression := told.get("License-Expression"):
        return str(expression)
    said = [told.get("License") or ""]
    said += [line.rpartition(" :: ")[2] for line in told.get_all("Classifier", []) if line.startswith("License")]
    return next((SPDX[word.lower()] for word in said if word.lower() in SPDX), None)


def main() -> int:
    if sys.argv[1:] == ["needs"]:
        print(*needs(), sep="\n")
        return 0
    kept = licences() if LICENCES.exists() else {}
    every = {one.name for name in DISTRIBUTIONS for one in locked(name)}
    found = {name: licence_of(name) or kept.get(name) for name in every}
    lines = [
        "# Licences (SPDX) of what all of this needs to run, by the names of requirements.lock. 'make lock' writes it:",
        "# what is not installed here keeps the line that it has.",
        "[licences]",
    ]
    lines += [f'{json.dumps(name)} = "{licence or "?"}"' for name, licence in sorted(found.items())]
    LICENCES.write_text("\n".join(lines) + "\n")
    unknown = [name for name, licence in found.items() if licence is None]
    for name in unknown:
        print(f"licences.toml: look up the licence of {name}", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    raise SystemExit(main())
