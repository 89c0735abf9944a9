"""What the policies minimize: a cost of a node or a set of cards for each policy that needs more than a comparison.

A module belongs here if a row of `policies` names its function.
"""
