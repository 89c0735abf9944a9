"""Which uses of a card are findings, and when they count."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from tests.vgpu.node.builders import bound, plain, uuid
from vgpu.adapters.procfs import HostProcess
from vgpu.domain.identifiers import CardUuid, ContainerName, KubeletPodUid, PodUid
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.card_holders import CardHolder
from vgpu.node.processes.findings import FindingKind, Key, ListedProcess, ProcessFinding
from vgpu.node.processes.sightings import MAX_FINDINGS, Sightings
from vgpu.node.processes.uninvited import UseJudge

ID = "0123456789abcdef" * 4
CARD, OTHER_CARD = uuid(0), uuid(1)
HOLDER = replace(bound("holder"), containers=((ID, ContainerName("main")), ("f" * 64, ContainerName("side"))))
PLAIN = replace(plain("plain"), containers=((ID, ContainerName("main")),))
HELD = frozenset({CardHolder(HOLDER.uid, ContainerName("main"), CARD)})


def use(
    pod: str = "", *, gpu: CardUuid = CARD, container: str = ID, pid: int = 7, command: str = "python3"
) -> ListedProcess:
    """A use by a process of a pod, or of the host."""
    return ListedProcess(
        gpu, pid, HostProcess(command, f"0::/kubepods/pod{pod}/{container}\n" if pod else "0::/init.scope\n")
    )


def findings(
    *uses: ListedProcess, pods: tuple[BoundPod, ...] = (HOLDER, PLAIN), allowed: tuple[str, ...] = ()
) -> list[ProcessFinding]:
    return list(UseJudge(pods, HELD, allowed).findings(uses).values())


def test_a_container_that_holds_devices_of_the_card_is_no_finding() -> None:
    assert findings(use(HOLDER.uid)) == []


def test_a_pod_without_a_share_is_a_finding() -> None:
    (found,) = findings(use(PLAIN.uid))
    assert found == ProcessFinding(
        FindingKind.NO_SHARE, CARD, 7, "python3", PLAIN, PLAIN.kubelet_uid, ContainerName("main")
    )
    assert found.subject == "pod default/plain container main process 7 (python3)"


def test_a_share_of_another_card_does_not_count() -> None:
    (found,) = findings(use(HOLDER.uid), use(HOLDER.uid, gpu=OTHER_CARD))
    assert (found.gpu, found.pod) == (OTHER_CARD, HOLDER)


def test_a_share_of_another_container_of_the_pod_does_not_count() -> None:
    (found,) = findings(use(HOLDER.uid, container="f" * 64))
    assert found.container == "side"


def test_a_container_that_the_status_does_not_show_yet_may_use_what_its_pod_holds() -> None:
    assert findings(use(HOLDER.uid, container="a" * 64)) == []
    assert findings(use(HOLDER.uid, container="a" * 64, gpu=OTHER_CARD)) != []


def test_a_pod_that_was_deleted_by_force_may_use_what_it_holds() -> None:
    assert findings(use(HOLDER.uid), pods=()) == []


def test_a_pod_that_the_api_does_not_have_is_a_finding() -> None:
    (found,) = findings(use("unknown"))
    assert (found.pod, found.subject) == (None, "pod with UID unknown process 7 (python3)")


def test_a_static_pod_is_named_by_its_mirror_pod() -> None:
    mirror = replace(plain("static"), uid=PodUid("api"), kubelet_uid=KubeletPodUid("5" * 32), is_mirror=True)
    (found,) = findings(use("5" * 32), pods=(mirror,))
    assert found.pod == mirror


def test_a_pod_that_claims_to_be_the_mirror_of_another_takes_no_finding_over() -> None:
    liar = replace(plain("liar"), kubelet_uid=PLAIN.kubelet_uid, is_mirror=True)
    for pods in ((liar, PLAIN), (PLAIN, liar)):
        assert [finding.pod for finding in findings(use(PLAIN.uid), pods=pods)] == [PLAIN]


def test_a_host_process_is_a_finding_unless_its_command_is_allowed() -> None:
    (found,) = findings(use(command="Xorg"), allowed=("nvidia-persistenced",))
    assert (found.kind, found.subject) == (FindingKind.HOST_PROCESS, "host process 7 (Xorg)")
    assert findings(use(command="nvidia-persiste"), allowed=("nvidia-persistenced",)) == []
    assert findings(use(PLAIN.uid, command="Xorg"), allowed=("Xorg",)) != [], "a container may choose any name"


def test_a_process_that_proc_does_not_show_is_a_finding() -> None:
    (found,) = findings(ListedProcess(CARD, 7, None))
    assert found.kind == FindingKind.UNKNOWN_PROCESS


def test_a_process_in_cgroups_of_two_pods_needs_a_share_of_both() -> None:
    both = f"1:cpu:/kubepods/pod{HOLDER.uid}/{ID}\n2:memory:/kubepods/pod{PLAIN.uid}/{ID}\n"
    (found,) = findings(ListedProcess(CARD, 7, HostProcess("nvidia-smi", both)), allowed=("nvidia-smi",))
    assert found.pod == PLAIN


def test_processes_of_one_container_are_one_finding() -> None:
    (found,) = findings(use(PLAIN.uid, pid=9, command="b"), use(PLAIN.uid, pid=8, command="a"))
    assert (found.pid, found.command) == (8, "a")


@given(st.lists(st.tuples(st.sampled_from([HOLDER.uid, PLAIN.uid, ""]), st.booleans(), st.integers(1, 9)), max_size=9))
def test_exactly_the_uses_without_a_share_are_found(uses: list[tuple[str, bool, int]]) -> None:
    made = [use(pod, gpu=CARD if first else OTHER_CARD, pid=pid) for pod, first, pid in uses]
    wanted = {(gpu, pod) for pod, first, _ in uses if (pod, gpu := CARD if first else OTHER_CARD) != (HOLDER.uid, CARD)}
    assert {(finding.gpu, finding.pod_uid) for finding in findings(*made)} == wanted


def seen(*numbers: int, pid: int = 1, kind: FindingKind = FindingKind.NO_SHARE) -> dict[Key, ProcessFinding]:
    return {
        (kind, CARD, f"{n:03}"): ProcessFinding(kind, CARD, pid, "c", pod_uid=KubeletPodUid(f"{n:03}")) for n in numbers
    }


def test_a_finding_counts_from_the_second_look_and_ends_with_the_second_without_it() -> None:
    sightings = Sightings()
    steps = [({1}, False, True), ({1}, True, False), (set(), True, True), ({1}, True, False), (set(), True, True)]
    for shown, counts, is_open in [*steps, (set(), False, False)]:
        assert sightings.take(seen(*shown)) == is_open
        assert bool(sightings.confirmed) == counts


def test_the_process_that_was_seen_first_stays_named() -> None:
    sightings = Sightings()
    for pid in (5, 6, 7):
        sightings.take(seen(1, pid=pid))
    assert [finding.pid for finding in sightings.confirmed.values()] == [6]


def test_at_most_sixteen_findings_count_the_oldest_stay_and_pods_go_first() -> None:
    sightings = Sightings()
    for _ in range(2):
        sightings.take(seen(*range(10)))
    crowd = seen(*range(60)) | seen(*range(60), kind=FindingKind.HOST_PROCESS)
    for _ in range(2):
        is_open = sightings.take(crowd)
    assert not is_open
    assert len(sightings.confirmed) == MAX_FINDINGS
    assert seen(*range(16)).keys() == sightings.confirmed.keys()
    assert sightings.more == 120 - MAX_FINDINGS


@example([{*range(10), 15}, {*range(10), 15}, {0, 10, 11, 12, 13, 18, 26}, {*range(16), 18, 26}])
@given(st.lists(st.sets(st.integers(0, 30)), max_size=8))
def test_what_counts_was_seen_in_one_of_the_last_two_looks(looks: list[set[int]]) -> None:
    sightings, before = Sightings(), set[int]()
    for shown in looks:
        older, both = sightings.confirmed.keys(), seen(*(shown & before)).keys()
        sightings.take(seen(*shown))
        assert sightings.confirmed.keys() <= seen(*shown, *before).keys()
        assert len(sightings.confirmed) <= MAX_FINDINGS
        if len(both | older) <= MAX_FINDINGS:
            assert both <= sightings.confirmed.keys()
        before = shown


def test_the_server_of_a_group_works_for_its_members_and_is_no_finding() -> None:
    server, other = use(pid=8, command="nvidia-cuda-mps"), use(pid=9, command="nvidia-cuda-mps")
    judge = UseJudge((HOLDER, PLAIN), HELD, (), lambda pid, _process, _pods: pid == server.pid)
    assert [finding.pid for finding in judge.findings((server, other)).values()] == [other.pid]
