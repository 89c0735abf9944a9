"""Jobs in PyTorch and JAX: their processes, containers, figures and goals."""

import argparse
from pathlib import Path

import pytest

from benchmarks import limiter_jobs
from benchmarks.card_jobs import jobs
from benchmarks.card_jobs.jobs import JOBS, TRAINERS, goal_of
from benchmarks.card_jobs.mixes import AloneMix, BesideTrainers, NativeJobs, TwoJobs
from benchmarks.compute import linked_jobs
from benchmarks.compute.linked_jobs import slowest_ms
from benchmarks.compute.node import BenchmarkNode, Native
from benchmarks.compute.scenario import SkippedError
from limiter import launch
from vgpu.domain.formats import limits

FOLDER = Path("/job")
MS = 1_000_000


def test_a_rank_for_each_card_or_one_process_with_all() -> None:
    ranks = JOBS["ddp"].seats(2, FOLDER, "nccl")
    assert [(seat.rank, seat.ranks, seat.card, seat.cards) for seat in ranks] == [(0, 2, 0, 1), (1, 2, 1, 1)]
    (whole,) = JOBS["pipeline"].seats(2, FOLDER, "nccl")
    assert (whole.rank, whole.ranks, whole.card, whole.cards) == (0, 1, 0, 2)


def test_independent_programs_are_first_ranks_that_share_no_folder() -> None:
    seats = JOBS["independent"].seats(2, FOLDER, "nccl")
    assert [(seat.rank, seat.ranks, seat.card, seat.cards) for seat in seats] == [(0, 1, 0, 1), (0, 1, 1, 1)]
    assert len({seat.folder for seat in seats}) == 2


def test_only_ranks_in_containers_of_their_own_name_a_job() -> None:
    def job_of(env: dict[str, str]) -> bytes | None:
        return limits.decode(Path(env[launch.LIMITS_ENV]).read_bytes()).job

    with BenchmarkNode() as node:
        apart = [dict(env) for env in jobs.envs_of(JOBS["ddp-containers"], 2, node, 50)]
        again = dict(jobs.envs_of(JOBS["ddp-containers"], 2, node, 50)[0])
        first, second = (dict(env) for env in jobs.envs_of(JOBS["ddp"], 2, node, 50))
        trainers = [dict(env) for env in jobs.envs_of(TRAINERS, 2, node, 40)]
        assert job_of(apart[0]) is not None
        assert job_of(apart[0]) == job_of(apart[1]) != job_of(again)
        assert [env["CUDA_VISIBLE_DEVICES"] for env in apart] == ["0", "1"]
        assert first == second
        assert job_of(first) is None
        assert [job_of(env) for env in trainers] == [None, None]
        assert trainers[0][launch.LIMITS_ENV] != trainers[1][launch.LIMITS_ENV]


def test_settings_of_nccl_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")
    monkeypatch.setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
    with BenchmarkNode() as node:
        for place in (Native(), node):
            (env,) = jobs.envs_of(JOBS["pipeline"], 1, place, 50)
            assert (env["NCCL_NVLS_ENABLE"], env["TORCH_SYMM_MEM_DISABLE_MULTICAST"]) == ("0", "1")


def test_a_share_allows_linked_cards_what_keeps_the_busiest_at_work_for_it() -> None:
    goal = goal_of(JOBS["ddp"], 50, native=100.0, busy_us=8_000)
    assert goal.least == pytest.approx(0.95 * 50)
    assert goal.most == pytest.approx(1.05 * 50 / 0.8)
    assert goal_of(JOBS["ddp"], 90, native=100.0, busy_us=8_000).most == pytest.approx(1.05 * 100)


def test_a_pipeline_does_not_pay_for_a_share_that_covers_its_cards() -> None:
    goal = goal_of(JOBS["pipeline"], 50, native=30.3, busy_us=16_900)  # 51 % of the time
    assert goal.least == pytest.approx(0.95 * 30.3 * 0.5 / (30.3 * 0.0169))
    assert goal_of(JOBS["pipeline"], 80, native=30.3, busy_us=16_900).least == pytest.approx(0.95 * 30.3)
    assert goal_of(JOBS["pipeline"], 20, native=30.3, busy_us=16_900).least == pytest.approx(0.95 * 0.2 * 30.3)


