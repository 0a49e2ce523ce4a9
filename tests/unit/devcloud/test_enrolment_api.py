"""Enrolment over HTTP: one request at a time."""

import asyncio
import threading

import httpx
from starlette.applications import Starlette

from edge.devcloud.enrolment.service import EnrolmentRefused
from edge.devcloud.http.enrolment_api import EnrolApi, EnrolmentPlace

PLACE = EnrolmentPlace(
    "cloud.example", 8883, 8884, "default", "tools", "https://cloud.example:8443", "PEM"
)
REDEEM = {"v": 1, "edge_id": "edge-1", "secret": "00" * 16, "request_id": "r1", "csr": None}


class BusyDesk:
    """A service that is busy with a redemption until released."""

    def __init__(self):
        self.entered, self.go, self.inside = threading.Event(), threading.Event(), False

    def redeem(self, *_args, **_more):
        self.inside = True
        self.entered.set()
        self.go.wait(30)
        self.inside = False
        raise EnrolmentRefused(404, "CODE_UNKNOWN", "There is no such code")


async def test_a_code_is_not_made_while_another_one_is_redeemed():
    enrolment, seen = BusyDesk(), []

    def code(life_s, edge_id):
        seen.append((enrolment.inside, life_s, edge_id))
        return "glassd:code"

    async def joined():
        return None

    routes = EnrolApi(enrolment, PLACE, code=code, joined=joined).routes()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(Starlette(routes=routes)), base_url="http://c"
    ) as client:
        redeeming = asyncio.create_task(client.post("/enrol/v1/redeem", json=REDEEM))
        assert await asyncio.to_thread(enrolment.entered.wait, 30)
        making = asyncio.create_task(
            client.post("/devcloud/codes", json={"life_s": 60, "edge_id": "edge-2"})
        )
        for _ in range(100):  # all the turns it needs to be there, were nobody at the enrolment
            await asyncio.sleep(0)
        enrolment.go.set()
        assert (await redeeming).status_code == 404
        assert (await making).json() == {"code": "glassd:code", "expires_in_s": 60}
    assert seen == [(False, 60.0, "edge-2")]
