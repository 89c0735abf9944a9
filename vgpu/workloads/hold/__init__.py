"""The load generator: it holds a card's utilisation at a target, and stops while others use the card.

control      the decisions, as a pure function of time and measurements
linked_cards which cards belong to one job, and are used together
generator    the load: a thread with a kernel every 10 ms
session      measures each card, decides, and says what was decided
"""
