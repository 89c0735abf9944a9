"""Replaces a pod by another of its name: deletes the old pod, waits for its end, and creates the new one.

A pod with finalizers is only marked by its deletion, and stays until their controllers have removed them. A
ResourceQuota counts a deleted pod for a moment longer. A request whose answer is lost may have been carried out.
Therefore each step looks first which pod of the name there is.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from limiter.host import Host
from vgpu.cli.cluster.readmit import quota_refusals
from vgpu.cli.cluster.readmit.saved_manifests import NothingChanged
from vgpu.cli.failure import ANSWER_IS_NO, NO_ANSWER, NOT_FOUND, CommandFailed
from vgpu.pacing.back_off import BackOff

PAUSES: Final = BackOff(first_s=0.1, longest_s=2.0)
_NS: Final = 1_000_000_000

Pod = dict[str, Any]


class ReplacementApi(Protocol):
    """The API server, with the caller's own rights. Every method raises CommandFailed."""

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Any:
        """GET an object or a list."""

    def post(self, path: str, body: Any = None, query: Mapping[str, str | int] | None = None) -> Any:
        """POST an object."""

    def delete(self, path: str, body: Any = None) -> Any:
        """DELETE an object."""


class PodReplacement:
    """The replacement of one pod."""

    def __init__(self, api: ReplacementApi, old: Pod, new: Pod) -> None:
        """`new` is the manifest, in the namespace of `old` and with its name."""
        metadata = old["metadata"]
        self._api, self._uid, self._new = api, metadata["uid"], new
        self._pods = f"/api/v1/namespaces/{metadata['namespace']}/pods"
        self._path = f"{self._pods}/{metadata['name']}"
        self._may_have_created = False

    def delete(self) -> None:
        """Delete the old pod. Raises CommandFailed where it is refused: then nothing was changed."""
        self._api.delete(self._path, {"preconditions": {"uid": self._uid}})

    def run(self, host: Host, timeout_s: float) -> Pod:
        """Replace the pod; return the new one.

        Raises NothingChanged where the deletion is refused. Raises CommandFailed where the new pod is refused, or could
        not be created in `timeout_s` seconds.
        """
        try:
            self.delete()
        except CommandFailed as error:
            if error.code != NO_ANSWER:
                raise NothingChanged(str(error), error.code) from error
        until, failures = host.monotonic_ns() + int(timeout_s * _NS), 0
        while isinstance(outcome := self._step(), str):
            if host.monotonic_ns() >= until:
                raise CommandFailed(f"not created again within {timeout_s:g} s: {outcome}", ANSWER_IS_NO)
            failures += 1
            host.sleep(PAUSES.delay_s(failures))
        return outcome

    def _step(self) -> Pod | str:
        """Do what can be done now; return the new pod, or why there is none yet."""
        try:
            found = self._present()
            if found is None:
                return self._create()
            if found["metadata"]["uid"] == self._uid:
                return self._awaited(found["metadata"])
        except CommandFailed as error:
            if error.code == NO_ANSWER or quota_refusals.is_refusal(str(error)):
                return str(error)
            raise
        if not self._may_have_created:
            raise CommandFailed("another pod of its name was created meanwhile", ANSWER_IS_NO)
        return found

    def _present(self) -> Pod | None:
        try:
            found: Pod = self._api.get(self._path)
        except CommandFailed as error:
            if error.code == NOT_FOUND:
                return None
            raise
        return found

    def _awaited(self, metadata: Mapping[str, Any]) -> str:
        """Return for what the old pod's end waits; deletes it again where the first request was lost."""
        if not metadata.get("deletionTimestamp"):
            self.delete()
        finalizers = metadata.get("finalizers")
        return f"finalizers hold the old pod: {', '.join(finalizers)}" if finalizers else "the old pod is being deleted"

    def _create(self) -> Pod | str:
        try:
            created: Pod = self._api.post(self._pods, self._new)
        except CommandFailed as error:
            self._may_have_created = self._may_have_created or error.code == NO_ANSWER
            if error.code == ANSWER_IS_NO:  # a conflict, about the name or the quota: the next step looks again
                return str(error)
            raise
        return created
