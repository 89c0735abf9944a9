import pytest
from tests.limiter.compute.test_launches import Make, LIMIT, start
from tests.limiter.compute.test_tenants import Tenants, tenants, built_arbiter, idle_node

def test_t(make_container: Make) -> None:
    for cores in (100, 60, 40, 20):
        s = start(make_container(LIMIT, cores))
        print(cores, s("delays.timings(20, 100)"), flush=True)
        print(cores, "known", s("delays.timings(20, 100, new_kernels=False)"), flush=True)
        print(cores, "beside", s("delays.spin_beside_a_stream(5, 100)") if cores==100 else "", flush=True)

def test_n(tenants) -> None:
    for cores, policy in ((40, "burst"), (40, "fixed")):
        one = tenants.add(cores, policy)
        other = tenants.add(40, policy)
        other.session.tell("launches.feed_ahead(500, 20)")
        import time; time.sleep(1)
        print(policy, one.session("delays.timings(20, 100)"), flush=True)
        print(policy, "known", one.session("delays.timings(20, 100, new_kernels=False)"), flush=True)
        other.session.process.kill(); one.session.process.kill()
