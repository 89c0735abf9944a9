"""What decisions look at: the objects that the watches show, and everything that is derived from them.

A module belongs here if it is fed by a watch or a verb and answers questions; nothing here calls the API server.
"""
