"""Which uses of a share are findings: no limiter, other files, more memory than the limit or the region says."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.vgpu.node.builders import bound, uuid
from vgpu.adapters.procfs import FileId, HostProcess
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.quantity import MIB
from vgpu.node.processes import unlimited
from vgpu.node.processes.findings import FindingKind, ListedProcess, ProcessFinding
from vgpu.node.processes.unlimited import Share

ID = "0123456789abcdef" * 4
CARD = uuid(0)
POD = replace(bound("p"), containers=((ID, ContainerName("main")),))
LIBRARY, COPY, LIMITS, REGION, OTHER = (FileId(1, number) for number in range(5))
TOLERANCE = 10 * MIB
SHARE = Share(
    libraries=frozenset({LIBRARY, COPY}),
    files={"/run/vgpu/limits": frozenset({LIMITS}), "/run/vgpu/region": frozenset({REGION})},
    limits={CARD: 100 * MIB},
    charged={CARD: 90 * MIB},
)
OURS = frozenset({COPY, LIMITS, REGION, OTHER})


def use(
    pid: int = 7, mib: int | None = 90, mapped: frozenset[FileId] | None = OURS, container: str = ID
) -> ListedProcess:
    process = HostProcess("python3", f"0::/kubepods/pod{POD.uid}/{container}\n")
    return ListedProcess(CARD, pid, process, None if mib is None else mib * MIB, mapped)


def findings(*uses: ListedProcess, share: Share = SHARE, holder: str = "main") -> list[ProcessFinding]:
    return list(unlimited.findings(uses, [POD], {(POD.uid, ContainerName(holder)): share}, TOLERANCE).values())


def kinds(*uses: ListedProcess, share: Share = SHARE) -> list[FindingKind]:
    return [finding.kind for finding in findings(*uses, share=share)]


def test_a_process_with_the_containers_limiter_limits_and_region_is_no_finding() -> None:
    assert findings(use()) == []
    assert findings(use(mapped=OURS - {COPY} | {LIBRARY})) == []


def test_a_process_without_the_limiter_is_a_finding_that_names_it() -> None:
    (found,) = findings(use(), use(8, mib=0, mapped=frozenset({LIMITS, REGION, OTHER})))
    assert (found.kind, found.gpu, found.pid, found.pod, found.container) == (
        FindingKind.NO_LIMITER,
        CARD,
        8,
        POD,
        "main",
    )
    assert found.subject == "pod default/p container main process 8 (python3)"
    assert found.is_certain


def test_a_process_that_reads_other_limits_or_another_region_is_a_finding() -> None:
    for missing, path in ((LIMITS, "/run/vgpu/limits"), (REGION, "/run/vgpu/region")):
        (found,) = findings(use(mapped=OURS - {missing}))
        assert found.kind is FindingKind.OTHER_FILES
        assert path in found.detail


def test_a_process_whose_mappings_were_not_read_is_no_finding() -> None:
    assert findings(use(mapped=None)) == []


def test_more_memory_than_the_region_says_is_a_finding_beyond_the_tolerance() -> None:
    assert kinds(use(mib=50), use(8, mib=50)) == []
    (found,) = findings(use(mib=50), use(8, mib=51))
    assert (found.kind, found.pid, found.detail) == (
        FindingKind.REGION_BELOW_USE,
        8,
        "NVML counts 101 MiB, the region says 90 MiB",
    )


def test_a_region_that_does_not_know_the_card_or_cannot_be_read_says_zero() -> None:
    assert kinds(use(mib=11), share=replace(SHARE, charged={})) == [FindingKind.REGION_BELOW_USE]
    (found,) = findings(use(mib=11), share=replace(SHARE, charged={}, problem="bad magic"))
    assert found.detail == "NVML counts 11 MiB, the region cannot be read (bad magic)"
    assert kinds(use(mib=9), share=replace(SHARE, charged={})) == []


def test_a_region_of_another_release_is_not_judged() -> None:
    assert kinds(use(mib=100), share=replace(SHARE, charged=None)) == []


def test_memory_beyond_the_limit_is_certain_only_where_the_limiter_does_not_count_it() -> None:
    """A limit that was lowered below what is used, or contexts created at once: the region says as much as NVML."""
    lowered = replace(SHARE, limits={CARD: 50 * MIB})
    (found,) = findings(use(), share=lowered)
    assert (found.kind, found.is_certain) == (FindingKind.BEYOND_LIMIT, False)
    assert found.detail == "the container uses 90 MiB of 50 MiB"
    beyond = findings(use(mib=120))
    assert {finding.kind: finding.is_certain for finding in beyond} == {
        FindingKind.REGION_BELOW_USE: True,
        FindingKind.BEYOND_LIMIT: True,
    }
    without = findings(use(mib=120, mapped=frozenset()))
    assert {finding.kind: finding.is_certain for finding in without} == {
        FindingKind.NO_LIMITER: True,
        FindingKind.BEYOND_LIMIT: True,
    }


def test_only_containers_with_a_share_whose_name_is_known_are_judged() -> None:
    bare = use(mapped=frozenset(), mib=900)
    assert findings(bare, holder="side") == []
    assert findings(use(mapped=frozenset(), container="a" * 64)) == []
    assert findings(replace(bare, process=None)) == []
    assert findings(replace(bare, process=HostProcess("python3", "0::/init.scope\n"))) == []


@given(st.lists(st.integers(0, 40), max_size=4), st.integers(0, 100), st.integers(0, 100))
def test_a_truthful_container_within_its_limit_is_never_a_finding(used: list[int], more: int, room: int) -> None:
    """Truthful: the region says at least what NVML counts."""
    charged = sum(used) + more
    share = replace(SHARE, charged={CARD: charged * MIB}, limits={CARD: (charged + room) * MIB})
    assert kinds(*(use(pid, mib) for pid, mib in enumerate(used, 2)), share=share) == []
