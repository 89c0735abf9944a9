"""What answers consist of: rows of a snapshot, filtered, sorted and paged, and their JSON models.

A module belongs here if more than one route can use it to compose an answer.
"""
