"""Configuration of one node's containerd and kubelet."""

import json
from pathlib import Path
from typing import Any

from cluster import images

CNI_FOLDER = "cni"

_CONTAINERD = """version = 2
root = "{work}/containerd/root"
state = "{work}/containerd/state"
[grpc]
  address = "{work}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{work}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "{address}"
  restrict_oom_score_adj = true # the machine may lack CAP_SYS_RESOURCE
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    BinaryName = "{runtime}"
"""
# Pods have a loopback interface only. This script stands for both network plugins that containerd calls.
_CNI_PLUGIN = """#!/bin/sh
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.3.1", "0.4.0"]}' ;;
ADD)
  nsenter --net="$CNI_NETNS" ip link set lo up
  echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "'"$CNI_IFNAME"'", "sandbox": "'"$CNI_NETNS"'"}],
         "ips": [{"version": "4", "interface": 0, "address": "127.0.0.1/8"}]}'
  ;;
esac
"""


def write_cni(folder: Path) -> None:
    """Write the pod network that all nodes share."""
    folder.mkdir()
    for name in ("loopback", "only-loopback"):
        (folder / name).write_text(_CNI_PLUGIN)
        (folder / name).chmod(0o755)
    network = {"cniVersion": "0.4.0", "name": "lo", "plugins": [{"type": "only-loopback"}]}
    (folder / "10-lo.conflist").write_text(json.dumps(network))


def containerd(work: Path, address: str, runtime: Path) -> str:
    """Text of containerd's configuration; `runtime` is called in place of runc."""
    cni = work.parent / CNI_FOLDER
    return _CONTAINERD.format(work=work, address=address, pause=images.PAUSE, cni=cni, runtime=runtime)


def kubelet(work: Path, address: str, cgroup: str, status_period: str) -> dict[str, Any]:
    """A KubeletConfiguration; `status_period` is how often it publishes its node's status."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "healthzBindAddress": address,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{work}/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "enforceNodeAllocatable": ["pods"],
        "failSwapOn": False,
        "failCgroupV1": False,
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "resolvConf": "",
        "clusterDNS": ["10.0.0.10"],  # no DNS server: without an address every pod gets a Warning
        "maxPods": 250,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "nodeStatusUpdateFrequency": status_period,
        "syncFrequency": "5s",
    }
