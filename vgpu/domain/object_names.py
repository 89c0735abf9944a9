"""Which names Kubernetes' objects can have: RFC 1123, with the API server's lengths.

Names of namespaces are DNS labels, names of pods, nodes and most other objects are DNS subdomains. What is such a name
can stand in a path and in a command line: it contains no `/`, and begins with no `-` or `.`.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names, and IsDNS1123Label and
IsDNS1123Subdomain of k8s.io/apimachinery/pkg/util/validation. Only the whole subdomain has a greatest length: its parts
may be longer than a label.
"""

import re
from typing import Final

# Both can stand in a JSON schema too: each anchors itself.
LABEL: Final = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
SUBDOMAIN: Final = r"^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_LABEL: Final = re.compile(LABEL)
_SUBDOMAIN: Final = re.compile(SUBDOMAIN)


def is_label(text: str) -> bool:
    """Whether this is a DNS label: at most 63 of a-z, 0-9 and -, with a letter or digit at both ends."""
    return _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether this is a DNS subdomain: at most 253 characters, in parts like labels between dots."""
    return _SUBDOMAIN.fullmatch(text) is not None
