"""Which fields a place of a request may have, by its pydantic model."""

from collections.abc import Collection, Sequence
from typing import Any, get_args

from pydantic import BaseModel


def fields_at(annotations: Sequence[Any], steps: Sequence[str | int]) -> Collection[str] | None:
    """Return the names beside the last of these steps, which is not known; None where the place has no model.

    `annotations` are those of the request's models: one, where a request has one of its kind.
    """
    at: Any = annotations[0] if len(annotations) == 1 else None
    for step in steps[:-1]:
        if isinstance(step, int):
            at = next(iter(get_args(at)), None)
        else:
            at = at.model_fields[step].annotation if _is_model(at) and step in at.model_fields else None
    return list(at.model_fields) if _is_model(at) else None


def _is_model(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseModel)
