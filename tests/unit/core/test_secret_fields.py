"""Secrets are not in what is printed of the values that hold them."""

import pytest

from edge.cloud.enrolment.credentials import Enrolled
from edge.cloud.enrolment.keys import SigningRequest
from edge.cloud.mqtt.connection_types import BrokerOptions
from edge.core.enrolment import EnrolmentGranted
from edge.core.enrolment_code import Offer
from edge.core.tools.user_tools import Ready, RequestPlan, ServerDefinition
from edge.daemon.cloud_config import Certificates

SECRET = "hunter2-hunter2-hunter2"
PLACE = {"edge_id": "e", "tenant": "t", "host": "h", "port": 1}
ENROLMENT = {"enrol_host": "h", "enrol_port": 1}
VALUES = {
    "an enrolment": Enrolled(
        **PLACE, **ENROLMENT, ca_pem="", enrol_ca_pem="", password=SECRET, cloud_token=SECRET
    ),
    "what a cloud granted": EnrolmentGranted(**PLACE, password=SECRET, cloud_token=SECRET),
    "a fresh key": SigningRequest(SECRET, "csr"),
    "a broker": BrokerOptions(host="h", client_id="me", username="u", password=SECRET),
    "a code": Offer(
        broker_host="h",
        broker_port=1,
        **ENROLMENT,
        tenant="t",
        ca_sha256=bytes(32),
        secret=SECRET.encode(),
    ),
    "a server": ServerDefinition(name="s", client_secret=SECRET),
    "plans with their secrets": Ready(
        {"a:b": RequestPlan(url=SECRET)}, {"c:d": "no key"}, frozenset({SECRET})
    ),
    "certificates": Certificates("ca", "cert", "key", {"PASSWORD": SECRET}),
}


@pytest.mark.parametrize("which", VALUES)
def test_a_secret_is_not_printed(which):
    value = VALUES[which]
    assert SECRET not in repr(value)
    assert repr(value).startswith(f"{type(value).__name__}(")
    assert any(f"{name}=" in repr(value) for name in value.__struct_fields__), "the rest is"


def test_the_rest_is_printed_as_always():
    assert repr(SigningRequest(SECRET, "csr")) == "SigningRequest(csr_pem='csr')"
