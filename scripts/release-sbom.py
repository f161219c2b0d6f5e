"""Completes a list of what is linked in: release-sbom.py FILE VERSION ARCH.

The tool that makes it knows Go modules. DuckDB itself is an archive inside one of
them, and the program has the version of its release.
"""

import json
import pathlib
import re
import sys

path, version, arch = sys.argv[1:]
bom = json.loads(pathlib.Path(path).read_text())
main = bom["metadata"]["component"]
old, main["version"] = main["bom-ref"], version
main["purl"] = "pkg:golang/thalweg@v%s?goarch=%s&goos=linux&type=module#cmd/thalweg" % (version, arch)
main["bom-ref"] = main["purl"]
main["licenses"] = [{"license": {"id": "Apache-2.0"}}]
# The tool's own build differs from machine to machine.
for tool in bom["metadata"]["tools"]:
    tool.pop("hashes", None)
for p in bom["metadata"].get("properties", []):
    if p["name"] == "cdx:gomod:binary:name":
        p["value"] = "thalweg"

engine = pathlib.Path("internal/engine")
said = {m for f in engine.glob("*.go") for m in re.findall(r'Version\s*=\s*"duckdb-([0-9.]+)"', f.read_text())}
if len(said) != 1:
    sys.exit("internal/engine does not say which DuckDB it is: %s" % sorted(said))
duckdb = "pkg:github/duckdb/duckdb@v%s" % said.pop()
bindings = [c["bom-ref"] for c in bom["components"] if c["name"].endswith("duckdb-go-bindings/lib/linux-" + arch)]
if len(bindings) != 1:
    sys.exit("the binary does not name DuckDB's archive: %s" % bindings)
bom["components"].append(
    {
        "bom-ref": duckdb,
        "type": "library",
        "name": "duckdb",
        "version": duckdb.rpartition("@v")[2],
        "scope": "required",
        "purl": duckdb,
        "licenses": [{"license": {"id": "MIT"}}],
    }
)
for d in bom["dependencies"]:
    if d["ref"] == old:
        d["ref"] = main["bom-ref"]
    if d["ref"] == bindings[0]:
        d["dependsOn"] = d.get("dependsOn", []) + [duckdb]
bom["dependencies"].append({"ref": duckdb})
bom["compositions"] = [
    dict(c, **{k: [main["bom-ref"] if r == old else r for r in c[k]] for k in ("assemblies", "dependencies") if k in c})
    for c in bom.get("compositions", [])
]
json.dump(bom, sys.stdout, indent=1, sort_keys=True)
print()
