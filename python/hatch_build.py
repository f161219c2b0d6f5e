"""Puts the program into a wheel, and the system that it needs into the wheel's name.

THALWEG_BINARY is the program, THALWEG_VERSION its version, THALWEG_TAG the system:
scripts/release sets them.
"""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


def needed(name):
    value = os.environ.get(name)
    if not value:
        raise SystemExit("%s is not set: wheels are made by `make release`, which sets it" % name)
    return value


class Version(MetadataHookInterface):
    PLUGIN_NAME = "custom"

    def update(self, metadata):
        metadata["version"] = needed("THALWEG_VERSION")


class Program(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + needed("THALWEG_TAG")
        build_data["force_include"][os.path.join(self.root, "..", "LICENSE")] = "thalweg/LICENSE"
        licences = os.environ.get("THALWEG_LICENCES")  # of what is linked in
        if licences:
            build_data["force_include"][licences] = "thalweg/THIRD_PARTY_LICENSES"
        build_data["shared_scripts"] = {needed("THALWEG_BINARY"): "thalweg"}
