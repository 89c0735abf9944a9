"""Pages of rows, as the OpenAPI document has them."""

from typing import Annotated

from pydantic import Field

from extender.admin.answers.listed.columns import AnswerSchema
from extender.admin.answers.listed.gpus import GpuSchema
from extender.admin.answers.listed.nodes import NodeSchema
from extender.admin.answers.listed.pending import PendingPodSchema
from extender.admin.answers.listed.placed_groups import PlacedGroupSchema
from extender.admin.answers.listed.pods import PodSchema

AnswerStaleSince = Annotated[
    str,
    Field(
        description="since when the extender has heard nothing of the cluster, so that the answer is old; empty: "
        "it is fresh",
        examples=[""],
    ),
]


class PageSchema(AnswerSchema):
    """A page of rows."""

    nextCursor: str = Field(description="empty on the last page")
    staleSince: AnswerStaleSince = ""


class NodeListSchema(PageSchema):
    """A page of nodes."""

    items: list[NodeSchema]


class GpuListSchema(PageSchema):
    """A page of cards."""

    items: list[GpuSchema]


class PodListSchema(PageSchema):
    """A page of pods."""

    items: list[PodSchema]


class GroupListSchema(PageSchema):
    """A page of groups in space."""

    items: list[PlacedGroupSchema]


class PendingListSchema(PageSchema):
    """A page of waiting pods."""

    items: list[PendingPodSchema]
