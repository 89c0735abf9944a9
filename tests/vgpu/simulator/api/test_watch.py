"""Watches of the simulated API server over HTTP."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from vgpu.simulator.api.cluster import InMemoryCluster

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main"}], **spec}}


async def events(http: httpx.AsyncClient, path: str, **params: str) -> AsyncGenerator[dict[str, Any], None]:
    async with http.stream("GET", path, params={"watch": "1", **params}, timeout=30) as response:
        async for line in response.aiter_lines():
            yield json.loads(line)


async def test_a_watch_shows_objects_that_enter_and_leave_its_selection(http: httpx.AsyncClient) -> None:
    start = (await http.get(PODS)).json()["metadata"]["resourceVersion"]
    watch = events(http, PODS, resourceVersion=start, fieldSelector="spec.nodeName=n")
    await http.post(PODS, json=pod("a"))
    await http.post(f"{PODS}/a/binding", json={"metadata": {"name": "a"}, "target": {"name": "n"}})
    added = await anext(watch)
    assert (added["type"], added["object"]["spec"]["nodeName"]) == ("ADDED", "n")
    await http.request("DELETE", f"{PODS}/a", json={"gracePeriodSeconds": 0})
    gone = await anext(watch)
    assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", "a")
    assert int(gone["object"]["metadata"]["resourceVersion"]) > int(added["object"]["metadata"]["resourceVersion"])
    await watch.aclose()


async def test_a_watch_without_a_version_starts_with_all_objects(http: httpx.AsyncClient) -> None:
    await http.post(PODS, json=pod("a"))
    watch = events(http, PODS, sendInitialEvents="true", allowWatchBookmarks="1")
    assert [(await anext(watch))["type"], (await anext(watch))] == [
        "ADDED",
        {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "2",
         "creationTimestamp": None, "annotations": {"k8s.io/initial-events-end": "true"}}}},
    ]  # fmt: skip
    await watch.aclose()


async def test_a_watch_from_a_forgotten_version_fails_with_410(
    http: httpx.AsyncClient, cluster: InMemoryCluster
) -> None:
    await http.post(PODS, json=pod("a"))
    cluster.store.forget()
    found = [event async for event in events(http, PODS, resourceVersion="1")]
    assert [(event["type"], event["object"]["code"]) for event in found] == [("ERROR", 410)]


@pytest.mark.heavy
async def test_a_watch_ends_after_its_time_with_a_bookmark(http: httpx.AsyncClient) -> None:
    found = [e async for e in events(http, PODS, resourceVersion="1", timeoutSeconds="1", allowWatchBookmarks="true")]
    assert [event["type"] for event in found] == ["BOOKMARK"]
