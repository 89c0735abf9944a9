"""Why pods wait, in the rows of waiting pods and in explanations."""

from pydantic import Field

from extender.admin.answers.listed.columns import AnswerSchema
from extender.admin.answers.listed.figures import UUID
from vgpu.domain.identifiers import CardUuid, NodeName


class ReasonCountSchema(AnswerSchema):
    """How many nodes refuse by one reason."""

    reason: str = Field(examples=["CardInsufficientMemory"])
    text: str = Field(examples=["no card has the GPU memory free"])
    nodes: int = Field(examples=[3])


class CardNameSchema(AnswerSchema):
    """A card, by UUID and index."""

    uuid: CardUuid = Field(examples=[UUID])
    index: int = Field(examples=[0])


class NearestSchema(AnswerSchema):
    """The node that lacks the least for a pod."""

    node: NodeName = Field(examples=["node-2"])
    gpus: list[CardNameSchema]
    lackingMiB: int = Field(examples=[2560])
    lackingCores: int = Field(examples=[0])
    detail: str = Field(examples=["card 1 lacks 2.5 GiB of memory (5.5 GiB free, 8 GiB asked for)"])
    wouldHelp: list[str] = Field(
        [], description="pods that the caller may see whose end would make room", examples=[["default/notebook"]]
    )


class DecisionSchema(AnswerSchema):
    """What filter last answered about a pod that no node could take."""

    time: str = Field(examples=["2026-11-22T12:00:00+00:00"])
    attempts: int = Field(description="answers since the extender's start", examples=[12])
    reasons: list[ReasonCountSchema]
