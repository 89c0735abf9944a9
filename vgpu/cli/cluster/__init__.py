"""The commands that ask the cluster, through the admin REST.

`endpoint` finds the server and the credentials: `--server`, the environment, or a kubeconfig, whose API server passes
requests on to the Service `vgpu-admin`. `rest` sends requests. Each command has a module that makes text of JSON:
`tables` says which columns a list has, `output` writes tables and the other formats.
"""
