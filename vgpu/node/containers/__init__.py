"""What containers are given, and whether one may start: files, limits, the proof of its identity, the last guard.

A module belongs here if it works before or while a container starts, or cleans up after it.
"""
