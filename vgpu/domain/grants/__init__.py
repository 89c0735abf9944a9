"""What pods were given: the assignment that a Binding carries, whether it is trusted, and what it takes of cards.

A module belongs here if it is about a decision of the scheduler that has been written down.
"""
