"""The software bill of materials of an image, in CycloneDX's JSON, with licences and hashes."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Final

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseAcknowledgement
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from packageurl import PackageURL

from images.debian import Package
from images.page_libraries import PageLibrary
from images.wheels import Distribution
from release.identity import BuildIdentity

LICENCE: Final = "Apache-2.0"  # of our own code
OWN: Final = "vgpushare"
_NAMESPACE: Final = uuid.UUID("6f0c0a5e-9f0c-5b7e-8d43-0d6f2c3a1b77")  # any: serial numbers follow from contents
_NOT_STATED: Final = "not stated"


class InvalidMaterials(Exception):
    """A bill of materials that does not follow CycloneDX's schema."""


def document(
    name: str,
    source: BuildIdentity,
    packages: Iterable[Package],
    licences: Mapping[str, str],
    distributions: Iterable[Distribution],
    libraries: Iterable[PageLibrary] = (),
) -> str:
    """Return the bill of materials of the image `name`.

    Args:
        name: of the image.
        source: of what it was built.
        packages: Debian's packages in it.
        licences: theirs, by their names.
        distributions: Python's packages in it.
        libraries: JavaScript libraries that the dashboard serves.
    """
    components = [
        *(_of_debian(package, licences) for package in packages),
        *map(_of_python, distributions),
        *map(_of_page, libraries),
    ]
    main = _component(PackageURL("oci", None, name, source.tag), LICENCE, kind=ComponentType.CONTAINER)
    bom = Bom(components=components)
    bom.metadata.component = main
    bom.metadata.timestamp = source.time
    content = "\n".join(sorted(str(component.purl) for component in components))
    bom.serial_number = uuid.uuid5(_NAMESPACE, f"{name} {source.version}\n{content}")
    bom.register_dependency(main, components)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def validate(text: str) -> None:
    """Raise InvalidMaterials where a text does not follow the schema."""
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415 - half a second, for releases only

    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise InvalidMaterials(str(error))


def _of_debian(package: Package, licences: Mapping[str, str]) -> Component:
    qualifiers = {"arch": package.architecture, "distro": "debian-12"}
    purl = PackageURL("deb", "debian", package.name, package.version, qualifiers)
    return _component(purl, licences.get(package.name, ""), package.sha256)


def _of_python(distribution: Distribution) -> Component:
    licence = distribution.licence or (LICENCE if distribution.name == OWN else "")
    return _component(PackageURL("pypi", None, distribution.name, distribution.version), licence, distribution.sha256)


def _of_page(library: PageLibrary) -> Component:
    purl = PackageURL("npm", None, library.name, library.version)
    return _component(purl, library.licence, library.sha256)


def _component(
    purl: PackageURL, licence: str, sha256: str = "", kind: ComponentType = ComponentType.LIBRARY
) -> Component:
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=sha256)] if sha256 else []
    stated = LicenseFactory().make_from_string(
        licence or _NOT_STATED, license_acknowledgement=LicenseAcknowledgement.DECLARED
    )
    return Component(
        name=purl.name, version=purl.version, purl=purl, type=kind, bom_ref=purl.to_string(), hashes=hashes,
        licenses=[stated],
    )  # fmt: skip
