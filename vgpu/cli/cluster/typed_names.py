"""Names of objects as users of kubectl type them, `pod train`, `pod/train`, `po/train`, and as `-o name` prints."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import typer

from vgpu.cli.cluster.options import ResourceKind
from vgpu.cli.failure import WRONG_USAGE, CommandFailed
from vgpu.domain import object_names
from vgpu.domain.problem import clipped

_SHORT: Final[Mapping[str, ResourceKind]] = {"po": ResourceKind.PODS, "no": ResourceKind.NODES}
_KINDS: Final[Mapping[str, ResourceKind]] = {**{str(kind): kind for kind in ResourceKind}, **_SHORT}
_UUIDS: Final = ("GPU-", "MIG-")  # beginnings
_POD: Final = "pods"


class KindAndName(NamedTuple):
    """What a user typed: a kind, and the name where it was joined to the kind, `pod/train`; otherwise empty."""

    kind: ResourceKind
    name: str = ""


def kind_and_name(text: str, shown: Sequence[str]) -> KindAndName:
    """Read `pods`, `po` or `pod/train`. Raises typer.BadParameter, which names the kinds that are shown in the help."""
    word, slash, name = text.partition("/")
    kind = _KINDS.get(word)
    if kind is None or (slash and not name):
        raise typer.BadParameter(f"{clipped(text)!r} is not one of {', '.join(shown)}, nor one of them with /NAME")
    return KindAndName(kind, text if slash else "")


def argument(metavar: str, about: str) -> Any:
    """Return the declaration of a command's argument that is a kind, or a kind with a name."""

    def kind(text: str) -> KindAndName:  # the help shows the function's name as the argument's type
        return kind_and_name(text, metavar.split("|"))

    return typer.Argument(metavar=metavar, help=about, parser=kind, autocompletion=completed_kinds)


def completed_kinds(begun: str) -> list[str]:
    """Return the kinds that a shell offers for a word that was begun."""
    return [str(kind) for kind in ResourceKind if kind.startswith(begun)]


def names_of(typed: KindAndName, names: Sequence[str]) -> list[str]:
    """Return all names that were typed, without their kind. Raises CommandFailed for one of another kind."""
    if typed.kind.plural == ResourceKind.GROUPS:  # NAMESPACE/NAME, and a namespace may have the name of a kind
        return [*([typed.name.partition("/")[2]] if typed.name else ()), *names]
    joined = [*([typed.name] if typed.name else ()), *names]
    if wrong := [name for name in joined if _kind_of(name) not in (None, _plural(typed.kind))]:
        raise CommandFailed(f"{clipped(wrong[0])}: is none of the {typed.kind.plural}; list one kind", WRONG_USAGE)
    return [without_kind(name, typed.kind) for name in joined]


def after_kind(kind: ResourceKind, names: Sequence[str]) -> list[str]:
    """Return the names of a command about one kind, which may be typed before them: `explain pod train`."""
    first, *others = [*names] or [""]
    is_kind = bool(others) and first in _KINDS and _plural(_KINDS[first]) == _plural(kind)
    return [without_kind(name, kind) for name in (others if is_kind else names)]


def without_kind(name: str, kind: ResourceKind) -> str:
    """Return a name without its kind. `pod/train` is the pod `train`, and no pod of a namespace `pod`."""
    return name.partition("/")[2] if _kind_of(name) == _plural(kind) else name


def group_readings(name: str) -> tuple[str, ...]:
    """Return the groups in space that a name may mean; `without_kind` has one answer, which is not enough here.

    `group/models` is the group `models` of a namespace `group`, or what `-o name` prints of the own group of a
    namespace `models`.
    """
    return tuple(dict.fromkeys((name, name.removeprefix("group/"))))


def node_name(name: str) -> str:
    """Return a node's name, with its kind or without. Raises CommandFailed."""
    bare = without_kind(name, ResourceKind.NODES)
    if not object_names.is_subdomain(bare):
        raise CommandFailed(f"{clipped(bare)!r} is no name of a node", WRONG_USAGE)
    return bare


def _kind_of(name: str) -> str | None:
    """Return the list of the kind that is joined to a name; None without one. `gpu/0` is a card of a node `gpu`."""
    word, slash, rest = name.partition("/")
    kind = _KINDS.get(word) if slash else None
    if kind is None or (kind.plural == "gpus" and not (rest.startswith(_UUIDS) or "/" in rest)):
        return None
    return _plural(kind)


def _plural(kind: ResourceKind) -> str:
    return _POD if kind is ResourceKind.PENDING else kind.plural
