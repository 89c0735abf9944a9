"""What a test or a benchmark adds to a cluster: another replica of the scheduler, Kueue's manager, a PostgreSQL.

Nothing here is part of every cluster.
"""
