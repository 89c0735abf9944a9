"""How events are stored in SQL: tables, migrations, and the sums that reports read.

A module belongs here if it writes to the database.
"""
