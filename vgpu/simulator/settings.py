"""The simulator's settings: flags, or environment variables `VGPU_SIMULATOR_*`."""

from typing import Final

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from vgpu.domain.quantity import GIB_IN_MIB

DEFAULT_PORT: Final = 9870


class SimulatorSettings(BaseSettings):
    """A cluster in memory with simulated GPUs, the real extender and webhook, and a workload of pods."""

    model_config = SettingsConfigDict(
        env_prefix="VGPU_SIMULATOR_",
        cli_prog_name="python -m vgpu.simulator",
        cli_kebab_case=True,
        extra="forbid",
    )

    nodes: int = Field(3, ge=1, le=500, description="number of nodes")
    cards: int = Field(4, ge=1, le=16, description="cards of each node")
    memory_gib: int = Field(80, ge=1, le=1024, description="GiB of each card")
    memory_mib: str = Field(
        "",
        pattern=r"^([1-9]\d{0,6}(,[1-9]\d{0,6})*)?$",
        description="MiB of the cards of each node in turn, in place of memory-gib: 81008,24564",
    )
    pods: int = Field(
        15,
        ge=0,
        description="number of pods, created one each second, one of each kind first (default: batch pods without end)",
    )
    port: int = Field(
        DEFAULT_PORT,
        ge=0,
        le=65535,
        description="the extender's port; 0 takes free ones, for the admin REST too; a default in use moves",
    )
    slice_mib: int = Field(256, ge=1, le=65536, description="MiB of a memory slice")

    @property
    def card_sizes(self) -> tuple[int, ...]:
        """MiB of the cards of the first, the second, ... node; the sizes repeat."""
        return tuple(map(int, self.memory_mib.split(","))) if self.memory_mib else (self.memory_gib * GIB_IN_MIB,)

    @property
    def goes_on(self) -> bool:
        """Whether batch pods come without end: the user has not said how many pods there are."""
        return "pods" not in self.model_fields_set

    @property
    def asked_port(self) -> int | None:
        """The port that the user has set; None where it is the default."""
        return self.port if "port" in self.model_fields_set else None

    @property
    def asked_admin_port(self) -> int | None:
        """0 where the user asks for free ports; None for the default.

        Free ports are for runs beside others: two that start at once would both find the default free.
        """
        return 0 if self.asked_port == 0 else None
