"""Whom the programs of the tests trust: their own certificates only, except where something is downloaded.

Each client of an API server would read the machine's certificates, 40 ms a client.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The file's certificate signs nothing: its key was never stored.
_NOBODY = {"SSL_CERT_FILE": str(Path(__file__).parent / "nobody.pem"), "SSL_CERT_DIR": os.devnull}
_KEPT = "VGPU_TESTS_"  # the machine's settings, for this process and for pytest's worker processes


def trust_nobody() -> None:
    """Trust no certificate of the machine from now on."""
    for name, value in _NOBODY.items():
        os.environ.setdefault(_KEPT + name, os.environ.get(name, ""))
        os.environ[name] = value


@contextmanager
def of_the_machine() -> Iterator[None]:
    """Trust the machine's certificates inside the block: programs download there. Blocks may be nested."""
    before = {name: os.environ.get(name, "") for name in _NOBODY}
    _set({name: os.environ.get(_KEPT + name, "") for name in _NOBODY})
    try:
        yield
    finally:
        _set(before)


def _set(values: dict[str, str]) -> None:
    for name, value in values.items():
        os.environ.pop(name, None)
        if value:
            os.environ[name] = value
