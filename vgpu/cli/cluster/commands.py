"""The commands about the cluster: their options, and what they show."""

import contextlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from limiter.host import Host
from vgpu.cli import outcome
from vgpu.cli.cluster import (
    dashboard_command,
    doctor_command,
    history_commands,
    options,
    other_pods,
    tables,
    top_view,
    typed_names,
)
from vgpu.cli.cluster import describe as describing
from vgpu.cli.cluster import inspect as inspecting
from vgpu.cli.cluster import simulate as simulating
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.history_commands import Opened
from vgpu.cli.cluster.options import ResourceKind
from vgpu.cli.cluster.output import DocumentFormat, Format, document_text
from vgpu.cli.cluster.pod_diagnosis import PodAddress
from vgpu.cli.cluster.readmit import readmit_command
from vgpu.cli.cluster.session import TABLES, RestSession, group_query, pod_query
from vgpu.cli.cluster.typed_names import KindAndName
from vgpu.cli.failure import ANSWER_IS_NO, EXIT_CODES, NOT_FOUND, WRONG_USAGE, CommandFailed
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards import ownership
from vgpu.domain.identifiers import NodeName
from vgpu.placement.policies import DefaultPolicies

PEOPLE = (Format.TABLE, Format.WIDE)
_OPTIONS_BY_FIELD: Final = {"sort": "--sort-by", "selector": "--selector"}
_QUERY_FIELD: Final = re.compile(r"^( *)(sort|selector): ", re.MULTILINE)


def add(app: typer.Typer, environment: Mapping[str, str], host: Host, home: Path, now: Callable[[], datetime]) -> None:
    """Add the commands; `now` is the wall clock."""

    def opened(verb: str, chosen: ServerChoice) -> RestSession:
        return outcome.or_fail(verb, lambda: RestSession.open(chosen, environment, home))

    _add_get(app, opened, host)
    _add_describe(app, opened)
    _add_explain(app, opened, lambda chosen, *pod: other_pods.look_up(chosen, environment, home, *pod))
    _add_simulate(app, opened)
    _add_cordon(app, opened)
    readmit_command.add(app, environment, host, home)
    dashboard_command.add(app, environment, host, home)
    history_commands.add(app, opened)
    doctor_command.add(app, environment, home, now)
    _add_inspect(app, opened)


def _add_get(app: typer.Typer, opened: Opened, host: Host) -> None:
    @app.command(epilog=EXIT_CODES)
    @options.which_cluster()
    def get(
        typed: Annotated[KindAndName, typed_names.argument("gpus|nodes|pods|pending|groups", "what to list")],
        names: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="[NAME]...",
                help="only these; of gpus: UUID or NODE/INDEX; of pods also NAMESPACE/NAME; of groups: NAMESPACE, "
                "NAMESPACE/NAME or */NAME",
            ),
        ] = None,
        namespace: options.NamespaceOption = None,
        all_namespaces: options.AllNamespaces = False,
        selector: options.Selector = "",
        output: options.Output = Format.TABLE,
        watch: options.Watch = False,
        sort_by: Annotated[str, typer.Option(metavar="FIELDS", help="fields of -o json, such as -freeMiB,node")] = "",
        *,
        chosen: ServerChoice,
    ) -> None:
        """List GPUs, nodes, pods that ask for GPUs, those of them that wait, with the reason, or groups in space."""
        kind = typed.kind
        wanted = outcome.or_fail("get", lambda: typed_names.names_of(typed, names or ()))
        session = opened("get", chosen)

        def show() -> None:
            query = _query(session, kind, wanted, namespace, selector, everywhere=all_namespaces)
            if sort_by:
                query["sort"] = sort_by
            place = (namespace or session.namespace) if "namespace" in query else None
            if output in PEOPLE and namespace is None and place and not any("/" in name for name in wanted):
                typer.echo(f"only of namespace {place}; -A shows every namespace", err=True)
            if watch:
                with contextlib.suppress(KeyboardInterrupt):
                    for rows in top_view.watch(session, kind, query, host):
                        typer.echo(session.text(kind, _named(kind, rows, wanted, place), output), nl=False)
                return
            rows = _named(kind, session.rows(kind, query), wanted, place)
            missing = [name for name in wanted if not any(_has_name(kind, row, name, place) for row in rows)]
            if rows or not missing:
                session.show(rows, TABLES[kind.plural], output)
            _refuse_missing(missing, place)

        outcome.or_fail("get", lambda: _with_option_names(show))


