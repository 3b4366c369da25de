"""What holds of every decision, whatever the object contains."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from groups.contract import SIZE_FROM_ANNOTATION, is_group_name, parse_group_size
from tests.webhook.reviews import (
    PG,
    SZ,
    applied,
    decided,
    good_objects,
    gvk,
    objects,
    odd,
    request,
    template_labels,
)
from webhook.decide import UNCHANGED
from webhook.review import read_review, write_answer


def without_our_labels(obj: Any) -> Any:
    """A copy without PG, SZ, the mark of a counted size, and what had to be made to hold them."""
    obj = copy.deepcopy(obj)
    holders = [obj] if obj["kind"] == "Pod" else [obj, obj["spec"]["template"]]
    for holder in holders:
        metadata = holder.get("metadata")
        if not isinstance(metadata, dict):
            if metadata is None:
                holder.pop("metadata", None)
            continue
        if isinstance(labels := metadata.get("labels"), dict):
            labels.pop(PG, None)
            labels.pop(SZ, None)
        if isinstance(annotations := metadata.get("annotations"), dict):
            annotations.pop(SIZE_FROM_ANNOTATION, None)
        for field in ("labels", "annotations"):
            if not metadata.get(field):
                metadata.pop(field, None)
        if not metadata:
            holder.pop("metadata")
    return obj


@settings(deadline=None)
@given(objects())
def test_every_answer_is_a_denial_with_a_sentence_or_a_patch_that_applies(obj: dict[str, Any]) -> None:
    """Rules W5 to W8, case C10: nulls, missing parts and odd types are answered like anything else."""
    before = copy.deepcopy(obj)
    decision = decided(obj)
    if decision.allowed:
        applied(obj, decision)
    else:
        assert 400 <= decision.code < 500
        assert decision.message
        assert not decision.patch
    assert obj == before


@settings(deadline=None)
@given(objects())
def test_applying_twice_is_applying_once(obj: dict[str, Any]) -> None:
    """Rule W18: the API server may call again after another webhook."""
    decision = decided(obj)
    if decision.allowed:
        again = decided(applied(obj, decision), uid="another")
        assert again.allowed
        assert not again.patch


@settings(deadline=None)
@given(objects())
def test_nothing_but_the_labels_and_their_mark_ever_changes(obj: dict[str, Any]) -> None:
    """Rule A2, case C09: a foreign label that goes makes a ReplicaSet lose its pod."""
    decision = decided(obj)
    if decision.patch:
        assert without_our_labels(applied(obj, decision)) == without_our_labels(obj)


@settings(deadline=None)
@given(good_objects())
def test_an_object_that_opted_in_ends_with_two_legal_labels(obj: dict[str, Any]) -> None:
    """Rules A1, A3, A7."""
    labels = template_labels(applied(obj, decided(obj)))
    assert is_group_name(labels[PG])
    assert parse_group_size(labels[SZ])


@settings(deadline=None)
@given(good_objects())
def test_a_valid_value_of_the_user_is_never_rewritten(obj: dict[str, Any]) -> None:
    """Rule A3: on the template it stays, on the object it fills the template's gap."""
    given_on_object = (obj["metadata"].get("labels") or {}) if isinstance(obj["metadata"], dict) else {}
    template = obj if obj["kind"] == "Pod" else obj["spec"]["template"]
    given_on_template = (template.get("metadata") or {}).get("labels") or {}
    result = applied(obj, decided(obj))
    for key in (PG, SZ):
        expected = given_on_template.get(key) or given_on_object.get(key)
        if expected:
            assert template_labels(result)[key] == expected
    if obj["kind"] != "Pod":
        assert result["metadata"] == obj["metadata"]


@settings(deadline=None)
@given(objects(), st.one_of(st.none(), st.sampled_from(["default-scheduler", "volcano", ""]), odd))
def test_objects_of_other_schedulers_are_never_touched_or_judged(obj: dict[str, Any], scheduler: Any) -> None:
    """Rule A2, case C30."""
    template = obj if obj["kind"] == "Pod" else obj["spec"]["template"]
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return
    template["spec"]["schedulerName"] = scheduler
    assert decided(obj) == UNCHANGED


@settings(deadline=None)
@given(objects())
def test_what_is_decided_can_be_sent(obj: dict[str, Any]) -> None:
    """Rules W5 and W7: the same uid, a patch with its type or neither, and plain JSON."""
    asked = request(obj, uid="the-uid")
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": msgspec.to_builtins(asked),
    }
    read = read_review(json.dumps(body).encode())
    assert read.object == obj
    assert read.kind == gvk(obj)
    answer = json.loads(write_answer(read.uid, decided(obj)))
    response = answer["response"]
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert response["uid"] == "the-uid"
    assert ("patch" in response) == ("patchType" in response)
    assert response["allowed"] or response["status"]["message"]
