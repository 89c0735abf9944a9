"""What is asked of the history: usage, costs, events and right sizes.

A module belongs here if it only reads the database, or says what a report contains.
"""
