"""Everything that speaks to the API server: requests, list-and-watch, Leases and Events.

JSON goes in and comes out as it is; the official client carries the connection, the credentials and their renewal.
"""
