"""Everything that speaks to the API server: requests, list-and-watch, Leases and Events.

Requests and answers are plain JSON. The official client handles the connection, the credentials and their renewal.
"""
