"""The drain's settings: environment variables `VGPU_HISTORY_*`, as the extender sets them, or flags."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

ENV_PREFIX = "VGPU_HISTORY_"


class DrainSettings(BaseSettings):
    """Drain of the history: moves events from the spill into the database, until its standard input is closed."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, cli_prog_name="python -m extender.history", cli_kebab_case=True, extra="forbid"
    )

    dir: Path = Field(description="folder of the spill, and of the SQLite file")
    url: str = Field("", description="postgresql://USER@HOST/NAME or sqlite:////PATH (default: history.db in dir)")
    events_days: int = Field(90, ge=1, le=36_500, description="days that events are kept")
    hours_days: int = Field(1_100, ge=1, le=36_500, description="days that usage by the hour is kept")
    series_hours: int = Field(48, ge=1, le=1_000, description="hours that five-minute figures are kept")
    max_mib: int = Field(4_096, ge=64, description="MiB of the database, above which the oldest events are deleted")
    log_level: str = Field("info", description="debug, info, warning or error")
