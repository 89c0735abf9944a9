"""Why a pod waits: the texts for its owner, and the Events that carry them.

A module belongs here if it explains a decision that has been made; nothing here decides.
"""