def _with_option_names(ask: Callable[[], None]) -> None:
    """Ask the server; a refusal that names a field of the query names the option that the field came from instead."""
    try:
        ask()
    except CommandFailed as error:
        said = _QUERY_FIELD.sub(lambda match: f"{match[1]}{_OPTIONS_BY_FIELD[match[2]]}: ", str(error))
        raise CommandFailed(said, error.code) from error


def _query(
    session: RestSession,
    kind: ResourceKind,
    names: list[str],
    namespace: str | None,
    selector: str,
    *,
    everywhere: bool,
) -> dict[str, Any]:
    if kind.plural == ResourceKind.GROUPS:  # its name says the namespace
        return group_query(session, namespace, names, selector, everywhere=everywhere)
    if kind.is_of_pods:
        return pod_query(session, namespace, names, selector, everywhere=everywhere)
    if namespace is not None:
        raise CommandFailed(f"--namespace: {kind.plural} are in no namespace; leave it out", WRONG_USAGE)
    if selector:
        raise CommandFailed(f"--selector: {kind.plural} have no labels here; use kubectl get nodes -l", WRONG_USAGE)
    return {"name": names} if names and kind.plural == "nodes" else {}


def _named(
    kind: ResourceKind, rows: list[dict[str, Any]], names: list[str], namespace: str | None
) -> list[dict[str, Any]]:
    """Return the rows of these names, or all; a pod's name without a namespace is of `namespace`, None for any."""
    if not names:
        return rows
    return [row for row in rows if any(_has_name(kind, row, name, namespace) for name in names)]


def _has_name(kind: ResourceKind, row: dict[str, Any], name: str, namespace: str | None) -> bool:
    if kind.plural == ResourceKind.GROUPS:
        return row["spaceGroup"] in typed_names.group_readings(name)
    if kind.plural == "nodes":
        return bool(row["name"] == name)
    if kind.plural == "gpus":
        return bool(row["uuid"].startswith(name)) or name == f"{row['node']}/{row['index']}"
    named, _, pod = name.rpartition("/")
    return bool(row["name"] == pod) and (named or namespace) in (None, row["namespace"])


def _refuse_missing(missing: list[str], namespace: str | None) -> None:
    if missing:
        where = f" in namespace {namespace}" if namespace and not any("/" in name for name in missing) else ""
        raise CommandFailed(f"{', '.join(missing)}: not found{where}", NOT_FOUND)


