"""How long GPU pods wait after a fault of each part, on a real cluster, against an objective for each fault."""
