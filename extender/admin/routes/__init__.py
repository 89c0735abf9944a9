"""The paths of the admin REST: a router for each subject, and the context that all of them get.

A module belongs here if it names paths; what several paths answer with is in `answers`.
"""
