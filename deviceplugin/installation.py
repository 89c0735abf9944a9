"""Whether containers of this node would get the limiter: checked before the plugin registers, and with every poll."""

import logging
from pathlib import Path
from typing import Final

from deviceplugin.settings import PluginSettings
from vgpu.domain.errors import StateUnusable
from vgpu.node.containers import selinux_labels
from vgpu.node.containers.state_files import StateFiles

FAULT: Final = "LimiterUnusable"

log = logging.getLogger(__name__)


class Installation:
    """The packaged limiter and the state directory."""

    def __init__(self, settings: PluginSettings) -> None:
        """Read the packaged library. Raises OSError."""
        self.files = StateFiles(
            settings.state_dir,
            region_tmpfs=settings.region_tmpfs,
            label=selinux_labels.labels(Path("/proc/filesystems").read_text()),
        )
        self._content = settings.library_path().read_bytes()
        self._complaint = ""

    def install(self) -> str:
        """Install the library, check that regions can be mounted, return the library's name. Raises StateUnusable."""
        self.files.check_region_tmpfs(Path("/proc/self/mountinfo").read_text())
        library = self.files.libraries.install(self._content)
        log.info("library %s", self.files.libraries.library(library))
        return library

    def fault(self) -> str:
        """Repair a damaged library; return `LimiterUnusable` where containers would run without limits, else ''."""
        try:
            self.files.libraries.install(self._content)
        except StateUnusable as error:
            self._complain(str(error))
            return FAULT
        self._complaint = ""
        return ""

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            log.error("no card is offered: %s", complaint)
