"""Checks a list of what is linked in: release-sbom-check.py FILE, with `go version -m` of the program as input.

It has to be valid CycloneDX, to hang together, and to name every module, every part of
DuckDB, C++'s library and every package in the pages of the server.
"""

import json
import pathlib
import re
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

path = pathlib.Path(sys.argv[1])
bom = json.loads(path.read_text())
error = JsonStrictValidator(SchemaVersion.from_version(bom["specVersion"])).validate_str(path.read_text())
if error is not None:
    sys.exit("%s is not valid CycloneDX: %s" % (path, str(error)[:1000]))

components = bom["components"]
named = {(c["name"], c.get("version", "")) for c in components}
wanted = [tuple(line.split()[1:3]) for line in sys.stdin if line.split()[:1] in (["dep"], ["=>"])]
wanted += [(p["name"], p.get("version", "")) for p in json.loads(pathlib.Path("deploy/duckdb/parts.json").read_text())["parts"]]
wanted += re.findall(r"^## (\S+) - (\S+) \(", pathlib.Path("internal/web/dist/licenses.md").read_text(), re.M)
missing = [w for w in wanted if w not in named] + [n for n in ("duckdb", "libstdc++", "libgcc", "std") if n not in {n for n, _ in named}]
if len(wanted) < 60 or missing:
    sys.exit("%s: of %d, these are missing: %s" % (path, len(wanted), missing))
without = [c["name"] for c in components if not c.get("licenses") and not c.get("evidence", {}).get("licenses")]
if without:
    sys.exit("%s: these have no licence: %s" % (path, without))
refs = [c["bom-ref"] for c in components] + [bom["metadata"]["component"]["bom-ref"]]
loose = {r for d in bom["dependencies"] for r in [d["ref"], *d.get("dependsOn", [])]} ^ set(refs)
if loose or len(refs) != len(set(refs)):
    sys.exit("%s: components and dependencies do not name the same: %s" % (path, sorted(loose)))
print("%s: CycloneDX %s, %d components" % (path.name, bom["specVersion"], len(components)))
