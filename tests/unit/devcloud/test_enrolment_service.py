"""Enrolment: a code works once, for a while, for one edge; secrets are stored as hashes."""

from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from edge.cloud.enrolment.keys import _make_key
from edge.devcloud.enrolment.pki import Authority, BadRequest
from edge.devcloud.enrolment.service import AGAIN_S, CODE_S, EnrolmentRefused, EnrolmentService

CSR = _make_key("whatever-it-says")["csr_pem"]


class Counter:
    """An enrolment service and its wall clock."""

    def __init__(self, folder):
        self.folder = folder
        self.now = 1_800_000_000.0
        self.authority = Authority(folder)
        self.open()

    def open(self):
        self.enrolment = EnrolmentService(
            self.folder, self.authority, wall=lambda: self.now, life=timedelta(days=1)
        )

    def redeem(self, secret, edge_id="edge-1", *, request="r1", csr=CSR, proof=""):
        return self.enrolment.redeem(secret, edge_id, request_id=request, csr_pem=csr, proof=proof)

    def refused(self, secret, *args, **more):
        with pytest.raises(EnrolmentRefused) as caught:
            self.redeem(secret, *args, **more)
        return caught.value.code


@pytest.fixture
def counter(tmp_path):
    return Counter(tmp_path)


def der_of(pem):
    return x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER)


@pytest.mark.requirement("I4-enrol-once")
def test_a_code_works_once_also_after_a_restart(counter):
    secret = counter.enrolment.issue()
    assert counter.redeem(secret).certificate
    assert counter.refused(secret, "edge-2", request="r2") == "CODE_USED"
    counter.open()
    assert counter.refused(secret, "edge-2", request="r2") == "CODE_USED"
    assert counter.refused(b"0" * 16) == "CODE_UNKNOWN"


def test_a_lost_answer_is_repeated_for_its_request_for_a_while(counter):
    secret = counter.enrolment.issue()
    first = counter.redeem(secret)
    again = counter.redeem(secret)
    assert again.certificate != first.certificate
    assert not counter.enrolment.knows_token(first.token)
    assert counter.enrolment.knows_token(again.token)
    assert counter.refused(secret, request="r2") == "CODE_USED"
    assert counter.refused(secret, "edge-2") == "CODE_USED"
    counter.now += AGAIN_S + 1
    assert counter.refused(secret) == "CODE_USED"


def test_a_revoked_edge_cannot_repeat_its_request(counter):
    secret = counter.enrolment.issue()
    counter.redeem(secret)
    counter.enrolment.revoke("edge-1")
    assert counter.refused(secret) == "EDGE_REVOKED"
    assert counter.enrolment.edges() == []


def test_an_edge_that_enrols_meanwhile_does_not_disturb_who_shows_a_token(counter):
    class Meanwhile(str):
        __slots__ = ()

        def encode(self, *args):
            counter.redeem(counter.enrolment.issue(), f"edge-{len(counter.enrolment.edges()) + 1}")
            return super().encode(*args)

    for each in (1, 2):
        token = counter.redeem(counter.enrolment.issue(), f"edge-{each}").token
    assert counter.enrolment.knows_token(Meanwhile(token))


def test_a_code_expires_and_is_deleted_later(counter):
    secret = counter.enrolment.issue()
    counter.now += CODE_S + 1
    assert counter.refused(secret) == "CODE_EXPIRED"
    counter.now += CODE_S
    counter.enrolment.issue()
    assert counter.refused(secret) == "CODE_UNKNOWN"


def test_an_enrolled_edge_needs_its_token_or_its_own_code(counter):
    token = counter.redeem(counter.enrolment.issue()).token
    stranger = counter.enrolment.issue()
    assert counter.refused(stranger, request="r2") == "EDGE_TAKEN"
    assert counter.refused(stranger, request="r2", proof="guessed") == "EDGE_TAKEN"
    token, old = counter.redeem(stranger, request="r2", proof=token).token, token
    assert counter.refused(counter.enrolment.issue(), proof=old) == "EDGE_TAKEN"
    counter.enrolment.revoke("edge-1")
    assert counter.refused(counter.enrolment.issue(), proof=token) == "EDGE_TAKEN"
    own = counter.enrolment.issue(edge_id="edge-1")
    assert counter.refused(own, "edge-2") == "CODE_OF_ANOTHER"
    assert counter.redeem(own).certificate


def test_a_certificate_has_the_edges_name_and_is_for_clients_only(counter):
    cert = x509.load_pem_x509_certificate(
        counter.redeem(counter.enrolment.issue()).certificate.encode()
    )
    assert [a.value for a in cert.subject] == ["edge-1"]
    assert not cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usages = cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.parametrize(
    "csr",
    [
        "",
        "junk",
        "-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----",
        "x" * 20_000,
    ],
)
def test_a_request_that_cannot_be_signed_does_not_spend_the_code(counter, csr):
    secret = counter.enrolment.issue()
    if csr:
        with pytest.raises(BadRequest):
            counter.redeem(secret, csr=csr)
    assert counter.redeem(secret).certificate


@pytest.mark.requirement("I4-enrol-renewal")
def test_a_renewal_needs_our_certificate_and_an_edge_not_revoked(counter, tmp_path):
    mine = der_of(counter.redeem(counter.enrolment.issue()).certificate)
    assert der_of(counter.enrolment.renew(mine, CSR)) != mine
    theirs = Authority(tmp_path / "other")
    with pytest.raises(EnrolmentRefused, match="Unknown client certificate"):
        counter.enrolment.renew(der_of(theirs.edge("edge-1", CSR, life=timedelta(days=1))), CSR)
    counter.enrolment.revoke("edge-1")
    with pytest.raises(EnrolmentRefused) as caught:
        counter.enrolment.renew(mine, CSR)
    assert caught.value.code == "EDGE_REVOKED"


@pytest.mark.requirement("I4-enrol-secret")
def test_nothing_on_disk_lets_anybody_in(counter, tmp_path):
    secret = counter.enrolment.issue()
    given = counter.redeem(secret, csr=None)
    written = (tmp_path / "desk.json").read_text() + counter.enrolment.passwords()
    assert not [s for s in (secret.hex(), given.password, given.token) if s in written]
    assert (tmp_path / "desk.json").stat().st_mode & 0o077 == 0
    assert (tmp_path / "ca.key").stat().st_mode & 0o077 == 0


def test_who_is_revoked_is_on_no_list(counter):
    counter.redeem(counter.enrolment.issue(), csr=None)
    assert counter.enrolment.edges() == ["edge-1"]
    assert counter.enrolment.passwords().startswith("edge-1:$7$")
    assert counter.enrolment.revoke("edge-1")
    assert (counter.enrolment.edges(), counter.enrolment.passwords()) == ([], "")
    assert not counter.enrolment.revoke("nobody")


def test_a_damaged_document_or_authority_is_said(counter, tmp_path):
    (tmp_path / "desk.json").write_text("{")
    with pytest.raises(OSError, match="move it away"):
        counter.open()
    (tmp_path / "ca.key").write_text("junk")
    with pytest.raises(OSError, match="move it away"):
        Authority(tmp_path)
