"""The kubelet's checkpoint of the devices that it has given to containers."""

import json
from collections import defaultdict

from cluster import nodes


def assert_no_slice_twice(node: nodes.ClusterNode) -> None:
    """No device ID belongs to two pods. The checkpoint is the kubelet's own file, which only a test may read."""
    checkpoint = json.loads((node.work / "lib/kubelet/device-plugins/kubelet_internal_checkpoint").read_text())
    holders: dict[str, set[str]] = defaultdict(set)
    for entry in checkpoint["Data"]["PodDeviceEntries"] or []:
        for ids in entry["DeviceIDs"].values():
            for device_id in ids:
                holders[device_id].add(entry["PodUID"])
    assert not {device_id: uids for device_id, uids in holders.items() if len(uids) > 1}