def _add_describe(app: typer.Typer, opened: Opened) -> None:
    @app.command(epilog=EXIT_CODES)
    @options.which_cluster()
    def describe(
        typed: Annotated[
            KindAndName,
            typed_names.argument("gpu|node|pod|group", "what to describe; also with the name, as pod/NAME"),
        ],
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="NAME",
                help="of a gpu: its UUID, the UUID's beginning, or NODE/INDEX; of a group: as its list has it",
            ),
        ] = None,
        namespace: options.NamespaceOption = None,
        output: options.DocumentOutput = DocumentFormat.TABLE,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Show one GPU with its containers, one node or pod with its GPUs, or one group in space with its members."""
        kind = typed.kind
        names = outcome.or_fail("describe", lambda: typed_names.names_of(typed, () if name is None else (name,)))
        if len(names) != 1:
            outcome.or_fail("describe", lambda: _refuse(f"name one {kind.removesuffix('s')} to describe"))
        session = opened("describe", chosen)

        def found() -> tuple[Any, Callable[[], str]]:
            if kind.plural == "gpus":
                card = _gpu(session, names[0])
                return {"gpu": card}, lambda: describing.gpu(card)
            if kind.plural == "nodes":
                name = typed_names.node_name(names[0])
                node, gpus = session.rest.get(f"/nodes/{name}"), session.rest.items("/gpus", {"node": name})
                return {"node": node, "gpus": gpus}, lambda: describing.node(node, gpus)
            if kind.plural == ResourceKind.GROUPS:
                groups = _groups(session, names[0], namespace)
                return {"groups": groups}, lambda: describing.groups(groups)
            address = PodAddress.parse(names[0], namespace or session.namespace)
            pod = session.rest.get(f"/pods/{address.namespace}/{address.name}")
            sizes, gang = _right_sizes(session, address.namespace, address.name), _gang(session, pod)
            return {"pod": pod, "rightSizes": sizes, "gang": gang}, lambda: describing.pod(pod, sizes, gang)

        document, text = outcome.or_fail("describe", found)
        typer.echo(document_text(document, output) or text(), nl=False)


def _gpu(session: RestSession, name: str) -> dict[str, Any]:
    """Return the card of a name. The REST answers a UUID with the card where it counts; a list has all reports."""
    listed = session.gpu(name)
    row: dict[str, Any] = listed if tables.counts_on(listed) else session.rest.get(f"/gpus/{listed['uuid']}")
    return row


def _groups(session: RestSession, name: str, namespace: str | None) -> list[dict[str, Any]]:
    """Return a group's rows, one for each of its cards. Raises CommandFailed."""
    query = group_query(session, namespace, [name], "", everywhere=False)
    rows = session.rows(ResourceKind.GROUPS, query)
    _refuse_missing([] if rows else [name], namespace)
    return rows


def _refuse(why: str) -> None:
    raise CommandFailed(why, WRONG_USAGE)


