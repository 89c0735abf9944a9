"""Placement: which node and which cards a pod gets. Pure functions of a snapshot."""
