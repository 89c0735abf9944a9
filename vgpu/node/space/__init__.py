"""Groups in space: the MPS daemon of each group on each card, its directories, and its members (ADR 174).

No part calls this yet. A module belongs here if it works on what a group has on a node.
"""
