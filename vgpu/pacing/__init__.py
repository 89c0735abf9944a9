"""When something may be done again: rates with bursts, and back-off. Pure: time and random numbers are arguments.

A module belongs here if several parts limit or delay something by the same rule.
"""
