"""The domain: what a share of a GPU is, what pods ask for, and what they were given. Standard library only.

A module belongs here if several parts must agree on it; it reads no clock and no environment, and opens nothing.
"""
