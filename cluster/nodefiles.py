"""Configuration of one node's containerd and kubelet."""

import json
from pathlib import Path
from typing import Any

from cluster import images
from cluster.programs.containerd import ContainerdMajor

CNI_FOLDER = "cni"

_CONTAINERD = """version = {version}
root = "{work}/containerd/root"
state = "{work}/containerd/state"
[grpc]
  address = "{work}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{work}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "{address}"
{own}  restrict_oom_score_adj = true # the machine may lack CAP_SYS_RESOURCE
  disable_apparmor = true
  [plugins."{cri}".cni]
    {programs}
    conf_dir = "{cni}"
  [plugins."{cri}".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."{cri}".containerd.runtimes.runc.options]
    BinaryName = "{runtime}"
"""
_OWN_OF_1 = """  sandbox_image = "{pause}"
"""
# Without /etc/cdi: nodes share the machine's /etc, while each has a /var/run of its own.
_OWN_OF_2 = """[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  enable_cdi = true
  cdi_spec_dirs = ["/var/run/cdi"]
"""
# A loopback interface. This script stands for both network plugins that containerd calls, where pods have no other one.
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


# Pods of all nodes on one bridge in the cluster's network. Their number gives the address and the interface's name.
_CNI_BRIDGE = """#!/bin/sh
set -e
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.3.1", "0.4.0"]}' ;;
ADD)
  exec 9> "$0.lock"
  flock 9
  number=$(($(cat "$0.number" 2> /dev/null || echo 0) + 1))
  echo $number > "$0.number"
  if [ $number = 1 ]; then
    ip link add pods type bridge
    ip addr add 10.1.255.254/16 dev pods
    ip link set pods up
  fi
  flock -u 9
  address=10.1.$((number / 250)).$((number % 250 + 1))
  ip link add pod$number type veth peer name "$CNI_IFNAME" netns "$CNI_NETNS"
  ip link set pod$number master pods up
  nsenter --net="$CNI_NETNS" sh -ec "ip link set lo up; ip addr add $address/16 dev $CNI_IFNAME
    ip link set $CNI_IFNAME up; ip route add default via 10.1.255.254"
  echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "'"$CNI_IFNAME"'", "sandbox": "'"$CNI_NETNS"'"}],
         "ips": [{"version": "4", "interface": 0, "address": "'$address'/16"}]}'
  ;;
esac
"""


def write_cni(folder: Path, *, bridge: bool = False) -> None:
    """Write the pod network that all nodes share: a loopback interface for each pod, or a bridge."""
    folder.mkdir()
    for name, script in (("loopback", _CNI_PLUGIN), ("pods", _CNI_BRIDGE if bridge else _CNI_PLUGIN)):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    network = {"cniVersion": "0.4.0", "name": "lo", "plugins": [{"type": "pods"}]}
    (folder / "10-lo.conflist").write_text(json.dumps(network))


def containerd(major: ContainerdMajor, work: Path, address: str, runtime: Path) -> str:
    """Text of containerd's configuration in the form that this version reads; `runtime` is called in place of runc."""
    cni = work.parent / CNI_FOLDER
    if major is ContainerdMajor.DEBIAN:
        version, own, cri, programs = 2, _OWN_OF_1, "io.containerd.grpc.v1.cri", f'bin_dir = "{cni}"'
    else:
        version, own, cri, programs = 3, _OWN_OF_2, "io.containerd.cri.v1.runtime", f'bin_dirs = ["{cni}"]'
    return _CONTAINERD.format(
        version=version, own=own.format(pause=images.PAUSE), cri=cri, programs=programs,
        work=work, address=address, cni=cni, runtime=runtime,
    )  # fmt: skip


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
