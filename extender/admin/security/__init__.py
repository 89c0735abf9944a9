"""Who may ask what of the admin REST, how often, and how large a request may be.

A module belongs here if it can refuse a request before its answer is looked for, or records that it was made.
"""
