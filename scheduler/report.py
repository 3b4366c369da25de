"""What users read about their gangs: conditions of pods, one condition of the PodGroup, and events.

Owns: which object gets which condition and event. Does not own: the decisions, the sentences about room
(`scheduler_core.reasons`), or when a condition is written (`scheduler.conditions`) or an event
(`kube.events`).

Events about a whole group go to its PodGroup, and to a few of its pods as examples (case C117). Every pod
that waits in a complete group has the condition with the reason, since a cluster autoscaler reads it (rules
F1, F2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from groups.contract import POD_GROUP_API_VERSION, ConditionReason, EventReason, Why
from groups.podgroup import PodGroup
from kube.events import EventRecorder, ObjectReference, cut_note
from scheduler.conditions import StatusWriter
from scheduler.gangs import GangState
from scheduler.pods import CachedPod
from scheduler_core.reasons import Refusal

#: So many pods of a group get the events about it, the first by name.
EXAMPLES: Final = 3


class Reporter:
    """Turns decisions into conditions and events."""

    def __init__(self, writer: StatusWriter, recorder: EventRecorder) -> None:
        self._writer = writer
        self._recorder = recorder

    def placing(self, pods: Iterable[CachedPod]) -> None:
        """These members are about to be bound: a refusal that still waits to be written is void."""
        for pod in pods:
            self._writer.forget(pod.metadata.uid)

    def bound(self, pod: CachedPod, node: str) -> None:
        """A member is bound: the event that `kubectl describe` shows (rule E5)."""
        self._recorder.record(
            _pod_reference(pod),
            reason=EventReason.SCHEDULED,
            action="Binding",
            note=f"Successfully assigned {pod.metadata.key} to {node}",
            routine=True,
        )

    def bind_failed(self, pod: CachedPod, why: str) -> None:
        """A member was certainly not bound; the group is tried again."""
        self._recorder.record(
            _pod_reference(pod),
            reason=EventReason.FAILED_SCHEDULING,
            action="Binding",
            note=f"{Why.BIND_FAILED}: {why}",
            kind="Warning",
        )

    def refused(self, state: GangState, refusal: Refusal, group: PodGroup | None) -> None:
        """The gang is complete and does not fit: say so on the group and on every pod (F1, F2, C116)."""
        message = refusal.message
        self._group_waits(state, group, refusal.why, message)
        for pod in state.candidates:
            self._writer.pod_waits(pod, ConditionReason.UNSCHEDULABLE, message)
        self._events(state.candidates, group, EventReason.FAILED_SCHEDULING, message, "Warning")

    def waiting(self, state: GangState, group: PodGroup | None) -> None:
        """The gang cannot be tried yet: events and the group's condition.

        The pods get no condition: with Unschedulable an autoscaler would add nodes that do not help (F2).
        """
        assert state.why is not None
        self._group_waits(state, group, state.why, state.message)
        self._events(state.candidates, group, state.why, state.message, "Normal")

    def complete(self, state: GangState, group: PodGroup | None) -> None:
        """The group has reached its quorum."""
        if group is not None and self._writer.group_status(group) != "True":
            message = f"{state.seen} members are placed, {state.minimum} are needed"
            self._writer.group(group, "True", Why.SCHEDULED, message)

    def scheduler_error(self, state: GangState, group: PodGroup | None, text: str) -> None:
        """The scheduler failed on a gang: say so on its pods and on the group (F1)."""
        self._group_waits(state, group, Why.SCHEDULER_ERROR, text)
        for pod in state.candidates:
            self._writer.pod_waits(pod, ConditionReason.SCHEDULER_ERROR, text)
        self._events(state.candidates, group, EventReason.FAILED_SCHEDULING, text, "Warning")

    def released(self, state: GangState, pods: Iterable[CachedPod]) -> None:
        """The members of a stranded gang are deleted, so that the whole gang queues again (A5b)."""
        message = (
            f"{len(state.holding)} of {state.minimum} members had a node and the others found none within "
            f"{state.timeout_s:.0f} s: these members are deleted, and the group queues again as a whole"
        )
        for pod in pods:
            self._recorder.record(
                _pod_reference(pod), reason=Why.RELEASED, action="Releasing", note=message, kind="Warning"
            )
        if state.group is not None:
            self._record_group(state.group, Why.RELEASED, "Releasing", message, "Warning")
            self._writer.group(state.group, "False", Why.RELEASED, message)

    def _group_waits(self, state: GangState, group: PodGroup | None, why: Why, message: str) -> None:
        """Set the group's condition to False, unless the group has reached its quorum.

        A late member that waits does not change that; only the release of the group does.
        """
        if group is None:
            return
        status = self._writer.group_status(group)
        if status == "True" or (not status and state.had_quorum):
            return
        self._writer.group(group, "False", why, message)

    def _events(
        self,
        pods: tuple[CachedPod, ...],
        group: PodGroup | None,
        reason: str,
        message: str,
        kind: Literal["Normal", "Warning"],
    ) -> None:
        """One event for the group and one for each of the first pods, with the number of the others."""
        if group is not None:
            self._record_group(group, reason, "Scheduling", message, kind)
        others = len(pods) - EXAMPLES
        note = message
        if others > 0:
            more = (
                "1 more pod of this group waits" if others == 1 else f"{others} more pods of this group wait"
            )
            note = cut_note(message, f" ({more}; see the events of the PodGroup)")
        for pod in pods[:EXAMPLES]:
            self._recorder.record(
                _pod_reference(pod), reason=reason, action="Scheduling", note=note, kind=kind
            )

    def _record_group(
        self, group: PodGroup, reason: str, action: str, note: str, kind: Literal["Normal", "Warning"]
    ) -> None:
        meta = group.metadata
        reference = ObjectReference(
            "PodGroup", meta.name, meta.namespace, meta.uid, api_version=POD_GROUP_API_VERSION
        )
        self._recorder.record(reference, reason=reason, action=action, note=note, kind=kind)


def _pod_reference(pod: CachedPod) -> ObjectReference:
    meta = pod.metadata
    return ObjectReference("Pod", meta.name, meta.namespace, meta.uid)
