"""What the parts of the extender that change the cluster ask before they do."""

from typing import Protocol


class Leader(Protocol):
    """Says whether this replica may change the cluster."""

    def refusal(self) -> str:
        """Return why this replica must not change the cluster now; empty where it may."""
