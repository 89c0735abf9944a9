"""The schemas of answers that are no rows of `listed`, with examples, for the OpenAPI document."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from extender.admin.answers.kept_room import KeptRoomSchema
from extender.admin.answers.listed import figures
from extender.admin.answers.listed.columns import AnswerSchema
from extender.admin.answers.listed.grants import GrantSchema
from extender.admin.answers.listed.pages import AnswerStaleSince
from extender.admin.answers.listed.pods import PodSchema
from extender.admin.answers.listed.right_sizes import RightSizeItemSchema
from extender.admin.answers.listed.usage import UsageItemSchema
from extender.admin.answers.listed.waits import DecisionSchema, NearestSchema, ReasonCountSchema
from vgpu.domain import object_names
from vgpu.domain.identifiers import (
    CardUuid,
    Namespace,
    NodeName,
)
from vgpu.placement.simulation import simulate

HistoryStoredSince = Annotated[
    str,
    Field(
        description="when the history began, where that is later than the beginning of the period: nothing earlier is "
        "counted. Empty where the history is older. Replicas that share no database have histories of their own",
        examples=["2026-11-20T08:15:00+00:00"],
    ),
]
# As AnswerStaleSince, for answers of the history.
HistoryStaleSince = Annotated[
    str,
    Field(
        description="until when the history is stored, where that is not the end of the period: nothing later is "
        "in the answer; empty: everything is stored",
        examples=[""],
    ),
]


class FieldErrorSchema(AnswerSchema):
    """One field that is wrong."""

    field: str = Field(description="path of the field", examples=["pods[0].pod.spec"])
    detail: str = Field(description="what is wrong, and what to write instead")


class ProblemSchema(AnswerSchema):
    """An error, as RFC 9457 has it."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(description="the HTTP status in words", examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(
        description="what happened", examples=["pod default/train does not exist, or you may not see it"]
    )
    instance: str = Field(description="path of the request", examples=["/api/v1/pods/default/train"])
    errors: list[FieldErrorSchema] = Field([], description="the fields that are wrong")


class AdviceSchema(AnswerSchema):
    """A change after which the pod would be placed: one with a node was tried, one without is needed in any case."""

    code: str = Field(examples=["ask-for-less-memory"])
    text: str = Field(examples=["ask for 5.5 GiB or less (vgpu.io/gpu-mem: 5632)"])
    node: NodeName = Field(description="where the pod would be placed then", examples=["node-2"])
    gpus: list[CardUuid] = Field(description="UUIDs of the cards to change")
    by: str = Field(description="owner or administrator", examples=["owner"])


class CardVerdictSchema(AnswerSchema):
    """A card, and why the pod cannot use it."""

    uuid: CardUuid = Field(examples=[figures.UUID])
    index: int
    model: str
    memoryMiB: int
    freeMiB: int
    freeCores: int
    reason: str = Field(examples=["CardInsufficientMemory"])
    detail: str = Field(examples=["not enough memory is free"])


class NodeVerdictSchema(AnswerSchema):
    """A node: what the pod would get there, or why it gets nothing."""

    node: NodeName
    fits: bool
    reason: str
    detail: str
    gpus: list[GrantSchema]
    cards: list[CardVerdictSchema]


class ExplanationSchema(AnswerSchema):
    """Why a pod waits, or where it is."""

    pod: PodSchema
    message: str = Field(description="the explanation in one sentence")
    fits: bool
    nodesThatFit: int
    waitsSince: str = Field(description="empty where the pod does not wait", examples=["2026-11-22T11:40:00+00:00"])
    lastDecision: DecisionSchema | None
    reasons: list[ReasonCountSchema]
    nearest: NearestSchema | None
    advice: list[AdviceSchema]
    nodes: list[NodeVerdictSchema]
    nodesLeftOut: int = Field(description="nodes that the answer does not show")
    staleSince: AnswerStaleSince = ""


MAX_SIMULATED: Final = simulate.MAX_IN_REQUEST

POD_SCHEMA: Final[JsonDict] = {
    "type": "object",
    "properties": {
        "metadata": {
            "type": "object",
            "properties": {
                "namespace": {"type": "string", "pattern": object_names.LABEL},
                "name": {"type": "string", "pattern": object_names.SUBDOMAIN},
            },
        }
    },
}


class SimulatedEntrySchema(BaseModel):
    """A pod's manifest, and how many of it."""

    model_config = ConfigDict(extra="forbid")

    pod: Any = Field(  # what is no object is wrong in this entry only
        description="a Pod, as for kubectl apply",
        json_schema_extra=POD_SCHEMA,
        examples=[
            {
                "metadata": {"name": "train", "namespace": "default"},
                "spec": {
                    "containers": [{"name": "main", "resources": {"limits": {"vgpu.io/gpu-mem": 8192}}}],
                },
            }
        ],
    )
    count: Any = Field(  # what is no such number is wrong in this entry only
        1,
        description="how many pods of this manifest",
        json_schema_extra={"type": "integer", "minimum": 1, "maximum": MAX_SIMULATED},
    )


class SimulateBodySchema(BaseModel):
    """The pods to place, in their order."""

    model_config = ConfigDict(extra="forbid")

    pods: list[SimulatedEntrySchema] = Field(min_length=1, max_length=MAX_SIMULATED)


class GangLandingSchema(AnswerSchema):
    """A pod's gang in a simulation: its pods are placed together, or none of them is."""

    name: str = Field(examples=["train"])
    size: int = Field(description="how many pods start together", examples=[8])
    fit: int = Field(description="for how many of them there is room", examples=[5])


