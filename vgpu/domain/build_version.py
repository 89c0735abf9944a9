"""The two spellings of a build's version: Python's (PEP 440), and that of image tags, labels, Helm and krew."""

import re
from typing import Final

_VERSION: Final = re.compile(r"(?P<release>[\d.]+?)(\.dev(?P<time>\d+))?(\+(?P<local>[a-z0-9.]+))?")


def image_tag(version: str) -> str:
    """Return a version of PEP 440 as Semantic Versioning writes it, without `+`, which no image tag may have."""
    found = _VERSION.fullmatch(version)
    if found is None or found["time"] is None:
        return version
    return ".".join(filter(None, (f"{found['release']}-dev", found["time"], found["local"])))
