"""The administrators' page: static files that read the admin REST in the browser.

The page has no state of its own and no right that its user lacks: every number comes from `/api/v1`, asked with the
user's token (ADR 97). `files/main.js` chooses the view by the address, `files/api.js` speaks to the REST, and each view
is a file of its own.
"""
