"""A kubeconfig for an API server of a test."""

import json
from pathlib import Path


def write(folder: Path, url: str) -> Path:
    """Write a kubeconfig for a server into a folder; return its path."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path
