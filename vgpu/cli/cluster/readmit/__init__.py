"""`vgpu readmit`: pods that the webhook has not admitted are made again, and no pod is lost on the way."""
