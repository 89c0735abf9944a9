"""What all device plugins of the node offer, as the kubelet knows it."""

import logging
from collections.abc import Collection, Mapping
from typing import Protocol

from vgpu.domain.errors import KubeletError

log = logging.getLogger(__name__)


class OffersClient(Protocol):
    """A client of the kubelet's pod-resources."""

    async def offered(self) -> Mapping[str, Collection[str]]:
        """Return the IDs of all healthy devices, by resource. Raises KubeletError."""


class OtherPlugins:
    """Asks the kubelet; while it does not answer, its last answer counts."""

    def __init__(self, client: OffersClient) -> None:
        self._client = client
        self._last: Mapping[str, Collection[str]] = {}

    async def offers(self) -> Mapping[str, Collection[str]]:
        """Return the IDs of all healthy devices, by resource."""
        try:
            self._last = await self._client.offered()
        except KubeletError as error:
            log.debug("allocatable resources: %s", error)
        return self._last
