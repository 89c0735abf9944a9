"""What the webhook says of hostile texts: a decision, in a bounded message without control characters."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings

from tests.hostile_pods import tenants
from tests.webhook import builders
from tests.webhook.test_hostile_pods import decided

MAX_MESSAGE = 30_000


@settings(max_examples=60, deadline=None)
@given(tenants.unseen)
def test_a_message_is_bounded_and_printable(pod: dict[str, Any]) -> None:
    for path in ("/mutate", "/validate"):
        answer = asyncio.run(decided(path, json.dumps(pod).encode()))
        assert answer.status_code == 200
        response = builders.response(answer.content)
        message = (response.get("status") or {}).get("message", "")
        said = [message, *(response.get("warnings") or [])]
        for line in "\n".join(said).split("\n"):
            assert line.isprintable(), ascii(line[:200])
        assert len(message) <= MAX_MESSAGE
