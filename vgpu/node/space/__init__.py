"""Groups in space: the MPS daemon of each group on each card, its directories, and its members (ADR 174).

`python -m deviceplugin.space` runs the daemons; no installation starts it yet. The device plugin adds members. A module
belongs here if it works on what a group has on a node.
"""
