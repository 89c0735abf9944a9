"""`vgpu`, also installed as `kubectl-vgpu`: the commands that people type."""
