"""Types of what identifies cards, nodes, pods and containers: text at run time, told apart by the type checker.

A value gets its type where it enters the program: in the parser of an object or a file, in an adapter, in a parameter
of a request or a command line. Code behind that passes it on, and converts nothing.
"""

from typing import Final, NewType

CardUuid = NewType("CardUuid", str)
"""NVML's UUID of a card, `GPU-...`: the card's identity everywhere."""

UNNAMED_CARD: Final = CardUuid("")
"""Where no card is meant, or its identity does not matter."""

NodeName = NewType("NodeName", str)
"""The name of a node, and of its GPUNode."""

NO_NODE: Final = NodeName("")
"""Where an object is on no node, or no node is meant."""
