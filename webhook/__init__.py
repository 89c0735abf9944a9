"""The admission webhook: refuses what makes no sense, translates foreign names, and adds what the other parts need.

It keeps nothing: every answer follows from the review, the settings and the cards that the cluster has.
"""
