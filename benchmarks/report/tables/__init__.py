"""The generated tables as data: which row ids stand in which line, and how a cell is written.

A module for each subject; `every_table.py` has the list of all.
"""
