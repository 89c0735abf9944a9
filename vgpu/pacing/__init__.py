"""When something may be done again: rates with bursts. Pure: the time is an argument.

A module belongs here if several parts limit or delay something by the same rule.
"""
