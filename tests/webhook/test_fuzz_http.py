"""The server's own description, tried by schemathesis: whatever is sent, no answer is a 5xx."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.webhook.reviews import POLICY
from webhook.app import create_app

schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(POLICY))


@schema.parametrize()
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_the_server_says_of_itself_is_so(case: schemathesis.Case) -> None:
    """Rule W6: a 5xx would be a failed call, and with failurePolicy Fail an object that cannot be created."""
    case.call_and_validate(
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ]
    )
