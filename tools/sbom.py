"""Writes `sbom.cdx.json`, the bill of materials inside the wheel: what it contains, and what it asks for.

The list is in the form CycloneDX 1.6. It has the vendored files with their hashes, and the dependencies of
`pyproject.toml` with the versions that they may have: the installer chooses, so no single version is true. It holds no
date and no random number, so that the same source gives the same bytes.

    python tools/sbom.py            write the file
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
FILE = ROOT / "sbom.cdx.json"
VENDORED = ROOT / "web" / "vendor"


def vendored() -> dict[str, Any]:
    """The library that draws the dashboard's lines; its version is in the head of its file."""
    head = (VENDORED / "uPlot.iife.min.js").read_text(encoding="utf-8").partition("\n")[0]
    address, version = re.findall(r"(https://\S+) \(v([0-9.]+)\)", head)[0]
    files = [
        {
            "type": "file",
            "name": f"deniable/web/vendor/{path.name}",
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
        }
        for path in sorted(VENDORED.iterdir())
    ]
    return {
        "type": "library",
        "bom-ref": f"pkg:npm/uplot@{version}",
        "name": "uplot",
        "version": version,
        "purl": f"pkg:npm/uplot@{version}",
        "scope": "required",
        "licenses": [{"license": {"id": "MIT"}}],
        "externalReferences": [{"type": "vcs", "url": address}],
        "components": files,
    }


def dependencies(project: dict[str, Any]) -> list[dict[str, Any]]:
    """One component per package that this one, or an extra for users, asks for."""
    found: dict[str, dict[str, Any]] = {}
    asked = [(text, "") for text in project["dependencies"]]
    extras = project["optional-dependencies"]
    asked += [(text, extra) for extra in extras if extra not in ("docs", "dev") for text in extras[extra]]
    for text, extra in asked:
        requirement = Requirement(text)
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name == project["name"]:
            continue
        ref = f"pkg:pypi/{name}"
        new = {"type": "library", "bom-ref": ref, "name": name, "purl": ref, "scope": "optional", "properties": []}
        entry = found.setdefault(name, new)
        entry["scope"] = entry["scope"] if extra else "required"
        entry["properties"].append({"name": "deniable:extra" if extra else "deniable:requires", "value": extra or text})
        if extra:
            entry["properties"].append({"name": "deniable:requires", "value": text})
    return [found[name] for name in sorted(found)]


def document() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    main = f"pkg:pypi/{project['name']}@{project['version']}"
    parts = [vendored(), *dependencies(project)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": main,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "purl": main,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": parts,
        "dependencies": [
            {"ref": main, "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
    }


def text() -> str:
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
