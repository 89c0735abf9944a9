"""Changes that make a valid pod hostile: a table of functions, each with its weight."""

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.hostile_pods import values
from tests.hostile_pods.case import Document, Draft
from tests.hostile_pods.valid import container
from vgpu.domain import names

SIZES: Final = (1, 10, 100, 100, 1000, 20_000)


class Mutation(NamedTuple):
    """One change; `weight` is how often it is chosen in comparison with the others."""

    name: str
    weight: int
    change: Callable[[random.Random, Draft], None]


def _any_container(chance: random.Random, draft: Draft) -> Document:
    return chance.choice([*draft.containers, *draft.spec.get("initContainers", [])])


def _resources(chance: random.Random, draft: Draft) -> Document:
    resources: Document = _any_container(chance, draft).setdefault("resources", {})
    found: Document = resources.setdefault(chance.choice(("limits", "limits", "requests")), {})
    return found


def _annotations(draft: Draft) -> Document:
    found: Document = draft.metadata.setdefault("annotations", {})
    return found


def amount(chance: random.Random, draft: Draft) -> None:
    """Replace an amount, or add one."""
    asked = _resources(chance, draft)
    name = chance.choice([*asked, chance.choice(values.RESOURCES)])
    asked[name] = chance.choice((*values.AMOUNTS, 0, 1, -1, 1.5, 10**30))


def resource_name(chance: random.Random, draft: Draft) -> None:
    """Add a resource of this or another product, with a small amount that is often valid."""
    _resources(chance, draft)[chance.choice(values.RESOURCES)] = chance.choice(("0", "1", "1", "256"))


def kubelet_resource(chance: random.Random, draft: Draft) -> None:
    """Ask for slices or cards as only the webhook may."""
    asked = _resources(chance, draft)
    asked[chance.choice(names.KUBELET_RESOURCES)] = chance.choice(("1", "4", "320", "1280"))
    if chance.random() < 0.5:
        asked[chance.choice(names.USER_RESOURCES)] = "0"


def annotation(chance: random.Random, draft: Draft) -> None:
    value = chance.choice((*values.ANNOTATION_VALUES, values.text(chance), values.nested_assignment(chance)))
    _annotations(draft)[chance.choice(values.ANNOTATIONS)] = value


def many_words(chance: random.Random, draft: Draft) -> None:
    """Write a list of up to 250,000 bytes into an annotation that the placement reads."""
    name = chance.choice((names.USE_GPU_MODEL, names.AVOID_GPU_MODEL, names.USE_GPU_UUID, names.AVOID_GPU_UUID))
    count = chance.choice((10, 1000, 25_000))
    _annotations(draft)[name] = ",".join(f"w{n}" for n in range(count))


def many_annotations(chance: random.Random, draft: Draft) -> None:
    count = min(chance.choice(SIZES), 10_000)
    _annotations(draft).update({f"example.com/a{n}": "x" for n in range(count)})


def many_labels(chance: random.Random, draft: Draft) -> None:
    draft.metadata["labels"] = {f"example.com/l{n}": "x" for n in range(chance.choice(SIZES))}


def many_containers(chance: random.Random, draft: Draft) -> None:
    """Add up to 6,000 containers, all with a share, some or none; the pod is parked, or a kubelet would start them."""
    count = chance.choice((2, 5, 32, 33, 33, 100, 100, 300, 600, 6000))
    asks: Document = chance.choice(({}, {names.GPU_MEM: "256"}, {names.GPU_MEM: "1", names.GPU_CORES: "1"}))
    draft.containers.extend(container(f"c{n}", asks) for n in range(count))
    if count > 5:
        park(chance, draft)


def many_variables(chance: random.Random, draft: Draft) -> None:
    count = chance.choice(SIZES)
    _any_container(chance, draft)["env"] = [{"name": f"V{n}", "value": "x"} for n in range(count)]


def many_volumes(chance: random.Random, draft: Draft) -> None:
    count = chance.choice((1, 10, 100, 5000))
    draft.spec["volumes"] = [{"name": f"v{n}", "emptyDir": {}} for n in range(count)]
    if count > 10:
        park(chance, draft)


