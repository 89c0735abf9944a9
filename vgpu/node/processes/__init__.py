"""Processes that use cards: whose they are, and which of them have no share, or do not keep to its limits.

A module belongs here if it judges running processes from outside.
"""
