"""The one tree of exceptions: broken contracts and failed outside systems, never expected outcomes.

VgpuError
|- MalformedError       bytes of ours that cannot be read
|  |- MalformedAssignment
|  |- MalformedLimits
|  `- MalformedRegion
`- OutsideError         a system beside us failed
   |- KubernetesError
   |- NvmlError
   `- KubeletError
"""


class VgpuError(Exception):
    """Base of all of ours."""


class MalformedError(VgpuError):
    """Bytes in one of our formats that do not follow it; the message says where."""


class MalformedAssignment(MalformedError):
    """A `vgpu.io/assignment` annotation that cannot be read."""


class MalformedLimits(MalformedError):
    """A limits file that cannot be read."""


class MalformedRegion(MalformedError):
    """A region file that cannot be read."""


class OutsideError(VgpuError):
    """A system beside us failed; retrying may help."""


class KubernetesError(OutsideError):
    """The API server refused or could not be reached.

    `status` is the HTTP status, or 0 when no answer came: then the call may have been carried out all the same.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status or 'no answer'} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def is_definite(self) -> bool:
        """Whether the server surely did not carry the call out."""
        return 400 <= self.status < 500 and self.status not in (408, 429)  # noqa: PLR2004 - HTTP's classes


class NvmlError(OutsideError):
    """NVML failed; `code` is its nvmlReturn_t."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class KubeletError(OutsideError):
    """The kubelet's socket refused or did not answer."""
