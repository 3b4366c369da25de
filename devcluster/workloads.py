"""The annotations that control fake pods and nodes; kwok follows them as stages.yaml says."""

from typing import Final, Literal

from groups.contract import ANNOTATION_PREFIX

#: How long a pod runs: a Go duration such as `500ms`, `2s`, `1m`.
RUN_ANNOTATION: Final = ANNOTATION_PREFIX + "devcluster-run"
#: How a pod ends.
OUTCOME_ANNOTATION: Final = ANNOTATION_PREFIX + "devcluster-outcome"
#: "false" on a node: it does not become Ready until the annotation is changed.
READY_ANNOTATION: Final = ANNOTATION_PREFIX + "devcluster-ready"

Outcome = Literal["succeed", "fail", "never"]


def run_annotations(run: str | None = None, outcome: Outcome | None = None) -> dict[str, str]:
    """The annotations of a pod (template) that runs for `run` and ends with `outcome`."""
    wanted = {RUN_ANNOTATION: run, OUTCOME_ANNOTATION: outcome}
    return {key: value for key, value in wanted.items() if value is not None}