def test_without_a_trace_a_share_has_no_upper_bound() -> None:
    goal = goal_of(JOBS["decoder"], 50, native=1500.0, busy_us=None)
    assert goal.least == pytest.approx(0.95 * 750)
    assert goal.most == float("inf")


def ends(*at_ms: int) -> dict[str, list[int]]:
    return {"ends_ns": [at * MS for at in at_ms]}


def test_a_job_is_as_fast_as_its_slowest_process() -> None:
    mix = AloneMix("independent", 2, 50)
    assert mix.figures([[ends(0, 10, 20), ends(0, 20)]], 2.0, [55.0]) == {"fixed 50: steps a second": 1.0}
    goal = mix.goals(NativeJobs([55.0], 17_000, {}))["fixed 50: steps a second"]
    assert goal.least == pytest.approx(0.95 * 27.5)


def test_two_fixed_jobs_have_their_shares_and_two_burst_jobs_the_native_sum() -> None:
    first, second, both, slowest = linked_jobs.JOB_FIGURES
    native = NativeJobs([55.0, 55.0], 17_000, {first: 35.0, second: 34.0, both: 69.0, slowest: 39.0})
    fixed = TwoJobs("ddp", 2, (30, 60), "fixed")
    assert fixed.name == "two of ddp on 2 cards, fixed 30 and 60"
    goals = fixed.goals(native)
    assert [goals[name].least for name in (first, second)] == pytest.approx([0.95 * 0.3 * 55, 0.95 * 0.6 * 55])
    goals = TwoJobs("ddp", 2, (50, 50), "burst").goals(native)
    assert goals[both].least == pytest.approx(0.95 * 69)
    assert goals[slowest].most == 45
    answers = [[ends(0, 10, 20, 120), ends(0, 10, 20, 30)], [ends(0, 50), ends(0, 50)]]
    assert list(fixed.figures(answers, 2.0, [55.0, 55.0]).values()) == [2.0, 1.0, 3.0, 50.0]


def test_trainers_are_fixed_beside_a_fixed_job_and_best_effort_otherwise() -> None:
    fixed, burst = (BesideTrainers("ddp", 2, 50, policy) for policy in ("fixed", "burst"))
    assert [asked for _, asked in fixed.tenants] == [(50, "fixed"), (40, "fixed")]
    assert [asked for _, asked in burst.tenants] == [(50, "burst"), (None, "best-effort")]
    assert [asked for _, asked in BesideTrainers("ddp", 2, 80, "fixed").tenants] == [(80, "fixed"), (20, "fixed")]
    steps, trainers = linked_jobs.TRAINER_FIGURES
    native = NativeJobs([55.0, 20.0], 17_000, {})
    assert fixed.figures([[ends(*range(10))], [ends(0, 1, 2, 3), ends(0, 1)]], 1.0, [55.0, 20.0]) == {
        steps: 10.0,
        trainers: 10.0,
    }
    assert fixed.goals(native)[trainers].least == pytest.approx(38)
    assert burst.goals(native).keys() == {steps}
    assert burst.goals(native)[steps].most == float("inf")


def test_a_job_without_two_steps_is_as_slow_as_the_measurement() -> None:
    assert slowest_ms([], 1e6, 3.0) == slowest_ms([5], 1e6, 3.0) == 3000


def test_jobs_of_frameworks_are_measured_only_when_they_are_named() -> None:
    assert limiter_jobs.named([]) == list(linked_jobs.JOBS)
    assert limiter_jobs.named(["training", "frameworks"]) == ["training", *JOBS]
    asked = argparse.Namespace(cards=2, shares=[30, 50], second_share=None, policy="burst", beside=["job", "trainers"])
    two, trainers = limiter_jobs.mixes_of("fsdp", asked)
    assert two == [TwoJobs("fsdp", 2, (share, share), "burst") for share in (30, 50)]
    assert trainers == [BesideTrainers("fsdp", 2, share, "burst") for share in (30, 50)]


def test_simulated_cards_have_no_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMGPU_STATE", "/state")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: True)
    with pytest.raises(SkippedError, match="real cards"):
        jobs.check_runs(JOBS["ddp"], "nccl")
