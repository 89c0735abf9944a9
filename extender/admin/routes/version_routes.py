"""`/versions`: which version each part runs, to find those that an upgrade has left behind."""

from typing import Annotated

from fastapi import APIRouter, Query

import vgpu
from extender.admin.answers import schemas
from extender.admin.answers.queries import NoQuery
from extender.admin.routes import installed_pods
from extender.admin.routes.context import Called, Using
from extender.admin.security import visibility

router = APIRouter(tags=["inventory"])


@router.get("/versions", response_model=schemas.VersionsSchema)
async def versions(
    context: Using, caller: Called, query: Annotated[NoQuery, Query()]  # noqa: ARG001
) -> schemas.VersionsSchema:  # fmt: skip
    """Show the version of each part that runs. Needs the right to list gpunodes."""
    await visibility.require_cards(context.access, caller)
    snapshot = await context.snapshot()
    of_nodes: dict[str, list[str]] = {}
    for name, gpunode in sorted(snapshot.gpunodes.items()):
        if version := gpunode.node.plugin_version:
            of_nodes.setdefault(version, []).append(name)
    images = await context.installed.images()
    return schemas.VersionsSchema(
        admin=vgpu.__version__,
        extender=context.extender_version,
        devicePlugins=[
            schemas.PluginVersionSchema(version=version, nodes=nodes) for version, nodes in sorted(of_nodes.items())
        ],
        images=[
            schemas.ImageVersionSchema(container=name, image=image, tag=installed_pods.tag(image), pods=number)
            for (name, image), number in sorted(images.items())
        ],
        staleSince=snapshot.stale_since,
    )
