"""The programs that a cluster runs, built from the Go module proxy once, each pinned by a go.mod in a folder here.

Modules that run them are in `cluster`.
"""
