"""What the extender changes in the cluster beside Bindings: Events, evictions, and conditions of pods.

A module belongs here if it writes to the API server because something was decided elsewhere.
"""
