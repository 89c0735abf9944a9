"""What pods ask for: resources, annotations, gangs and the names of other products.

A module belongs here if it reads or translates what a user wrote in a manifest.
"""
