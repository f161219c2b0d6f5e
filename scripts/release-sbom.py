"""Completes a list of what is linked in: release-sbom.py FILE VERSION ARCH GCC.

The tool that makes it knows Go modules. DuckDB is an archive inside one of them, and has
others' code in it (deploy/duckdb/parts.json, which a test holds to be whole); C++'s
library is the compiler's. The program has the version of its release.
"""

import json
import pathlib
import re
import subprocess
import sys

path, version, arch, gcc = sys.argv[1:]
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

engine = pathlib.Path("internal/run/engine")
said = {m for f in engine.glob("*.go") for m in re.findall(r'Version\s*=\s*"duckdb-([0-9.]+)"', f.read_text())}
if len(said) != 1:
    sys.exit("internal/run/engine does not say which DuckDB it is: %s" % sorted(said))
version_of_duckdb = said.pop()
listed = json.loads(pathlib.Path("deploy/duckdb/parts.json").read_text())
if listed["duckdb"] != version_of_duckdb:
    sys.exit("deploy/duckdb/parts.json is of DuckDB %s, not %s" % (listed["duckdb"], version_of_duckdb))
bindings = [c["bom-ref"] for c in bom["components"] if c["name"].endswith("duckdb-go-bindings/lib/linux-" + arch)]
if len(bindings) != 1:
    sys.exit("the binary does not name DuckDB's archive: %s" % bindings)
needs = {d["ref"]: d for d in bom["dependencies"]}


def add(ref, by, name, license, **more):
    """Add what is no Go module, and who needs it."""
    bom["components"].append({"bom-ref": ref, "type": "library", "name": name, "scope": "required", "licenses": [license], **more})
    needs[ref] = {"ref": ref}
    needs[by].setdefault("dependsOn", []).append(ref)


duckdb = "pkg:github/duckdb/duckdb@v" + version_of_duckdb
add(duckdb, bindings[0], "duckdb", {"license": {"id": "MIT"}}, version=version_of_duckdb, purl=duckdb)
for part in listed["parts"]:
    more = {"version": part["version"]} if "version" in part else {}
    if "repository" in part:
        more["externalReferences"] = [{"type": "vcs", "url": "https://github.com/" + part["repository"]}]
        # A commit that nobody has written down is no version: then who looks for the package finds all of them.
        more["purl"] = "pkg:github/" + part["repository"].lower() + ("@" + part["version"] if "version" in part else "")
    # What has no name among SPDX's is spelled out.
    license = {"name": "TPC"} if part["license"] == "TPC" else {"id": part["license"]}
    add("%s#%s" % (duckdb, part["name"].replace(" ", "-")), duckdb, part["name"], {"license": license}, **more)
for name in ("libstdc++", "libgcc"):
    purl = "pkg:generic/%s@%s" % (name.replace("+", "%2B"), gcc)
    add(purl, old, name, {"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"}, version=gcc, purl=purl)
# The bundler lists what it has put into the pages of the server.
for name, at, license in re.findall(r"^## (\S+) - (\S+) \((.+)\)$", pathlib.Path("internal/web/dist/licenses.md").read_text(), re.M):
    purl = "pkg:npm/%s@%s" % (name.replace("@", "%40"), at)
    add(purl, old, name, {"expression": license} if " " in license else {"license": {"id": license}}, version=at, purl=purl)

# Words of licences whose texts the tool did not know, the more particular first.
WORDS = [
    ("Apache-2.0", r"Apache License,?\s+Version 2\.0"),
    ("MIT", r"Permission is hereby granted, free of charge"),
    ("BSD-3-Clause", r"Redistribution and use[\s\S]*(Neither the name|contributors may)"),
    ("BSD-2-Clause", r"Redistribution and use"),
]


def licence_of(module):
    """Return the licence in a module's folder, as those who wrote it say."""
    command = ["go", "env", "GOROOT"] if module == "std" else ["go", "list", "-m", "-f", "{{.Dir}}", module]
    folder = pathlib.Path(subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout.strip())
    texts = [f.read_text(errors="replace") for f in sorted([*folder.glob("LICEN[CS]E*"), *folder.glob("COPYING*")])]
    for name, words in WORDS:
        if any(re.search(words, text) for text in texts):
            return name
    sys.exit("%s: no known licence in %s" % (module, folder))


for c in bom["components"]:
    if not c.get("licenses") and not c.get("evidence", {}).get("licenses"):
        c["licenses"] = [{"license": {"id": licence_of(c["name"])}}]
for d in needs.values():
    if d["ref"] == old:
        d["ref"] = main["bom-ref"]
bom["dependencies"] = list(needs.values())
bom["compositions"] = [
    dict(c, **{k: [main["bom-ref"] if r == old else r for r in c[k]] for k in ("assemblies", "dependencies") if k in c})
    for c in bom.get("compositions", [])
]
json.dump(bom, sys.stdout, indent=1, sort_keys=True)
print()
