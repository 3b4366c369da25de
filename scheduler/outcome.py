"""What the answer to a Binding means for the pod: bound, certainly not bound, or not known. Pure.

Owns: the Binding's body and the reading of answers (rules B2, B3, B6). Does not own: the calls.

The difference between "certainly not bound" and "not known" keeps nodes from being given out twice: only
after a definite no may the room of the pod be used for another one.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

from groups.contract import RUN_ANNOTATION
from kube.errors import ApiError, Busy, KubeError, Unauthorized, Unreachable
from scheduler import objects as api
from scheduler.pods import CachedPod


class Verdict(enum.Enum):
    """What is known about a binding after an attempt."""

    BOUND = "the pod is bound to the node that was chosen"
    IMPOSSIBLE = "the pod is not bound to that node and never will be: it is gone, or bound elsewhere"
    REFUSED = "this attempt was not carried out, and the next one would not be either"
    NOT_CARRIED_OUT = "this attempt was not carried out; another one may be"
    UNKNOWN = "this attempt may have been carried out"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict with its reason; `retry_after_s` is what the server asked for."""

    verdict: Verdict
    why: str = ""
    retry_after_s: float = 0.0


BOUND = Outcome(Verdict.BOUND)


def binding_body(pod: CachedPod, node: str, run_uid: str) -> bytes:
    """A Binding with the pod's uid, so that a pod of the same name is never bound in its place (rule B2).

    The API server copies its annotations to the pod (rule B5): the uid of the PodGroup that it is bound for.
    """
    meta = pod.metadata
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": meta.name,
                "namespace": meta.namespace,
                "uid": meta.uid,
                "annotations": {RUN_ANNOTATION: run_uid},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
    )


def outcome_of_error(error: KubeError) -> Outcome:
    """What a failed attempt means. For a conflict (409) the pod itself must be read: rule B3, B6."""
    retry_after_s = (error.retry_after_s or 0.0) if isinstance(error, ApiError) else 0.0
    match error:
        case Unreachable():
            verdict = Verdict.UNKNOWN
        case Busy():
            # 429 is said before a request is carried out; a 5xx can come after it.
            verdict = Verdict.NOT_CARRIED_OUT if error.status == 429 else Verdict.UNKNOWN
        case Unauthorized():
            verdict = Verdict.NOT_CARRIED_OUT
        case ApiError():
            verdict = Verdict.IMPOSSIBLE if error.status == 404 else Verdict.REFUSED
        case _:
            verdict = Verdict.NOT_CARRIED_OUT  # it was not sent: the lease is lost, say
    why = "the pod has gone" if verdict is Verdict.IMPOSSIBLE else str(error)
    return Outcome(verdict, why, retry_after_s)


def outcome_of_pod(found: api.Pod, pod: CachedPod, node: str) -> Outcome | None:
    """What the pod as it was read says of the binding to `node`; None where it still waits to be bound."""
    if found.metadata.uid != pod.metadata.uid:
        return Outcome(Verdict.IMPOSSIBLE, "another pod has taken its name")
    if found.spec.node_name == node:
        return BOUND
    if found.spec.node_name:
        return Outcome(Verdict.IMPOSSIBLE, f"it was bound to {found.spec.node_name} by somebody else")
    if found.metadata.deletion_timestamp is not None or found.is_finished:
        return Outcome(Verdict.IMPOSSIBLE, "the pod is being deleted or has ended")
    return None
