"""Silently drops the packets of one part's connections to the API server, by routes in the cluster's network.

Each part connects to an address of its own, from a source address that its route names. A blackhole route of the source
address drops what the API server sends, its acknowledgements included, and neither end is told. Another source address
for later connections leaves only those that are open now half-open.
"""

import subprocess
from typing import Final

_TABLE: Final = ("table", "local")


class Route:
    """The way of one part to the API server: from 127.(index + 10).* to 127.0.1.(index + 1)."""

    def __init__(self, pid: int, index: int) -> None:
        self.address = f"127.0.1.{index + 1}"
        self._pid = pid
        self._index = index
        self._sources = 0
        self._lay()

    def _lay(self) -> None:
        source = ("src", self._source())
        self._ip("replace", "local", f"{self.address}/32", "dev", "lo", *source, *_TABLE)

    def _source(self) -> str:
        return f"127.{self._index + 10}.{self._sources // 250}.{self._sources % 250 + 1}"

    def silence(self) -> None:
        """Drop the packets of the connections that are open now, for ever; later connections work."""
        old = self._source()
        self._sources += 1
        self._lay()
        self._ip("add", "blackhole", f"{old}/32", *_TABLE)

    def cut(self) -> None:
        """Drop the packets of all connections until `heal`, also of new ones."""
        self._ip("add", "blackhole", f"{self._source()}/32", *_TABLE)

    def heal(self) -> None:
        """Undo `cut`: connections that neither end has given up go on."""
        self._ip("del", "blackhole", f"{self._source()}/32", *_TABLE)

    def _ip(self, *words: str) -> None:
        subprocess.run(["nsenter", "-t", str(self._pid), "-n", "ip", "route", *words], check=True)
