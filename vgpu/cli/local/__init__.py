"""The commands about this machine: `vgpu run`, `vgpu top` and `vgpu set`. They need no cluster."""
