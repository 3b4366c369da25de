"""Ten thousand random objects, of every kind in the table, whole and damaged, through bytes and back."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any, Final

import jsonpatch
import pytest
from hypothesis import HealthCheck, given, settings

from groups.contract import SIZE_FROM_ANNOTATION, SIZE_FROM_RULE, is_group_name, parse_group_size
from tests.webhook.reviews import PG, POLICY, SZ, Object, review
from tests.webhook.shapes import objects
from webhook.decide import Decision, decide
from webhook.review import read_review, write_answer

OBJECTS: Final = 10_000
PARTS: Final = 5


def answered(obj: Object, uid: str) -> dict[str, Any]:
    """The response to the creation of `obj`, checked by the rules for responses."""
    body = json.dumps(review(obj, uid=uid)).encode()
    request = read_review(body)
    decision = decide(request, POLICY)
    assert isinstance(decision, Decision)
    told = json.loads(write_answer(request.uid, decision))
    # W5: the same version, kind and uid.
    assert told.keys() == {"apiVersion", "kind", "response"}
    assert (told["apiVersion"], told["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = told["response"]
    assert response["uid"] == uid
    # W7: both or neither.
    assert ("patch" in response) == ("patchType" in response)
    # W11: a denial has a code and a sentence, and nothing else has.
    assert ("status" in response) == (not response["allowed"])
    if not response["allowed"]:
        assert "patch" not in response
        assert 400 <= response["status"]["code"] < 500
        assert response["status"]["status"] == "Failure"
        assert response["status"]["message"].strip()
    # W12: short, plain, each once.
    warnings = response.get("warnings", [])
    assert len(set(warnings)) == len(warnings)
    assert sum(map(len, warnings)) <= 4096
    for warning in warnings:
        assert 0 < len(warning) <= 120
        assert warning.isprintable()
    return response


def patched(obj: Object, response: dict[str, Any]) -> Object:
    """What the API server makes of it (W8), with nothing changed but labels of ours that were not there."""
    if "patch" not in response:
        return obj
    assert response["patchType"] == "JSONPatch"
    operations = json.loads(base64.b64decode(response["patch"], validate=True))
    assert isinstance(operations, list)
    assert operations
    for operation in operations:
        assert operation["op"] == "add"
        check_added(obj, operation)
    result: Object = jsonpatch.JsonPatch(operations).apply(copy.deepcopy(obj))
    return result


def check_added(obj: Object, operation: dict[str, Any]) -> None:
    """Only labels and one annotation of ours, and what has to hold them, are added (A2, A3)."""
    pointer = jsonpatch.JsonPointer(operation["path"])
    before = pointer.resolve(obj, None)
    field, last = pointer.parts[-2:] if len(pointer.parts) > 1 else ("", pointer.parts[-1])
    if last in ("metadata", "labels", "annotations") and isinstance(operation["value"], dict):
        assert before is None
        holder = operation["value"] if last == "metadata" else {last: operation["value"]}
        assert set(holder) <= {"labels", "annotations"}
    else:
        assert not before or field == "annotations"
        holder = {field: {last: operation["value"]}}
    assert holder.get("annotations", {}).items() <= {SIZE_FROM_ANNOTATION: SIZE_FROM_RULE}.items()
    labels = holder.get("labels", {})
    assert set(labels) <= {PG, SZ}
    assert is_group_name(labels.get(PG, "g"))
    assert parse_group_size(labels.get(SZ, "1"))


@pytest.mark.parametrize("part", range(PARTS))
def test_every_object_gets_an_answer_that_holds(part: int) -> None:
    """Rules W5 to W12, W18, and A2 to A4, for whatever comes."""

    @settings(
        max_examples=OBJECTS // PARTS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(objects())
    def check(obj: Object) -> None:
        before = copy.deepcopy(obj)
        response = answered(obj, "first")
        assert obj == before
        if not response["allowed"]:
            return
        once = patched(obj, response)
        again = answered(once, "second")
        assert again["allowed"]
        assert "patch" not in again

    check()
