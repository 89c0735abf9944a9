"""The tree of exceptions: broken contracts and failed external systems, never expected outcomes.

VgpuError
|- MalformedError       data in one of our formats that cannot be read
|  |- MalformedAssignment
|  |- MalformedCursor
|  |- MalformedEvent
|  |- MalformedLimits
|  |- MalformedModel
|  |- MalformedRegion
|  `- MalformedScript
|- UnusableSetting      a setting that cannot work here
`- OutsideError         an external system failed
   |- KubernetesError
   |- NvmlError
   |- CudaError
   |- KubeletError
   |- HistoryUnavailable
   |- HistoryRefused
   |- SpillFull
   `- StateUnusable
"""


class VgpuError(Exception):
    """Base of all exceptions of vgpushare."""


class MalformedError(VgpuError):
    """Data that does not follow its format; the message says where."""


class MalformedAssignment(MalformedError):
    """A `vgpu.io/assignment` annotation that cannot be read."""


class MalformedCursor(MalformedError):
    """The cursor of a page that no answer contained."""


class MalformedEvent(MalformedError):
    """A line of the history's spill, or an event in its database, that cannot be read."""


class MalformedLimits(MalformedError):
    """A limits file that cannot be read."""


class MalformedRegion(MalformedError):
    """A region file that cannot be read."""


class MalformedModel(MalformedError):
    """A file of a model, or a description of one, that cannot be read; the message names the field."""


class MalformedScript(MalformedError):
    """A program's text that cannot be read as Python; the message names the line."""


class UnusableSetting(VgpuError):
    """A setting that cannot work on this machine; the message names it and says which value can."""


class OutsideError(VgpuError):
    """An external system failed; retrying may help."""


class KubernetesError(OutsideError):
    """The API server refused a request or could not be reached.

    `status` is the HTTP status, or 0 where no answer came: then the request may have been carried out. `retry_after_s`
    is how long the API server asks its clients to wait, 0 where it does not.
    """

    def __init__(self, status: int, reason: str, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(f"{status or 'no answer'} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def is_definite(self) -> bool:
        """Whether the API server certainly did not carry out the request."""
        return 400 <= self.status < 500 and self.status not in (408, 429)  # noqa: PLR2004 - HTTP's classes


class ReplicaUnreachable(OutsideError):
    """Another replica of a part gave no answer, or another server answered in its place."""


class CudaError(OutsideError):
    """A call of the CUDA driver failed; `code` is its CUresult, 0 where the driver was not asked."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class NvmlError(OutsideError):
    """A call of NVML failed; `code` is its nvmlReturn_t."""

    _LIBRARY_DIFFERS = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def needs_restart(self) -> bool:
        """Whether only another process helps: this one has loaded the library of a driver that was replaced."""
        return self.code == self._LIBRARY_DIFFERS


class KubeletError(OutsideError):
    """The kubelet refused a call or did not answer."""


class HistoryUnavailable(OutsideError):
    """The database of the history does not answer, or cannot store anything now; repeating helps."""


class HistoryRefused(OutsideError):
    """The database of the history refused a value; repeating does not help."""


class SpillFull(OutsideError):
    """The history's spill has its largest size: the database has not taken events for a long time."""


class StateUnusable(OutsideError):
    """The node's state directory cannot hold what containers need to run with limits; the message says what to do."""
