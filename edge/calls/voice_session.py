"""What of the voice session outlives the daemon, and the message that is shown when a session
starts.
"""

import asyncio
import logging
from typing import Final

from edge.calls.dependencies import CallPorts
from edge.calls.faults import Attempt
from edge.core.session import SessionController
from edge.runtime.events import DeliveryChanged
from edge.runtime.first_completed import Tasks
from edge.storage.notes import Notes
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import Delivery, DeliveryReport, Json, ToolResponse

_log: Final = logging.getLogger(__name__)
NOTE: Final = "voice.session"
SHOWN_S: Final = 120.0
"""The longest wait for the lens to be free; the stage itself gives up after 60 s."""
_ON_ITS_WAY: Final = frozenset({Delivery.QUEUED, Delivery.SENT})
_REACHED: Final = frozenset({Delivery.ACKNOWLEDGED, Delivery.SHOWN, Delivery.SPOKEN})


async def restore(controller: SessionController, notes: Notes) -> None:
    """Continue the stored voice session. Call it before any service starts: a transcript that is
    suppressed must not be published first. A note that cannot be read counts as suppressed.
    """
    problem = (
        "transcripts are suppressed until a tool allows them or starts a voice session, because "
        "the stored voice session cannot be read"
    )
    with Attempt(problem, level=logging.ERROR) as reading:
        controller.restore(await notes.get(NOTE))
    if reading.error is not None:
        controller.restore({"suppress_transcript": True})


class VoiceSession:
    """One per daemon. `controller` holds the state.

    A pending message is struck off the disk after the glasses have shown or spoken it, so it is
    never lost: what could not be shown waits for the next start of a session, over restarts too. A
    daemon that dies between the glasses' report and the write shows it a second time, which does
    less harm than never.
    """

    def __init__(self, ports: CallPorts, tasks: Tasks) -> None:
        self._notes = ports.notes
        self._stage = ports.stage
        self._bus = ports.bus
        self._clock = ports.clock
        self._tasks = tasks
        self.controller = ports.session
        self._on_disk = self.controller.lasting()
        self._due = False
        self._showing: asyncio.Task[None] | None = None

    async def keep(self) -> None:
        """Write down what must outlive the daemon, if it changed."""
        lasting = self.controller.lasting()
        if lasting == self._on_disk:
            return
        # Without it the change holds all the same, until the daemon ends.
        with Attempt("a change of the voice session is not on disk"):
            await self._notes.put(NOTE, lasting or None)
            self._on_disk = lasting

    def started(self) -> None:
        """A session began, and what began it was answered: now the pending message is due."""
        self._due = True
        self.go_on()

    def go_on(self) -> None:
        """Show the message that is due, if there is one and it is not on its way already."""
        text = self.controller.snapshot().pending_message
        busy = self._showing is not None and not self._showing.done()
        if self._due and text and self._tasks.open and not busy:
            self._showing = self._tasks.create_task(
                self._show(text), name="session.pending_message"
            )

    async def _show(self, text: str) -> None:
        with Attempt("the pending message could not be shown", bug=True) as showing:
            report = await self._delivered(text)
        if showing.error is not None:
            return
        if report.state not in _REACHED:
            _log.info("the pending message waits: %s", report.reason or report.state.value)
            return
        self._due = False
        self.controller.forget_message(text)
        await self.keep()

    async def _delivered(self, text: str) -> DeliveryReport:
        """Show and speak it after what is being read."""
        name = f"pending-message-{round(self._clock.boot() * 1000)}"
        audio: dict[str, Json] = (
            {"suppressVoiceResponse": True}
            if self.controller.silent(self._clock.boot())
            else {"text": text}
        )
        display: dict[str, Json] = {"layout": "text_wall", "text": text, "priority": "low"}
        with self._bus.listen(calls=False) as events:  # first: nothing is missed
            report = await self._stage.present(
                name, ToolResponse(data={"text": text}, render={"display": display, "audio": audio})
            )
            try:
                async with timeout(SHOWN_S):
                    if report.state in _ON_ITS_WAY:
                        async for event in events:
                            if isinstance(event, DeliveryChanged) and event.call_id == name:
                                report = event.report
                                if report.state not in _ON_ITS_WAY:
                                    break
            except TimeoutError:
                _log.warning("the pending message was not shown in %.0f s", SHOWN_S)
        return report
