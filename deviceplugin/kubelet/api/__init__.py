"""The kubelet's messages, generated from its protocol files; the services are spelled out in `deviceplugin.kubelet`.

Regenerate from the repository's root:

    python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. deviceplugin/kubelet/api/*.proto
"""
