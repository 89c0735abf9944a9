"""The images: their names, users and commands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

USER: Final = "65532:65532"
PATH: Final = "PATH=/usr/local/bin:/usr/bin"

_ENVIRONMENT: Final = (
    PATH,
    "LANG=C.UTF-8",
    "PYTHONUNBUFFERED=1",
    "PYTHONDONTWRITEBYTECODE=1",
    "PYTHONSAFEPATH=1",  # modules of the working directory are not imported
)


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A part of vgpushare, run by `python -m NAME`."""

    name: str
    description: str
    user: str = USER
    requirements: str = "run.lock"  # in requirements/: the Python packages of the image

    @property
    def repository(self) -> str:
        """The image's name in the manifests, without a registry."""
        return f"vgpushare-{self.name}"

    def reference(self, tag: str) -> str:
        """Name and tag; container runtimes read the manifests' `vgpushare-NAME:TAG` so."""
        return f"docker.io/library/{self.repository}:{tag}"

    def settings(self, version: str, revision: str) -> Mapping[str, Any]:
        """Settings of the image's configuration; `revision` is the commit, or empty."""
        return {
            "Entrypoint": ["/usr/bin/python3.11", "-m", self.name],
            "Env": list(_ENVIRONMENT),
            "User": self.user,
            "WorkingDir": "/",
            "Labels": labels(self.repository, self.description, version, revision),
        }


_NOT_IN_IMAGES: Final = ("vgpu/simulator",)

PARTS: Final = (
    ImagePart("extender", "Scheduler extender of vgpushare, which runs beside kube-scheduler"),
    ImagePart("webhook", "Admission webhook of vgpushare"),
    ImagePart("deviceplugin", "Device plugin of vgpushare, which runs on every GPU node", "0:0", "node.lock"),
)


def left_out(part: ImagePart) -> tuple[str, ...]:
    """Return folders of our wheel that the image of a part does not need: the other parts, and the simulator."""
    return (*(other.name for other in PARTS if other is not part), *_NOT_IN_IMAGES)


def labels(title: str, description: str, version: str, revision: str) -> dict[str, str]:
    """Labels by the names of the OCI image specification."""
    found = {"title": title, "description": description, "version": version, "revision": revision}
    found["licenses"] = "Apache-2.0"
    return {f"org.opencontainers.image.{key}": value for key, value in found.items() if value}
