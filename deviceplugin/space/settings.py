"""The supervisor's settings: flags, or environment variables `VGPU_SPACE_*`."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings

from vgpu.adapters import mps
from vgpu.adapters.settings import of_program


class SpaceSettings(BaseSettings):
    """Supervisor of vgpushare: runs an MPS daemon for each group in space that has containers on this node."""

    model_config = of_program("python -m deviceplugin.space", "VGPU_SPACE_")

    state_dir: Path = Field(
        Path("/var/lib/vgpu"), description="the device plugin's state directory; the same path as on the host"
    )
    control: Path = Field(
        Path("/usr/bin") / mps.CONTROL, description="the driver's program that is the daemon, of the node's driver"
    )
    log_level: str = Field("info", description="debug, info, warning or error")

    @property
    def space_dir(self) -> Path:
        """The directory by which the device plugin says which groups have members."""
        return self.state_dir / "space"
