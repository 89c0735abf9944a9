"""The watches of the API server: each hands what it shows to the parts that keep it.

A module belongs here if it receives the events of a watch; what is derived from them is in `state`. Each says as a
`WatchedKind` what it watches.
"""
