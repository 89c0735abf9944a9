"""The options that commands about the cluster share."""

import functools
import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from vgpu.cli.cluster.connection.endpoint import SERVER_ENV, TOKEN_ENV, ServerChoice
from vgpu.cli.cluster.output import DocumentFormat, Format
from vgpu.cli.option_classes import Command, with_parameters
from vgpu.domain.asks.policy import PackingPolicy


class ResourceKind(StrEnum):
    """What lists there are; both numbers are accepted."""

    GPUS = "gpus"
    GPU = "gpu"
    NODES = "nodes"
    NODE = "node"
    PODS = "pods"
    POD = "pod"
    PENDING = "pending"
    GROUPS = "groups"
    GROUP = "group"

    @property
    def plural(self) -> str:
        """The name of the list in the REST."""
        return self if self == ResourceKind.PENDING or self.endswith("s") else f"{self}s"

    @property
    def is_of_pods(self) -> bool:
        """Whether the list is of namespaces, and labels of pods choose what is in it."""
        return self.plural in (ResourceKind.PODS, ResourceKind.PENDING, ResourceKind.GROUPS)


_PANEL = "Which cluster"

Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL", rich_help_panel=_PANEL,
        help=f"the admin REST itself, such as http://127.0.0.1:9871 (default: {SERVER_ENV}, else by the kubeconfig)",
    ),
]  # fmt: skip
Context = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=_PANEL, help="context of the kubeconfig (default: the current one)"),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=_PANEL, help="kubeconfig (default: KUBECONFIG, else ~/.kube/config)"),
]
Token = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN", rich_help_panel=_PANEL, help=f"bearer token (default: {TOKEN_ENV}, else the kubeconfig's)"
    ),
]
Authority = Annotated[
    Path | None,
    typer.Option(
        "--certificate-authority", metavar="FILE", rich_help_panel=_PANEL,
        help="CA of --server, PEM (default: VGPU_CERTIFICATE_AUTHORITY, else the system's)",
    ),
]  # fmt: skip
AdminNamespace = Annotated[
    str, typer.Option(metavar="NAME", rich_help_panel=_PANEL, help="namespace in which vgpushare is installed")
]
Output = Annotated[Format, typer.Option("--output", "-o", help="output format")]
DocumentOutput = Annotated[DocumentFormat, typer.Option("--output", "-o", help="output format")]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="namespace (default: the context's)")
]
NamespaceFilter = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="only this namespace (default: all that you may see)"),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="every namespace in which you may get pods")
]
Selector = Annotated[
    str, typer.Option("--selector", "-l", metavar="LABELS", help="labels of pods: KEY=VALUE, KEY!=VALUE, KEY, !KEY")
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="show the list again after each change, until Ctrl-C")]

ClusterFile = Annotated[
    Path | None,
    typer.Option(
        "--cluster", metavar="FILE",
        help="place the pods in this cluster, without a server: kubectl get nodes,gpunodes,pods -A -o json; "
        "without -f, its waiting pods",
    ),
]  # fmt: skip
NodePolicy = Annotated[
    PackingPolicy | None,
    typer.Option(
        "--node-policy",
        help="with --cluster: which node is preferred, where a pod names none (default: fragmentation)",
    ),
]
GpuPolicy = Annotated[
    PackingPolicy | None,
    typer.Option(
        "--gpu-policy",
        help="with --cluster: which card is preferred, where a pod names none (default: fragmentation)",
    ),
]


_SHARED: Final[Mapping[str, object]] = {
    "server": Server,
    "context": Context,
    "kubeconfig": Kubeconfig,
    "token": Token,
    "certificate_authority": Authority,
    "admin_namespace": AdminNamespace,
}


def which_cluster(*only: str) -> Callable[[Command], Command]:
    """Give a command the options that say which cluster, all or only some; it takes them as `chosen`, a Choice.

    Typer reads options from a command's signature and cannot take them from a class: the signature is extended here.
    """
    shared = {name: _SHARED[name] for name in only or _SHARED}

    def extended(command: Command) -> Command:
        @functools.wraps(command)
        def with_choice(**given: Any) -> None:
            said = {name: given.pop(name) for name in shared}
            command(**given, chosen=ServerChoice(**said))

        own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "chosen"]
        defaults = ServerChoice()
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=getattr(defaults, name), annotation=kind)
            for name, kind in shared.items()
        ]
        return with_parameters(with_choice, [*own, *more])

    return extended
