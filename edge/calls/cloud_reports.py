"""Reports to the cloud about calls it knows: how far an answer got, and which of its messages are
dealt with.
"""

from collections import OrderedDict
from typing import Final

from edge.calls.faults import Attempt
from edge.ports import Alongside, UplinkMessage, UplinkPort
from edge.runtime.clock import Clock
from tools_cache.api.tool import DeliveryReport

_NOT_REPORTED: Final = "the delivery of %s cannot be reported to the cloud"
_RECENT: Final = 256
"""Calls whose delivery is still reported when it changes."""


class CloudReports:
    """One per daemon. A disk that takes nothing costs a report, not the answer."""

    def __init__(self, uplink: UplinkPort, clock: Clock) -> None:
        self._uplink = uplink
        self._clock = clock
        self._recent: OrderedDict[str, float] = OrderedDict()

    def follow(self, call_id: str) -> None:
        """From now on, report to the cloud when this call's delivery changes."""
        self._recent[call_id] = self._clock.boot()
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    async def delivery_changed(self, call_id: str, report: DeliveryReport) -> None:
        """Tell the cloud, if it is a call that is followed."""
        if (since := self._recent.get(call_id)) is not None:
            await self.tell(call_id, report, age_s=self._clock.boot() - since)

    def telling(self, call_id: str, report: DeliveryReport, *, age_s: float) -> Alongside | None:
        """Return the report, to be stored with the call; None if none can be made."""
        with Attempt(_NOT_REPORTED, call_id):
            return self._uplink.delivery(call_id, report, age_s=age_s)
        return None

    async def tell(self, call_id: str, report: DeliveryReport, *, age_s: float) -> None:
        with Attempt(_NOT_REPORTED, call_id):
            await self._uplink.tell_delivery(call_id, report, age_s=age_s)

    async def handled(self, message: UplinkMessage) -> None:
        """Mark a message as dealt with; one that cannot be marked comes again after a restart and
        is known then.
        """
        with Attempt("a message of the cloud is not marked as handled"):
            await self._uplink.handled(message)
