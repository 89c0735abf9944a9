"""Which pods are of one job: those of one gang, one controller and one namespace."""

from vgpu.domain.asks import job_identity
from vgpu.domain.asks.gang import Gang, GangSource
from vgpu.domain.identifiers import Namespace

TEAM, OTHER = Namespace("team"), Namespace("other")
TRAIN = job_identity.placed_gang(Gang("train", GangSource.ANNOTATION, 2))


def test_pods_of_one_gang_and_one_controller_are_of_one_job() -> None:
    job = job_identity.fingerprint(TEAM, TRAIN, "uid-1")
    assert job == job_identity.fingerprint(TEAM, TRAIN, "uid-1")
    assert job is not None
    assert len(job) == job_identity.FINGERPRINT_SIZE


def test_another_namespace_controller_or_gang_is_another_job() -> None:
    label = job_identity.placed_gang(Gang("train", GangSource.COSCHEDULING))
    jobs = {
        job_identity.fingerprint(TEAM, TRAIN, "uid-1"),
        job_identity.fingerprint(OTHER, TRAIN, "uid-1"),
        job_identity.fingerprint(TEAM, TRAIN, "uid-2"),
        job_identity.fingerprint(TEAM, label, "uid-1"),
    }
    assert len(jobs) == 4


def test_a_pod_without_a_gang_or_a_controller_is_of_no_job() -> None:
    assert job_identity.fingerprint(TEAM, "", "uid-1") is None
    assert job_identity.fingerprint(TEAM, TRAIN, "") is None


def test_what_the_extender_says_of_the_owner_counts_and_not_the_pods_references() -> None:
    """Pods of the Jobs of one JobSet have different controllers; a change of owner references joins no other job."""
    gang = Gang("train", GangSource.ANNOTATION, 2)
    placed = job_identity.placed_gang(gang, "set-1")
    assert job_identity.fingerprint(TEAM, placed, "job-1") == job_identity.fingerprint(TEAM, placed, "job-2")
    assert job_identity.fingerprint(TEAM, placed, "job-1") != job_identity.fingerprint(OTHER, placed, "job-1")
    assert job_identity.fingerprint(TEAM, placed, "") is not None


def test_a_pod_that_was_bound_by_an_older_extender_is_of_the_job_of_its_controller() -> None:
    gang = Gang("train", GangSource.ANNOTATION, 2)
    placed = job_identity.placed_gang(gang, "uid-1")
    assert job_identity.fingerprint(TEAM, TRAIN, "uid-1") == job_identity.fingerprint(TEAM, placed, "uid-1")
