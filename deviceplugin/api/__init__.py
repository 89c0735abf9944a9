"""The kubelet's messages, generated from its protocol files; the services are spelled out in `deviceplugin.wire`.

Regenerate from the repository's root:

    python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. deviceplugin/api/*.proto
"""
