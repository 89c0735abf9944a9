"""Compiles the shared library into the wheel, sets the wheel's platform, and writes the version down."""

import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET_ENV = "VGPUSHARE_TARGET"  # x86_64 or aarch64; this machine's architecture where it is not set


class LimiterHook(BuildHookInterface[Any]):
    """Compiles the limiter for one architecture; after an editable install run `python -m limiter.build`.

    A source distribution gets the version only: nothing in it says any more from which commit it was made.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into a scratch folder, and add the files to the wheel beside the limiter's modules."""
        if version == "editable":
            return
        self._scratch = tempfile.TemporaryDirectory()
        folder = Path(self._scratch.name)
        written = folder / "version.txt"
        written.write_text(f"{self.metadata.version}\n")
        build_data["force_include"][str(written)] = "vgpu/version.txt"
        if self.target_name == "wheel":
            self._compile(folder / "limiter", build_data)

    def _compile(self, folder: Path, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from limiter import build  # noqa: PLC0415 - the project is on the path only from here on
        from limiter.build import toolchain  # noqa: PLC0415 - likewise

        architecture = os.environ.get(TARGET_ENV, platform.machine())
        folder.mkdir()
        build.build(architecture, folder)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{toolchain.GLIBC[0]}_{toolchain.GLIBC[1]}_{architecture}"
        build_data["force_include"] |= {str(path): f"limiter/{path.name}" for path in build.outputs(folder)}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the scratch folder."""
        del build_data, artifact_path
        if version != "editable":
            self._scratch.cleanup()
