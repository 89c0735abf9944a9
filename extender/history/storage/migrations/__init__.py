"""The database's revisions, one module each; a released one is never changed."""
