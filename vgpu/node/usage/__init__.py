"""What containers use of their cards: GPU time, idle time, metrics and reports.

A module belongs here if it measures running containers; what judges them is in `processes`.
"""
