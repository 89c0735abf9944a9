"""What is recorded, and how it reaches the disk: events, the recorder, and the spill that survives a crash.

A module belongs here if it makes events of what the extender sees, or keeps them until they are stored in SQL.
"""
