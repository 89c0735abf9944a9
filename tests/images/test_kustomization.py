"""The component of a build names the images that were built."""

import yaml

from images import kustomization

TAG = "0.2.0-dev.20261130010640.g1a2b3c4d5e6f"


def test_a_component_names_tags_or_digests() -> None:
    found = yaml.safe_load(kustomization.component(TAG, {"webhook": "sha256:abc"}))
    assert found["images"] == [
        {"name": "vgpushare-extender", "newTag": TAG},
        {"name": "vgpushare-webhook", "digest": "sha256:abc"},
        {"name": "vgpushare-deviceplugin", "newTag": TAG},
    ]
    assert found["labels"] == [{"pairs": {"app.kubernetes.io/version": TAG}}]
