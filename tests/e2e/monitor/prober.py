"""A process that asks the parts' sockets five times a second how they are, and prints a JSON line for each answer.

It runs inside the cluster's network namespace, apart from the process of the test, so that a busy test does not make
the answers look late. `late_ms` is how much later than planned the prober itself woke up: the machine was busy.
"""

import http.client
import json
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from vgpu.domain import names

PERIOD_S: Final = 0.2
TIMEOUT_S: Final = 10.0


class Question(NamedTuple):
    """A request to one socket."""

    name: str
    port: int
    secure: bool
    method: str
    path: str
    body: bytes = b""


def questions(nodes: Sequence[str]) -> tuple[Question, ...]:
    """What is asked: each part's health, and a plain filter and mutate request, which change nothing."""
    limits = {names.GPU_MEM: "1", names.SLICE: "1"}
    pod = {
        "metadata": {"name": "prober", "namespace": "default", "uid": "prober"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]},
    }
    asked = json.loads(json.dumps(pod))
    asked["spec"]["containers"][0]["resources"]["limits"] = {names.GPU_MEM: "1"}
    request = {"uid": "u", "operation": "CREATE", "object": asked, "userInfo": {"username": "prober"}}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    call = json.dumps({"Pod": pod, "NodeNames": list(nodes)}).encode()
    return (
        Question("extender healthz", 9870, False, "GET", "/healthz"),
        Question("extender filter", 9870, False, "POST", "/filter", call),
        Question("webhook healthz", 9443, True, "GET", "/healthz"),
        Question("webhook mutate", 9443, True, "POST", "/mutate?timeout=3s", json.dumps(review).encode()),
    )


def ask(question: Question) -> int:
    """Return the status of an answer on a new connection; 0 where none came."""
    connection: http.client.HTTPConnection
    if question.secure:
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", question.port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", question.port, timeout=TIMEOUT_S)
    try:
        headers = {"Content-Type": "application/json"} if question.body else {}
        connection.request(question.method, question.path, question.body or None, headers)
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return 0
    else:
        return answer.status
    finally:
        connection.close()


def repeat(question: Question) -> None:
    """Ask for ever, at the times planned; a slow answer delays the next question and is not asked again meanwhile."""
    planned = time.monotonic()
    while True:
        planned = max(planned + PERIOD_S, time.monotonic())
        time.sleep(max(0.0, planned - time.monotonic()))
        started = time.monotonic()
        status = ask(question)
        taken = time.monotonic() - started
        line = {
            "at": round(time.time() - taken, 3),
            "what": question.name,
            "ms": round(taken * 1000, 2),
            "status": status,
            "late_ms": round((started - planned) * 1000, 2),
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Start a thread for each question; the arguments are the names of the nodes."""
    threads = [threading.Thread(target=repeat, args=(question,)) for question in questions(sys.argv[1:])]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    main()
