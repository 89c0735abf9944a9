"""Lists of the API server, page by page.

https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from vgpu.cli.failure import NO_ANSWER, CommandFailed

PAGE: Final = 500

Asked = Mapping[str, str | int | Sequence[str]]


class ListingApi(Protocol):
    """The API server, with the caller's own rights."""

    def get(self, path: str, query: Asked | None = None) -> Any:
        """GET a list. Raises CommandFailed."""


def items(api: ListingApi, path: str, query: Asked) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list; a page is asked for when the one before was taken. Raises CommandFailed."""
    asked: dict[str, str | int | Sequence[str]] = {**query, "limit": PAGE}
    while True:
        page = api.get(path, asked)
        if not isinstance(page, dict) or "items" not in page:
            raise CommandFailed(f"{path}: the answer is no list of objects", NO_ANSWER)
        yield from page["items"] or ()
        following = (page.get("metadata") or {}).get("continue")
        if not following:
            return
        asked["continue"] = following
