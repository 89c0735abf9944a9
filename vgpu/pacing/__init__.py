"""When something may be done again, and whose turn it is: rates with bursts, back-off, fair shares of bounded memories.

Pure: time and random numbers are arguments. A module belongs here if several parts limit or delay something by the same
rule.
"""
