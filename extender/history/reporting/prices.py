"""What an hour of a card costs, by model, from a settings file in TOML.

currency = "EUR"

[card-hour]
"NVIDIA H100 80GB HBM3" = 2.49
"NVIDIA L4" = 0.71
default = 1.0          # for models that are not listed; without it their cost is unknown
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from vgpu.adapters import toml_file
from vgpu.domain.errors import UnusableSetting

DEFAULT: Final = "default"
MAX_MODELS: Final = 1_000
HOUR_S: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a whole card for an hour. `currency` is shown, not converted."""

    currency: str = ""
    card_hour: Mapping[str, float] = field(default_factory=dict)

    def cost(self, model: str, share_seconds: float) -> float | None:
        """Return what a share of a card of this model cost; None where the model has no price."""
        price = self.card_hour.get(model, self.card_hour.get(DEFAULT))
        return None if price is None else price * share_seconds / HOUR_S


def read(path: Path) -> Prices:
    """Read the file.

    Raises:
        UnusableSetting: the file cannot be read; the message names the field.
    """
    return _prices(path, toml_file.load(path))


def _prices(path: Path, found: Mapping[str, Any]) -> Prices:
    unknown = found.keys() - {"currency", "card-hour"}
    if unknown:
        raise UnusableSetting(f"{path}: {min(unknown)}: unknown; known are currency and card-hour")
    currency, models = found.get("currency", ""), found.get("card-hour", {})
    if not isinstance(currency, str):
        raise UnusableSetting(f"{path}: currency: must be a text such as EUR")
    if not isinstance(models, dict) or len(models) > MAX_MODELS:
        raise UnusableSetting(f"{path}: card-hour: must be a table of at most {MAX_MODELS} models")
    return Prices(currency, {model: _price(path, model, price) for model, price in models.items()})


def _price(path: Path, model: str, price: object) -> float:
    if isinstance(price, bool) or not isinstance(price, int | float) or not math.isfinite(price) or price < 0:
        raise UnusableSetting(f"{path}: card-hour.{model}: must be a number, 0 or more")
    return float(price)
