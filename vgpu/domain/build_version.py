"""The two spellings of a build's version: Python's (PEP 440), and that of image tags, labels, Helm and krew."""

import re
from typing import Final

_VERSION: Final = re.compile(r"(?P<release>[\d.]+?)(\.dev(?P<time>\d+))?(\+(?P<local>[a-z0-9.]+))?")


def is_unbuilt(version: str) -> bool:
    """Whether a version is that of a program in a checkout, which no build has stamped: `0.2.0.dev0`."""
    found = _VERSION.fullmatch(version)
    return found is not None and found["time"] == "0" and not found["local"]


def is_same_build(one: str, other: str) -> bool:
    """Whether two versions, in either spelling, may be of one build: an unbuilt one may be any before its release."""
    tags = image_tag(one), image_tag(other)
    unbuilt = [version for version in (one, other) if is_unbuilt(version)]
    before = [f"{version.partition('.dev')[0]}-dev." for version in unbuilt]
    return tags[0] == tags[1] or any(all(tag.startswith(release) for tag in tags) for release in before)


def image_tag(version: str) -> str:
    """Return a version of PEP 440 as Semantic Versioning writes it, without `+`, which no image tag may have."""
    found = _VERSION.fullmatch(version)
    if found is None or found["time"] is None:
        return version
    return ".".join(filter(None, (f"{found['release']}-dev", found["time"], found["local"])))
