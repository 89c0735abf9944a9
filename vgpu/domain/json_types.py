"""JSON objects as Python has them."""

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]  # an object that is only read
JsonObject = dict[str, Any]  # an object that is being made