def big(chance: random.Random, draft: Draft) -> None:
    """Make the pod up to 3 MiB large."""
    size = chance.choice((100_000, 1_000_000, 1_400_000, 2_900_000, 3_200_000))
    _any_container(chance, draft)["env"] = [{"name": "BIG", "value": "x" * size}]
    park(chance, draft)


def deep_fields(chance: random.Random, draft: Draft) -> None:
    """Write nested managedFields, which the API server stores without looking at the objects in them."""
    entry = {
        "manager": "m",
        "operation": chance.choice(("Apply", "Update")),
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
    }
    draft.metadata["managedFields"] = [entry | {"fieldsV1": draft.put_raw(values.deep(chance))}]


def deep_annotation(chance: random.Random, draft: Draft) -> None:
    _annotations(draft)[chance.choice(values.ANNOTATIONS)] = values.deep(chance)[:200_000]


def deep_claims(chance: random.Random, draft: Draft) -> None:
    """Put nested JSON where the API has a list or an object of a fixed shape."""
    nested = draft.put_raw(values.deep(chance))
    place = chance.choice(("claims", "limits", "env", "affinity", "volumes", "unknown"))
    target = _any_container(chance, draft)
    if place in {"claims", "limits"}:
        target.setdefault("resources", {})[place] = nested
    elif place == "env":
        target["env"] = [{"name": "A", "valueFrom": nested}]
    else:
        draft.spec[place] = nested


def foreign_text(chance: random.Random, draft: Draft) -> None:
    """Write a foreign text into a place that takes text."""
    text = values.text(chance)
    target = _any_container(chance, draft)
    match chance.randrange(7):
        case 0:
            target["name"] = text
        case 1:
            target["env"] = [{"name": chance.choice((text, "A")), "value": text}]
        case 2:
            draft.metadata.setdefault("labels", {})[chance.choice((text, "a"))] = text
        case 3:
            _annotations(draft)[text] = text
        case 4:
            draft.spec["schedulerName"] = text
        case 5:
            draft.spec["nodeSelector"] = {"a": text}
        case _:
            _resources(chance, draft)[text] = "1"


def twins(chance: random.Random, draft: Draft) -> None:
    """Write a key twice in one JSON object, or two names that differ in their normalization form only."""
    asks = {names.GPU_MEM: "256"}
    if chance.random() < 0.5:
        draft.containers.append(container(draft.containers[0]["name"], asks))
        return
    first, second = (f'{{"{names.GPU_MEM}":"{n}"}}' for n in ("256", "0"))
    draft.containers[0]["resources"] = draft.put_raw(f'{{"limits":{first},"limits":{second}}}')


def scheduler(chance: random.Random, draft: Draft) -> None:
    draft.spec["schedulerName"] = chance.choice(values.SCHEDULERS)


def node_name(chance: random.Random, draft: Draft) -> None:
    draft.spec["nodeName"] = chance.choice(("127.0.0.2", "127.0.0.3", "nobody", "", "127.0.0.2 "))


def visible_devices(chance: random.Random, draft: Draft) -> None:
    value = chance.choice(values.VISIBLE)
    variable = chance.choice(
        ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "CUDA_VISIBLE_DEVICES")
    )
    _any_container(chance, draft).setdefault("env", []).append({"name": variable, "value": value})


def visible_devices_indirectly(chance: random.Random, draft: Draft) -> None:
    """Set the variable from the pod's own annotation, from a ConfigMap, or by the expansion of another variable."""
    target = _any_container(chance, draft)
    _annotations(draft)["example.com/cards"] = "all"
    reference = {"fieldRef": {"fieldPath": "metadata.annotations['example.com/cards']"}}
    match chance.randrange(3):
        case 0:
            target["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": reference}]
        case 1:
            target["env"] = [{"name": "A", "value": "all"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "$(A)"}]
        case _:
            target["envFrom"] = [
                {"prefix": chance.choice(("", "NVIDIA_")), "configMapRef": {"name": "devices", "optional": True}}
            ]