class LandingSchema(AnswerSchema):
    """Where a pod would be placed; without a node, why nowhere."""

    namespace: Namespace = Field(examples=["default"])
    name: str = Field(examples=["train"])
    number: int = Field(description="which of equal pods, from 1", examples=[1])
    requested: str = Field(examples=["8 GiB"])
    node: NodeName = Field(examples=["node-1"])
    gpus: list[GrantSchema]
    reasons: list[ReasonCountSchema]
    nearest: NearestSchema | None
    gang: GangLandingSchema | None = Field(description="null for a pod that starts by itself")
    advice: list[AdviceSchema] = Field(description="what would help, beside all pods of the simulation")
    problems: list[str] = Field(description="what is wrong in the manifest; such a pod is placed nowhere")


class PackedSchema(AnswerSchema):
    """How well the cards are packed that take new shares: cards that are closed, or of closed nodes, do not count."""

    gpus: int = Field(description="cards that take new shares", examples=[24])
    emptyGpus: int = Field(description="cards of which nothing is taken", examples=[9])
    allocatedPercent: float = Field(
        description="of these cards, by memory or time, whichever is more",
        examples=[62.5],
    )
    fragmentedPercent: float | None = Field(
        description="of what is free, what the pods seen so far cannot use; null: no pod was seen", examples=[8.3]
    )


class SimulationSchema(AnswerSchema):
    """The outcome of a simulation."""

    placed: int = Field(examples=[3])
    notPlaced: int = Field(examples=[1])
    before: PackedSchema
    after: PackedSchema
    pods: list[LandingSchema]
    keptForGang: KeptRoomSchema | None = Field(
        None, description="room that is kept free for a gang; null where there is none"
    )
    staleSince: AnswerStaleSince = ""


class SummaryPodsSchema(AnswerSchema):
    """Numbers of pods that the caller may see, by status."""

    Pending: int = Field(0, examples=[1])
    Starting: int = Field(0)
    Running: int = Field(0, examples=[5])
    Terminating: int = Field(0)
    Ended: int = Field(0)


class FindingSchema(AnswerSchema):
    """Something that an administrator should look at."""

    severity: str = Field(description="error or warning", examples=["warning"])
    about: str = Field(examples=["node-2"])
    reason: str = Field(examples=["PluginAway"])
    detail: str = Field(examples=["the node's device plugin is not running"])
    since: str = Field("", description="empty: not known", examples=["2026-11-22T12:00:00+00:00"])


class SummarySchema(AnswerSchema):
    """The cluster in a few numbers."""

    version: str = Field(examples=["0.1.0"])
    nodes: int = Field(examples=[3])
    usableNodes: int = Field(examples=[3])
    gpus: int = Field(examples=[24])
    healthyGpus: int = Field(examples=[24])
    cordonedGpus: int = Field(examples=[0])
    memoryMiB: int
    allocatedMiB: int
    freeMiB: int = Field(description="on cards that can be used")
    allocatedCores: int = Field(description="percent of one card's time, added up over all cards", examples=[80])
    freeCores: int = Field(description="the same, on cards that can be used", examples=[720])
    pods: SummaryPodsSchema
    scheduler: str = Field(description="why no replica binds pods; empty where one does")
    findings: list[FindingSchema]
    staleSince: AnswerStaleSince = ""


class PluginVersionSchema(AnswerSchema):
    """A version of the device plugin, and the nodes that report it."""

    version: str = Field(examples=["0.2.0"])
    nodes: list[str] = Field(examples=[["node-1", "node-2"]])


class ImageVersionSchema(AnswerSchema):
    """An image that pods of the scheduler or of the webhook run."""

    container: str = Field(examples=["webhook"])
    image: str = Field(examples=["registry.example.com/vgpushare-webhook:0.2.0"])
    tag: str = Field(description="the tag or the digest of the image; empty: it has neither", examples=["0.2.0"])
    pods: int = Field(description="how many pods", examples=[2])


class VersionsSchema(AnswerSchema):
    """The version of each part."""

    admin: str = Field(description="of the process that answers", examples=["0.2.0"])
    extender: str = Field(description="of the extender that started it", examples=["0.2.0"])
    devicePlugins: list[PluginVersionSchema]
    images: list[ImageVersionSchema] = Field(description="empty where the parts run in no pods")
    staleSince: AnswerStaleSince = ""


class UsageSchema(AnswerSchema):
    """Usage in a period."""

    since: str = Field(examples=["2026-11-15T00:00:00.000Z"])
    until: str = Field(examples=["2026-11-22T00:00:00.000Z"])
    items: list[UsageItemSchema]
    itemsLeftOut: int
    currency: str = Field("", description="of the costs, as the file of prices names it", examples=["EUR"])
    storedSince: HistoryStoredSince = ""
    staleSince: HistoryStaleSince = ""


class RightSizesSchema(AnswerSchema):
    """What containers used beside what they asked for."""

    since: str = Field(examples=["2026-11-15T00:00:00.000Z"])
    until: str = Field(examples=["2026-11-22T00:00:00.000Z"])
    items: list[RightSizeItemSchema]
    itemsLeftOut: int
    complete: bool = Field(description="false: only the latest 50,000 container-hours count; ask for a part of it")
    storedSince: HistoryStoredSince = ""
    staleSince: HistoryStaleSince = ""


class HistoryItemSchema(AnswerSchema):
    """One event."""

    id: int = Field(examples=[4711])
    time: str = Field(examples=["2026-11-22T12:00:00.000Z"])
    kind: str = Field(examples=["decision"])
    namespace: Namespace = Field(examples=["default"])
    event: dict[str, Any] = Field(description="fields by kind", examples=[{"node": "node-1"}])


class HistorySchema(AnswerSchema):
    """A page of events, the latest first."""

    items: list[HistoryItemSchema]
    nextCursor: str = Field(description="empty on the last page")
    storedSince: HistoryStoredSince = ""
    staleSince: HistoryStaleSince = ""