def _gang(session: RestSession, pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pods of a pod's gang, the pod among them; none where it is in none, or the server is older."""
    gang = pod.get("gang")
    return session.rest.items("/pods", {"namespace": pod["namespace"], "gang": gang, "sort": "name"}) if gang else []


def _right_sizes(session: RestSession, namespace: str, pod: str) -> list[dict[str, Any]]:
    """Return what a pod's containers used; nothing where the server keeps no history."""
    try:
        found = session.rest.get("/rightsize", {"namespace": namespace, "pod": pod, "since": "7d"})
    except CommandFailed:
        return []
    items: list[dict[str, Any]] = found["items"]
    return items


def _add_explain(app: typer.Typer, opened: Opened, look_up: Callable[[ServerChoice, str, str], str]) -> None:
    """Add `explain`; `look_up` says why a pod, by namespace and name, is none of vgpushare's."""

    @app.command(epilog=EXIT_CODES)
    @options.which_cluster()
    def explain(
        pod: Annotated[list[str], typer.Argument(metavar="POD", help="NAME, NAMESPACE/NAME, pod/NAME or pod NAME")],
        namespace: options.NamespaceOption = None,
        nodes: Annotated[int, typer.Option(metavar="N", min=1, max=500, help="the most nodes to show")] = 20,
        output: options.DocumentOutput = DocumentFormat.TABLE,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Say why a pod waits: each node's and GPU's reason, the nearest fit, and what would help."""
        names = typed_names.after_kind(ResourceKind.POD, pod)
        if len(names) != 1:
            outcome.or_fail("explain", lambda: _refuse("name one pod to explain"))
        session = opened("explain", chosen)

        def asked() -> Any:
            named = PodAddress.parse(names[0], namespace or session.namespace)
            try:
                return session.rest.get(f"/pods/{named.namespace}/{named.name}/explain", {"nodes": nodes})
            except CommandFailed as error:
                said = look_up(chosen, named.namespace, named.name) if error.code == NOT_FOUND else ""
                raise CommandFailed(said or str(error), error.code) from error

        found = outcome.or_fail("explain", asked)
        typer.echo(document_text(found, output) or describing.explanation(found, colour=session.colour), nl=False)


def _add_simulate(app: typer.Typer, opened: Opened) -> None:
    @app.command(epilog=EXIT_CODES)
    @options.which_cluster()
    def simulate(
        filename: Annotated[
            list[Path] | None,
            typer.Option(
                "--filename", "-f", metavar="FILE", help="manifests of pods, Deployments, Jobs...; - reads stdin"
            ),
        ] = None,
        cluster: options.ClusterFile = None,
        node_policy: options.NodePolicy = None,
        gpu_policy: options.GpuPolicy = None,
        namespace: options.NamespaceOption = None,
        output: options.Output = Format.TABLE,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Say where pods would be placed, one after the other; nothing is created. Exit code 1: one is not placed."""
        if cluster is None and (node_policy or gpu_policy):
            why = "the server has its own policies; name others in the pods' annotations, or give --cluster"
            outcome.or_fail("simulate", lambda: _refuse(f"--{'node' if node_policy else 'gpu'}-policy: {why}"))
        if cluster is not None and chosen != ServerChoice():
            outcome.or_fail(
                "simulate", lambda: _refuse("--cluster: a file is no server; leave out the server's options")
            )
        session = None if cluster else opened("simulate", chosen)

        def place() -> dict[str, Any]:
            if cluster is not None:
                packing = PackingPolicy.FRAGMENTATION
                defaults = DefaultPolicies(node_policy or packing, gpu_policy or packing)
                return simulating.in_file(cluster, filename, namespace, defaults)
            assert session is not None  # noqa: S101 - opened where there is no file
            return simulating.on_server(session, filename, namespace)

        found = outcome.or_fail("simulate", place)
        typer.echo(simulating.text(found, output, colour=session is not None and session.colour), nl=False)
        if found["notPlaced"]:
            raise typer.Exit(ANSWER_IS_NO)


def _add_cordon(app: typer.Typer, opened: Opened) -> None:
    for verb, help_text in (
        ("cordon", "Place no new containers on GPUs; running containers stay."),
        ("uncordon", "Place new containers on GPUs again."),
    ):
        _add_one_cordon(app, opened, verb, help_text)


def _add_one_cordon(app: typer.Typer, opened: Opened, verb: str, help_text: str) -> None:
    @app.command(verb, help=help_text, epilog=EXIT_CODES)
    @options.which_cluster()
    def cordon_(
        gpus: Annotated[list[str], typer.Argument(metavar="GPU...", help="UUID, the UUID's beginning, or NODE/INDEX")],
        output: options.Output = Format.TABLE,
        *,
        chosen: ServerChoice,
    ) -> None:
        session = opened(verb, chosen)
        changed = []
        try:
            for gpu in typed_names.after_kind(ResourceKind.GPU, gpus):
                changed.append(row := outcome.or_fail(verb, partial(_cordon, session, gpu, verb)))
                if output in PEOPLE:
                    typer.echo(f"gpu/{row['uuid']} ({row['node']}/{row['index']}) {verb}ed")
        finally:  # also of those before one that failed
            if changed and output not in PEOPLE:
                session.show(changed, TABLES["gpus"], output)


def _cordon(session: RestSession, name: str, verb: str) -> dict[str, Any]:
    """Cordon or uncordon a card; by the name of a node on which it does not count, that is refused."""
    found = session.gpu(name)
    if owner := tables.counts_on(found):
        why = f"{ownership.DUPLICATE}: {ownership.words(NodeName(owner))}"
        raise CommandFailed(f"{name}: {why}; vgpu {verb} {found['uuid']} is about that card", WRONG_USAGE)
    row: dict[str, Any] = session.rest.post(f"/gpus/{found['uuid']}/{verb}")
    return row


def _add_inspect(app: typer.Typer, opened: Opened) -> None:
    @app.command(epilog=EXIT_CODES)
    @options.which_cluster()
    def inspect(
        node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="only this node")] = None,
        details: Annotated[bool, typer.Option("--details", "-d", help="with the pods on each GPU")] = False,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Show allocated and total memory of each GPU, in the form of `kubectl inspect gpushare`."""
        session = opened("inspect", chosen)

        def show() -> str:
            name = typed_names.node_name(node) if node else ""
            listed = session.rest.items("/gpus", {"node": name} if name else {})
            gpus = [row for row in listed if not tables.counts_on(row)]
            if name and not gpus:
                raise CommandFailed(f"{name}: no node of this name has reported GPUs", NOT_FOUND)
            return inspecting.details(gpus) if details else inspecting.overview(gpus)

        typer.echo(outcome.or_fail("inspect", show), nl=False)