def mount_over(chance: random.Random, draft: Draft) -> None:
    """Mount a volume over a path of the limiter."""
    kind: Document = chance.choice(
        ({"emptyDir": {}}, {"hostPath": {"path": "/dev"}}, {"configMap": {"name": "devices", "optional": True}})
    )
    draft.spec.setdefault("volumes", []).append({"name": "over", **kind})
    mount = {"name": "over", "mountPath": chance.choice(values.PATHS)}
    if chance.random() < 0.2:
        mount["subPath"] = chance.choice(("limits", "../x", "a/b"))
    _any_container(chance, draft).setdefault("volumeMounts", []).append(mount)


def privileges(chance: random.Random, draft: Draft) -> None:
    draft.spec.update(chance.choice(({"hostPID": True}, {"hostIPC": True}, {"shareProcessNamespace": True})))
    _any_container(chance, draft)["securityContext"] = chance.choice(({"runAsUser": 65534}, {"privileged": True}))


def priority(chance: random.Random, draft: Draft) -> None:
    draft.spec["priorityClassName"] = chance.choice(("system-node-critical", "nobody", ""))
    if chance.random() < 0.5:
        draft.spec["priority"] = chance.choice((0, 2_000_000_000, -(2**31)))


def pod_resources(chance: random.Random, draft: Draft) -> None:
    """Ask on the level of the pod, or as overhead, where a reader of containers sees nothing."""
    name = chance.choice(values.RESOURCES)
    place = chance.choice(("resources", "overhead"))
    draft.spec[place] = {"limits": {name: "1"}} if place == "resources" else {name: "1"}


def gates(chance: random.Random, draft: Draft) -> None:
    draft.spec["schedulingGates"] = [{"name": chance.choice(("example.com/gate", values.text(chance)))}]


def restart(chance: random.Random, draft: Draft) -> None:
    """Let the container end at once, or never start."""
    draft.spec["restartPolicy"] = chance.choice(("Never", "Always", "OnFailure"))
    draft.containers[0]["command"] = chance.choice((["/none"], ["true"], ["/pause"]))


def affinity(chance: random.Random, draft: Draft) -> None:
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": chance.choice(("kubernetes.io/hostname", "x"))}
    count = chance.choice((1, 50, 1000))
    draft.spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * count}}


def wrong_type(chance: random.Random, draft: Draft) -> None:
    """Put a value of another JSON type into a field."""
    value = chance.choice((None, 0, True, "", [], {}, [None], {"a": None}, 1e308, -0.0))
    holder = chance.choice((draft.manifest, draft.metadata, draft.spec, draft.containers[0]))
    key = chance.choice(
        [key for key in holder if key not in {"apiVersion", "kind", "metadata", "spec", "containers"}] or ["x"]
    )
    holder[key] = value


def park(_: random.Random, draft: Draft) -> None:
    """Keep a pod waiting: no card has the UUID, and no node the label, so no kubelet starts its containers."""
    draft.metadata.setdefault("annotations", {})[names.USE_GPU_UUID] = "GPU-none"
    draft.spec["nodeSelector"] = {"no-such": "node"} if not _has_share(draft) else {}


def _has_share(draft: Draft) -> bool:
    return any(names.GPU_MEM in document.get("resources", {}).get("limits", {}) for document in draft.containers)


MUTATIONS: Final = tuple(
    Mutation(change.__name__.replace("_", "-"), weight, change)
    for weight, change in (
        (12, amount),
        (8, resource_name),
        (6, kubelet_resource),
        (8, annotation),
        (2, many_words),
        (1, many_annotations),
        (1, many_labels),
        (4, many_containers),
        (1, many_variables),
        (1, many_volumes),
        (2, big),
        (4, deep_fields),
        (2, deep_annotation),
        (3, deep_claims),
        (6, foreign_text),
        (3, twins),
        (4, scheduler),
        (3, node_name),
        (4, visible_devices),
        (3, visible_devices_indirectly),
        (6, mount_over),
        (2, privileges),
        (2, priority),
        (2, pod_resources),
        (2, gates),
        (3, restart),
        (1, affinity),
        (4, wrong_type),
    )
)

# After one of these the pod no longer has the shape that the other mutations expect.
BREAKING: Final = {"deep-claims", "twins", "wrong-type"}
