"""What the Service of the admin REST leads to, where the extender is a process and no pod.

The API server proxies to addresses of pods only: it reads the pod that the Endpoints name, and compares the address
with the one in the pod's status. So there is a pod object with the extender's address, which no scheduler looks at.
"""

from cluster import api

NAME = "vgpu-admin"
ADDRESS = "192.0.2.1"  # the API server proxies to no loopback address
PORT = 9871


def install(client: api.ClusterApi, namespace: str) -> None:
    """Create the pod, and the Endpoints that name the pod."""
    pods, containers = f"/api/v1/namespaces/{namespace}/pods", [{"name": "extender", "image": "none"}]
    spec = {"schedulerName": "none", "containers": containers}
    uid = client.create(pods, {"metadata": {"name": NAME}, "spec": spec})["metadata"]["uid"]
    client.patch(f"{pods}/{NAME}/status", {"status": {"podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}]}})
    target = {"kind": "Pod", "namespace": namespace, "name": NAME, "uid": uid}
    subset = {
        "addresses": [{"ip": ADDRESS, "targetRef": target}],
        "ports": [{"name": "admin", "port": PORT, "protocol": "TCP"}],
    }
    client.create(f"/api/v1/namespaces/{namespace}/endpoints", {"metadata": {"name": NAME}, "subsets": [subset]})
