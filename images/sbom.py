"""The software bill of materials of an image, in CycloneDX's JSON."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from images.debian import Package

_NAMESPACE: Final = uuid.UUID("6f0c0a5e-9f0c-5b7e-8d43-0d6f2c3a1b77")  # any: serial numbers follow from contents


def document(
    name: str, version: str, packages: Iterable[Package], distributions: Mapping[str, str], created: datetime
) -> str:
    """Return the bill of materials of `name`: Debian packages, and Python distributions with their versions."""
    components = [*map(_of_debian, packages), *(_of_python(*distribution) for distribution in distributions.items())]
    main = Component(name=name, version=version, type=ComponentType.APPLICATION, bom_ref=f"{name}@{version}")
    bom = Bom(components=components)
    bom.metadata.component = main
    bom.metadata.timestamp = created
    content = "\n".join(sorted(str(component.purl) for component in components))
    bom.serial_number = uuid.uuid5(_NAMESPACE, f"{name} {version}\n{content}")
    bom.register_dependency(main, components)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _of_debian(package: Package) -> Component:
    qualifiers = {"arch": package.architecture, "distro": "debian-12"}
    return _component(PackageURL("deb", "debian", package.name, package.version, qualifiers))


def _of_python(name: str, version: str) -> Component:
    return _component(PackageURL("pypi", None, name, version))


def _component(purl: PackageURL) -> Component:
    return Component(
        name=purl.name, version=purl.version, purl=purl, type=ComponentType.LIBRARY, bom_ref=purl.to_string()
    )
