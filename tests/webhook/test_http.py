"""What the API server gets over HTTP, whatever it (or anybody else) posts (cases C07, C33 and C35)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import jsonpatch
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from starlette.testclient import TestClient

from groups.workloads.rules import Rules
from tests.webhook.reviews import PG, POLICY, SZ, pod, review, workload
from webhook.app import Readiness, create_app
from webhook.decide import Policy

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(POLICY), raise_server_exceptions=True) as client:
        yield client


def post(client: TestClient, body: Any) -> dict[str, Any]:
    """Post a review; the response in a well-formed answer."""
    answer = client.post("/mutate?timeout=5s", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert (told["apiVersion"], told["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = told["response"]
    assert response["uid"] == body["request"]["uid"]
    assert ("patch" in response) == ("patchType" in response)
    return response


def patch_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    assert response["patchType"] == "JSONPatch"
    patch = json.loads(base64.b64decode(response["patch"], validate=True))
    assert isinstance(patch, list)
    return patch


def test_a_patch_comes_as_base64_of_a_json_array(client: TestClient) -> None:
    """Rule W7."""
    job = workload("Job", "train", parallelism=2, completions=2)
    response = post(client, review(job, namespace="team-a"))
    assert response["allowed"] is True
    after = jsonpatch.JsonPatch(patch_of(response)).apply(job)
    assert after["spec"]["template"]["metadata"]["labels"] == {PG: "fluence-group-team-a-train", SZ: "2"}


def test_an_answer_without_a_patch_has_neither_field(client: TestClient) -> None:
    """Rule W9."""
    response = post(client, review(pod({"name": "p"}, scheduler="volcano")))
    assert response == {"uid": "u-1", "allowed": True}


def test_a_denial_is_a_200_with_code_and_sentence(client: TestClient) -> None:
    """Case C04, rules W6 and W11."""
    response = post(client, review(workload("Job", "bad", metadata={"labels": {SZ: "abc"}})))
    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    assert SZ in response["status"]["message"]
    assert "patch" not in response


def test_a_number_as_a_label_is_a_200_with_a_denial(client: TestClient) -> None:
    """Case C07."""
    response = post(client, review(pod({"name": "p", "labels": {SZ: 5}})))
    assert response["allowed"] is False
    assert "quoted string" in response["status"]["message"]


def test_a_deletion_has_no_object_and_is_allowed(client: TestClient) -> None:
    """Case C33."""
    assert post(client, review(None, operation="DELETE"))["allowed"] is True


def test_fields_that_we_do_not_know_are_accepted(client: TestClient) -> None:
    """Rule W1: the API server's next release will send more."""
    body = review(pod({"name": "p"}))
    body["request"] |= {"userInfo": {"username": "x"}, "options": None, "oldObject": None, "novelty": [1]}
    body["novelty"] = {}
    assert post(client, body)["allowed"] is True


GOOD = review(pod({"name": "p"}))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b" \n", "empty", id="blank"),
        pytest.param(b"{", "AdmissionReview", id="cut"),
        pytest.param(b"null", "AdmissionReview", id="null"),
        pytest.param(b"[]", "AdmissionReview", id="list"),
        pytest.param(b"\xff\xfe\x00", "AdmissionReview", id="no-utf-8"),
        pytest.param(b"[" * 100_000, "AdmissionReview", id="deep"),
        pytest.param(b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "AdmissionReview", id="deep-maps"),
        pytest.param(json.dumps({**GOOD, "request": None}).encode(), "request", id="no-request"),
        pytest.param(
            json.dumps({k: v for k, v in GOOD.items() if k != "request"}).encode(),
            "request",
            id="request-missing",
        ),
        pytest.param(json.dumps({**GOOD, "request": {}}).encode(), "uid", id="no-uid"),
        pytest.param(
            json.dumps({**GOOD, "apiVersion": "admission.k8s.io/v1beta1"}).encode(),
            "admission.k8s.io/v1beta1",
            id="v1beta1",
        ),
        pytest.param(json.dumps({**GOOD, "kind": "TokenReview"}).encode(), "TokenReview", id="another-kind"),
        pytest.param(
            json.dumps({**GOOD, "request": {**GOOD["request"], "object": [1]}}).encode(),
            "request.object",
            id="odd-object",
        ),
        pytest.param(
            b'{"apiVersion": "\\ud800", "kind": "\\udfff"}', "AdmissionReview", id="lone-surrogates"
        ),
    ],
)
def test_a_body_that_is_no_review_is_a_400_that_says_why(client: TestClient, body: bytes, says: str) -> None:
    """Case C35."""
    answer = client.post("/mutate", content=body, headers=JSON)
    assert answer.status_code == 400
    assert says in answer.text
    assert len(answer.text) < 500


