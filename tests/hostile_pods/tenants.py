"""Hypothesis strategies of pods as hostile tenants write them: names, labels, annotations and texts of every kind.

`admissible` draws what the API server stores, where names and labels have a grammar and other texts have none;
`unseen` draws what a webhook is asked about before the API server validates it.
"""

from typing import Any, Final

from hypothesis import strategies as st

from tests import strategies
from vgpu.domain import names

Json = dict[str, Any]

ESCAPES: Final = ("\x1b[2J\x1b[31m", "\x1b]0;owned\x07", "\x9b2J", "\r\nroot: ok", "\u202egpj", "a\0b", "\u2028", "\t")
FORMULAS: Final = ("=cmd|' /C calc'!A0", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", '";=1', ",=1")
MARKUP: Final = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', 'x="1"} 1\nvgpu_card_healthy 0', "\\")
_LONG: Final = st.integers(1, 6_000).map(lambda length: "x" * length)

texts = st.one_of(st.text(max_size=300), st.sampled_from([*ESCAPES, *FORMULAS, *MARKUP]), _LONG)
_LABEL: Final = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
_SUBDOMAIN: Final = st.lists(_LABEL, min_size=1, max_size=8).map(".".join).filter(lambda name: len(name) <= 253)
_LONGEST: Final = ".".join(["a" * 63] * 3 + ["a" * 61])
_VALUE: Final = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", fullmatch=True)
dns_names = st.one_of(_SUBDOMAIN, st.just(_LONGEST))
label_names = st.one_of(_LABEL, st.just("a" * 63))
_ANNOTATIONS: Final = st.sampled_from((*names.USER_ANNOTATIONS, *names.LIVE_ANNOTATIONS, "example.com/note"))
_AMOUNTS: Final = st.sampled_from(("1", "256", "1024", "0", "16Gi", "1500m", "9" * 30, "-1"))


def _pod(key: Any, value: Any, name: Any, container: Any, resource: Any, amount: Any) -> st.SearchStrategy[Json]:
    def made(drawn: Json) -> Json:
        pod = strategies.pod(strategies.container(drawn["container"], gpu_mem=1024), uid="hostile")
        pod["metadata"] |= {
            "name": drawn["name"],
            "namespace": "hostile",
            "labels": drawn["labels"],
            "annotations": drawn["annotations"],
            "ownerReferences": [{"kind": drawn["kind"], "name": drawn["owner"], "controller": True, "uid": "o"}],
        }
        (main,) = pod["spec"]["containers"]
        main["resources"]["limits"] |= drawn["resources"]
        main |= {"image": drawn["text"], "env": [{"name": drawn["text"], "value": drawn["text"]}]}
        pod["spec"] |= {"nodeSelector": drawn["selector"], "priorityClassName": drawn["name"]}
        return pod

    return st.fixed_dictionaries({
        "name": name, "container": container, "kind": texts, "owner": texts, "text": texts,
        "labels": st.dictionaries(key, value, max_size=6),
        "selector": st.dictionaries(key, value, max_size=2),
        "annotations": st.dictionaries(_ANNOTATIONS, texts, max_size=4),
        "resources": st.dictionaries(resource, amount, max_size=2),
    }).map(made)  # fmt: skip


admissible = _pod(
    _LABEL, _VALUE, dns_names, _LABEL, st.sampled_from((*names.USER_RESOURCES, f"{names.DOMAIN}/typo")), _AMOUNTS
)
unseen = _pod(texts, texts, texts, texts, texts.map(lambda text: f"{names.DOMAIN}/{text}"), texts)
