"""Parts of Kubernetes objects: one module for each group of fields that `objects` reads.

A module belongs here if it turns JSON of an object into values, without knowing any other object.
"""