@pytest.mark.parametrize("media_type", ["text/plain", "application/yaml", "", "application/jsonx"])
def test_another_content_type_is_a_415(client: TestClient, media_type: str) -> None:
    """Case C35."""
    answer = client.post("/mutate", content=json.dumps(GOOD), headers={"Content-Type": media_type})
    assert answer.status_code == 415
    assert "application/json" in answer.text


def test_the_content_type_may_name_a_charset(client: TestClient) -> None:
    answer = client.post(
        "/mutate", content=json.dumps(GOOD), headers={"Content-Type": "Application/JSON; charset=utf-8"}
    )
    assert answer.status_code == 200


def test_anything_but_post_is_a_405(client: TestClient) -> None:
    """Case C35."""
    assert client.get("/mutate").status_code == 405


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_above_the_limit_is_a_413(declared: bool) -> None:
    """Rule W4: whether the length is declared or only found out."""
    client = TestClient(create_app(POLICY, max_body_bytes=1000))
    body: Any = b"x" * 1001 if declared else iter([b"x" * 600, b"x" * 600])
    assert client.post("/mutate", content=body, headers=JSON).status_code == 413
    huge = {**JSON, "Content-Length": "9" * 5000}
    assert client.post("/mutate", content=b"{}", headers=huge).status_code == 413


def test_the_largest_object_of_an_api_server_is_taken(client: TestClient) -> None:
    """Rule W4: 3 MiB, and as much again on an update."""
    body = review(pod({"name": "p", "annotations": {"a": "x" * (7 * 2**20)}}))
    assert post(client, body)["allowed"] is True


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(st.binary(max_size=50), st.text(max_size=50).map(lambda t: json.dumps({"request": t}).encode()))
)
def test_no_body_is_answered_with_a_5xx(client: TestClient, body: bytes) -> None:
    """Case C35: the process stays up, and says what is wrong."""
    assert client.post("/mutate", content=body, headers=JSON).status_code in (200, 400)


class _Broken(Rules):
    def find(self, api_version: str, kind: str) -> None:
        raise RuntimeError("a fault of ours")


def test_a_fault_of_ours_lets_the_object_through_unchanged() -> None:
    """A webhook must never block an object because of itself; the controller picks its pods up later."""
    client = TestClient(create_app(Policy(rules=_Broken((), "test"))))
    response = post(client, review(pod({"name": "p"})))
    assert response["allowed"] is True
    assert "patch" not in response
    assert response["warnings"]


def count(kind: str, decision: str) -> float:
    labels = {"kind": kind, "decision": decision}
    return REGISTRY.get_sample_value("fluence_admission_reviews_total", labels) or 0.0


def test_reviews_are_counted_by_kind_and_decision(client: TestClient) -> None:
    before = {key: count(*key) for key in [("Job", "labelled"), ("Job", "denied"), ("other", "unchanged")]}
    post(client, review(workload("Job", "j")))
    post(client, review(workload("Job", "j", metadata={"labels": {SZ: "abc"}})))
    post(client, review({"apiVersion": "example.com/v1", "kind": "Anything", "metadata": {"name": "c"}}))
    assert {key: count(*key) - before[key] for key in before} == dict.fromkeys(before, 1.0)
    assert "fluence_admission_review_seconds_bucket" in client.get("/metrics").text


def test_readiness_is_what_the_process_says() -> None:
    readiness = Readiness()
    client = TestClient(create_app(POLICY, readiness))
    assert client.get("/healthz").status_code == 200
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "starting" in answer.text
    readiness.ready = True
    assert client.get("/readyz").status_code == 200


def test_the_openapi_of_the_server_names_the_review(client: TestClient) -> None:
    told = client.get("/openapi.json").json()
    assert "/mutate" in told["paths"]
