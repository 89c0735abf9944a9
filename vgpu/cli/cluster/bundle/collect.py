"""Asks for everything that belongs into a bundle, removes secrets, and writes the archive."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import vgpu
from vgpu.cli.cluster import object_pages
from vgpu.cli.cluster.bundle import archive, redaction, sources
from vgpu.cli.cluster.bundle.archive import Archive
from vgpu.cli.cluster.bundle.sources import Source
from vgpu.cli.cluster.connection.rest import Rest
from vgpu.cli.failure import NO_ANSWER, CommandFailed

MAX_ITEMS: Final = 20_000  # of a list
MAX_TEXT: Final = 16 << 20
_ABOUT: Final = """\
What vgpushare's parts say of themselves, for a support case. index.json says where each file comes from, what was
removed from it, and what could not be had.

admin/       the answers of the admin REST: cards, pods, reasons to wait, history, findings
kubernetes/  the objects of the installation, nodes, GPUNodes, webhooks. No Secret was read
logs/        of the installation's pods
metrics/     of the installation's pods

Texts that look like secrets were replaced by REMOVED. Names of pods, namespaces, nodes and images are kept. Look
through it before you send it.
"""


@dataclass(frozen=True, slots=True)
class BundleSources:
    """Whom to ask; a text says why one cannot be asked."""

    admin: Rest | str
    api: Rest | str
    namespace: str


@dataclass
class Bundle:
    """What was collected so far."""

    files: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, str]] = field(default_factory=list)

    def miss(self, what: str, why: str) -> None:
        """Note what could not be had."""
        self.missing.append({"file": what, "reason": redaction.text(why)[0]})


def write(path: Path, asked: BundleSources, at: datetime, say: Callable[[str], object]) -> Bundle:
    """Write an archive. Raises CommandFailed where it cannot be written, or nothing could be had."""
    bundle = Bundle()
    with archive.written(path, at) as made:
        made.add("README.txt", _ABOUT.encode())
        _add_admin(made, bundle, asked.admin, say)
        _add_kubernetes(made, bundle, asked, say)
        if not bundle.files:
            raise CommandFailed(f"there is nothing to collect: {bundle.missing[0]['reason']}", NO_ANSWER)
        index = {"createdAt": at.isoformat(), "client": vgpu.__version__, "files": bundle.files}
        made.add("index.json", _json(index | {"missing": bundle.missing}), always=True)
    return bundle


def _add_admin(made: Archive, bundle: Bundle, admin: Rest | str, say: Callable[[str], object]) -> None:
    if isinstance(admin, str):
        bundle.miss("admin/", admin)
        return
    say("the admin REST")
    found = _add_documents(made, bundle, sources.REST, lambda source: _of_rest(admin, source))
    waiting = found.get("admin/pending.json") or ()
    _add_documents(made, bundle, sources.explanations(waiting), lambda source: _of_rest(admin, source))


def _add_kubernetes(made: Archive, bundle: Bundle, asked: BundleSources, say: Callable[[str], object]) -> None:
    api = asked.api
    if isinstance(api, str):
        bundle.miss("kubernetes/", api)
        return
    say("objects")
    wanted = list(sources.objects(asked.namespace))
    found = _add_documents(made, bundle, wanted, lambda source: _of_api(api, source))
    pods = sources.chosen(found.get(f"kubernetes/{asked.namespace}/pods.json") or ())
    say(f"logs of {len(pods)} pods")
    _add_texts(made, bundle, sources.logs(pods), api)
    say("metrics")
    _add_texts(made, bundle, sources.metrics(pods), api)


def _add_documents(
    made: Archive, bundle: Bundle, wanted: Iterable[Source], ask: Callable[[Source], Any]
) -> Mapping[str, Any]:
    """Add JSON documents; return them as they came."""
    found = {}
    for source in wanted:
        try:
            found[source.file] = ask(source)
            content, removed = redaction.document(found[source.file])
            _add(made, bundle, source, _json(content), removed)
        except CommandFailed as error:
            bundle.miss(source.file, str(error))
    return found


def _add_texts(made: Archive, bundle: Bundle, wanted: Iterable[Source], api: Rest) -> None:
    for source in wanted:
        try:
            content, removed = redaction.text(api.text(source.path, source.query, MAX_TEXT))
            _add(made, bundle, source, content.encode(), removed)
        except CommandFailed as error:
            bundle.miss(source.file, str(error))


def _add(made: Archive, bundle: Bundle, source: Source, content: bytes, removed: int) -> None:
    made.add(source.file, content)
    row = {"file": source.file, "from": source.path, "query": source.query, "bytes": len(content), "removed": removed}
    bundle.files.append(row)


def _of_rest(admin: Rest, source: Source) -> Any:
    """Return an answer of the admin REST, the items of a list."""
    return admin.items(source.path, source.query, MAX_ITEMS) if source.is_list else admin.get(source.path, source.query)


def _of_api(api: Rest, source: Source) -> Any:
    """Return an object of the API server, or the first items of a list."""
    if not source.is_list:
        return api.get(source.path, source.query)
    return list(islice(object_pages.items(api, source.path, source.query), MAX_ITEMS))


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"


def said(bundle: Bundle, path: Path, size: int) -> Sequence[str]:
    """Return what to tell people about a bundle."""
    removed = sum(row["removed"] for row in bundle.files)
    lines = [f"{row['file']}: not collected: {row['reason'].splitlines()[0]}" for row in bundle.missing]
    what = f"{path}: {len(bundle.files)} files, {-(-size // 1024)} KiB; {removed} secrets removed"
    return [*lines, f"{what}. Look through it before you send it."]
