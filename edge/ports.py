"""The interfaces through which packages of the daemon use each other, and the values they exchange.

A package gets its ports from `daemon/app.py` and never imports another package of its level. Data
comes in by `async for` and goes out by `await`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, Self

from msgspec import Struct, field

from edge.core.call_state import Submission
from edge.core.grants import Grant
from edge.core.results import TapOffer
from edge.core.tools.snapshot import Snapshot
from firmware_bridge.capabilities import Capabilities
from firmware_bridge.messages import (
    Answer,
    Command,
    Done,
    MicrophoneChunk,
    PhotoFailed,
    PhotoTaken,
    Transcript,
    VoiceNote,
    VoiceNoteFetched,
)
from firmware_bridge.sides import Side
from tools_cache.api.tool import (
    DeliveryReport,
    Json,
    Named,
    ToolCall,
    ToolDefinition,
    ToolResponse,
)

Progress = Callable[[str], Awaitable[None]]
"""Receives the progress texts of a running call."""


# ------------------------------------------------------------------ glasses


class GlassesAway(Exception):
    """There is no ready connection to the glasses now."""


class TapTaken(Exception):
    """Somebody records the packets of the glasses already."""


class SideStatus(Struct, frozen=True):
    """One side of two-sided glasses: `up` or `lost`."""

    state: str = "up"
    battery: int | None = None
    reason: str = ""


class GlassesStatus(Struct, frozen=True):
    """The state of the link. `capabilities` are the last known ones; `stale` while the glasses are
    away.

    `issue` is one word for what is wrong (a `RadioReason`, a `LostReason`, or `mtu_23`), `hint`
    what a person can do about it, `step` what is being done by itself (core/recovery.py).
    """

    state: str = "OFF"
    reason: str = ""
    hint: str = ""
    issue: str = ""
    step: str = ""
    ready: bool = False
    model: str = ""
    firmware: str = ""
    address: str = ""
    mtu: int = 0
    transport: str = ""
    capabilities: Capabilities | None = None
    stale: bool = False
    battery: int | None = None
    case: int | None = None
    """Charge of the charging case in percent, as last reported; None where nothing was."""
    worn: bool | None = None
    voice_notes: tuple[VoiceNote, ...] | None = None
    """Spoken notes that these glasses keep, newest first; None until they said it."""
    attempts: int = 0
    sides: Mapping[Side, SideStatus] = field(default_factory=dict)
    """What two-sided glasses said of their sides on this link; empty for all others."""
    skew_ms: float | None = None
    """Milliseconds between the two sides' acknowledgements of the last command; None for glasses of
    one radio.
    """
    gone_at: float | None = None
    """When a ready link was lost (boot clock); None while there is one, and where there never
    was.
    """
    link: int = 0
    """Connections made ready so far: which one this is; 0 where nobody counts."""
    unseen: str = ""
    """Why nobody sees what is on the lens until it is set otherwise (silent mode, no
    brightness); "" when it can be seen.
    """
    covered: str = ""
    """What of the glasses' own lies over the page for a while (their dashboard); "" when
    nothing does.
    """


class GlassesPort(Protocol):
    """Implemented by `link/manager.py`. What the glasses say comes over the bus as
    `GlassesSaid`.
    """

    def status(self) -> GlassesStatus: ...

    async def request(self, command: Command, *, timeout_s: float = ...) -> Done:
        """Send a command and wait for its answer. Raises `GlassesAway` (also when the link dies
        meanwhile), `CommandRefused`, `CommandTimeout`.
        """

    async def post(self, command: Command) -> None:
        """Send a command that has no answer (`AudioChunk`); waits while too much is unacknowledged.
        Raises `GlassesAway`.
        """

    def listen_to(self, take: Callable[[MicrophoneChunk], None]) -> None:
        """Give the sound of the microphone to `take`, which never waits. There is one taker, and
        sound is in no event.
        """

    def receive_photos(self, take: Callable[[PhotoTaken | PhotoFailed], None]) -> None:
        """Give photos to `take`, which never waits. There is one taker; photos are in no event."""

    def receive_voice_notes(self, take: Callable[[VoiceNoteFetched], None]) -> None:
        """Give spoken notes to `take`, which never waits. There is one taker; what the wearer spoke
        is in no event.
        """


class QuestionWaits(Exception):
    """A question is shown to the wearer, or is the next to be shown."""


class SendPort(Protocol):
    """Implemented by `display/side_commands.py`: commands that change what the wearer sees without
    a page.
    """

    async def send(self, command: Command, *, timeout_s: float) -> Done:
        """Send it unless a question waits. Raises `QuestionWaits`, and what
        `GlassesPort.request` raises.
        """


# ------------------------------------------------------------------ uplink


class UplinkStatus(Struct, frozen=True):
    configured: bool = False
    up: bool = False
    broker: str = ""
    reason: str = ""
    hint: str = ""
    since_s: float = 0.0
    outbox: int = 0
    outbox_oldest_s: float = 0.0


class EnrolRefused(Exception):
    """An enrolment or a renewal failed: what is wrong, and how to fix it. `final`: trying the same
    again fails again.
    """

    def __init__(self, code: str, problem: str, fix: str, *, final: bool = True) -> None:
        super().__init__(problem)
        self.code = code
        self.fix = fix
        self.final = final


class UplinkTooLarge(ValueError):
    """A message of `size` bytes can never be sent: the broker, or MQTT itself, accepts `limit`."""

    size: int
    limit: int


class CallAccepted(Struct, frozen=True):
    """A cloud worker has taken this call."""

    call_id: str


class CallProgress(Struct, frozen=True):
    call_id: str
    text: str


class CallResult(Struct, frozen=True):
    """The answer to a call sent to the cloud; may come long after, even after a restart. `own`: the
    uplink made it itself, because none came.
    """

    call_id: str
    response: ToolResponse
    own: bool = False


class Invoked(Struct, frozen=True):
    """The cloud calls a tool of this daemon. `reply_to` and `as_json` say where and in which form
    to answer.
    """

    call: ToolCall
    reply_to: str
    as_json: bool = False


class InvokeCancelled(Struct, frozen=True):
    call_id: str
    reason: str


class RegistryNotice(Struct, frozen=True):
    """The registry now active in the cloud (retained; received again at every connect)."""

    version: str
    sha256: str
    url: str


UplinkMessage = (
    CallAccepted | CallProgress | CallResult | Invoked | InvokeCancelled | RegistryNotice
)


class Alongside(Struct, frozen=True):
    """What is stored in one transaction with a step of a call, so that no crash falls between the
    two.
    """

    work: Callable[[Any], Any]
    """Runs in the transaction, in the store's thread; it gets the connection."""
    stored: Callable[[Any], None]
    """Called with what `work` returned, once it is on disk."""

    @classmethod
    def all_of(cls, *parts: Self | None) -> Self | None:
        """Return several as one, in this order; None if there are none."""
        there = [part for part in parts if part is not None]
        if not there:
            return None

        def stored(results: Sequence[Any]) -> None:
            for part, result in zip(there, results, strict=True):
                part.stored(result)

        return cls(lambda connection: [part.work(connection) for part in there], stored)


class UplinkPort(Protocol):
    """Implemented by `cloud/mqtt/client.py`. Calls leave through the outbox: stored first, sent
    when there is a link, sent again (same id) until accepted, kept until there is a result or its
    life is over.
    """

    def status(self) -> UplinkStatus: ...

    async def submit(self, call: ToolCall) -> None:
        """Take a call into the outbox; returns when it is on disk. Raises `UplinkBusy`,
        `UplinkTooLarge`.
        """

    def submission(self, call: ToolCall) -> Alongside:
        """Return how a call gets into the outbox together with what is stored of it. Raises
        `UplinkTooLarge`; its work raises `UplinkBusy`.
        """

    async def withdraw(self, call_id: str, reason: str) -> None:
        """Stop sending a call and tell every worker (`cancel`); unknown ids are fine."""

    def messages(self) -> AsyncIterator[UplinkMessage]:
        """Yield messages of the cloud in order, each already on disk if it must come again after a
        restart. One consumer; after handling a message it calls `handled`.
        """

    async def handled(self, message: UplinkMessage) -> None:
        """Mark `message` as handled: it will not come again after a restart."""

    def handling(self, message: UplinkMessage) -> Alongside:
        """Return how `message` is marked as handled together with what became of it."""

    async def answer(self, invoked: Invoked, answer: ToolResponse | str | None) -> None:
        """Send `accepted` (None), progress (str) or the result (ToolResponse) of an invocation. A
        result is durable, and the invocation is handled with it.
        """

    def result(self, invoked: Invoked, response: ToolResponse) -> Alongside:
        """Return how the result of an invocation is sent, and the invocation handled, together
        with what is stored of the call.
        """

    def delivery(self, call_id: str, report: DeliveryReport, *, age_s: float) -> Alongside:
        """Return the report of how far a result got, to be stored together with the call."""

    async def tell_delivery(self, call_id: str, report: DeliveryReport, *, age_s: float) -> None:
        """Tell the cloud soon how far a result got to the wearer; returns when that is on disk."""

    async def announce(self, *, capabilities: Mapping[str, Json] | None, glasses: str) -> None:
        """Publish the retained capability report (when given) and presence
        (`connected|asleep|away|none`); the newest of each is published again on every connect.
        """

    async def tell_event(self, kind: str, data: Mapping[str, Json]) -> None:
        """Publish something the wearer did (`event/{kind}`); best effort while the link is down."""


# ------------------------------------------------------------------ registry and tools


class RegistryPort(Protocol):
    """Implemented by `tools/registry.py`."""

    def snapshot(self) -> Snapshot: ...

    async def catch_up(self) -> None:
        """Wait until a registry that was announced is active; a few seconds at most."""

    def check_args(
        self, definition: ToolDefinition, args: Mapping[str, Json]
    ) -> tuple[dict[str, Json], list[dict[str, str]]]:
        """Fill defaults, then validate: (arguments with defaults, all errors as `{path,
        problem}`, empty when good).
        """


RunTool = Callable[[ToolCall, ToolDefinition, Progress], Awaitable[ToolResponse]]
"""Runs one call of a tool; there is one for each `RouteKind` that a task of this process serves.
Never raises, except for its own cancellation: a fault is an answer too.
"""

TakeLateAnswer = Callable[[ToolDefinition, ToolCall, ToolResponse], Awaitable[None]]
"""Gives a tool the answer of a call that it made and that was `pending` then: (tool, call, answer).
Raises StorageUnavailable if the disk takes nothing now: it is to be given again.
"""

NameArguments = Callable[[ToolDefinition, ToolCall], Awaitable[Mapping[str, Named]]]
"""Returns, by argument, what arguments stand for that a person could not read, such as the id of a
mail: (tool, call). Raises ToolFailure if the tool would refuse the call now, so nobody is to be
asked; it hides all other faults.
"""


# ------------------------------------------------------------------ calls


class Wait(StrEnum):
    """How long `CallsPort.call` waits for the wearer."""

    ANSWER = "answer"
    """until the result is known and the lens has (or has not) acknowledged it"""
    DELIVERY = "delivery"
    """until its delivery is final, speech included"""


class CallsPort(Protocol):
    """Implemented by `calls/orchestrator.py`: one call in, exactly one answer out."""

    async def call(
        self,
        call: ToolCall,
        *,
        progress: Progress | None = None,
        wait: Wait = ...,
        live: bool = ...,
        new_id: bool = ...,
    ) -> ToolResponse:
        """Never raises; cancelling the caller does not cancel the call. `live`: the caller waits on
        a connection that breaks if this process is killed, and may then ask again. `new_id`: the
        call's id was made for it, so that no earlier call has it.
        """

    async def begin(
        self, call: ToolCall, *, progress: Progress | None = None
    ) -> ToolResponse | None:
        """Start a call nobody waits for: None once it is admitted (on disk), else what it was
        answered meanwhile (a refusal, `pending`, CONFIRMATION_REQUIRED with its token). Never
        raises.
        """

    async def confirm(
        self, token: str, *, allow: bool, grant: Grant = ..., call: ToolCall | None = None
    ) -> ToolResponse:
        """Decide a call that waits for a yes; the answer is the call's. `call`, when given, must be
        the same call (tool, arguments, session, user), else MISMATCH. Never raises.
        """

    async def decide(self, call_id: str, *, allow: bool, grant: Grant = ...) -> ToolResponse:
        """The same for a call that is named by its id. Never raises."""

    def questions(self) -> Sequence[Mapping[str, Json]]:
        """The calls that wait for a yes, oldest first: `{call_id, tool, title, args, preview,
        left_s}`.
        """

    async def cancel(self, call_id: str, reason: str) -> bool:
        """Cancel a running call; False when there is none."""

    async def submit(
        self, call_id: str, response: ToolResponse, *, user_id: str, session: str
    ) -> Submission:
        """Submit the result of a pending call; it is on disk when this returns TAKEN."""


class NobodyToAsk(Exception):
    """No glasses can ask the wearer now; the text says why. `for_wearer`: what a wearer reads or
    hears of it, of glasses that are there and cannot ask this.
    """

    def __init__(self, reason: str, for_wearer: str = "") -> None:
        super().__init__(reason)
        self.for_wearer = for_wearer


class Question(Struct, frozen=True):
    """Something only the wearer can decide. `scene` identifies it across reconnects; `allow` and
    `deny` are the words beside tap and double tap (on glasses without a lens: press, and long
    press). `exact`: the lines of `text` are a call's arguments; a row that continues the line above
    is marked, so that no value looks like another line. `accepted` is on the lens after a yes until
    the call `call_id` is over, `refused` for a moment after a no; "": the page from before returns.
    `by_voice`: a spoken yes is enough; a spoken no always is. `choices`: what else may be said, see
    `AskPort.choose`. `correct` is offered words before they are taken as an answer; True: they
    change what is asked about, so the asker withdraws the question.
    """

    scene: str
    text: str
    timeout_s: float
    allow: str = "yes"
    deny: str = "no"
    exact: bool = False
    call_id: str = ""
    accepted: str = ""
    refused: str = ""
    by_voice: bool = False
    choices: tuple[str, ...] = ()
    correct: Callable[[Transcript], bool] | None = None


class Chosen(Struct, frozen=True):
    """The wearer named one of a question's choices; `number` counts from 1."""

    number: int


class AskPort(Protocol):
    """Implemented by `display/presenter.py`: asks the wearer, one question at a time, in order."""

    async def ask(self, question: Question) -> Answer:
        """Wait for the wearer's answer; silence is TIMEOUT. While the glasses are away it waits for
        them, and asks with what is left of the time. Cancelling takes the question off the lens.
        Raises `NobodyToAsk` at once when no known glasses could ever ask (none known, or neither a
        display nor a speaker and a button), or too many questions wait.
        """

    async def choose(self, question: Question) -> Answer | Chosen:
        """The same for a question with `choices`: the wearer may also say one of them, or its
        number.
        """


class RenderPort(Protocol):
    """Implemented by `display/presenter.py`: what the wearer sees and hears."""

    async def present(
        self,
        call_id: str,
        response: ToolResponse,
        *,
        wait: Wait = ...,
        name: str = ...,
        offer: TapOffer | None = ...,
    ) -> DeliveryReport:
        """Show and speak a result, as far as these glasses can. Never raises;
        later progress of the delivery comes as `DeliveryChanged` on the bus. `name`: of its tool
        or app, in people's words; a failure's sentence begins with it.
        """

    async def tell(
        self,
        text: str,
        *,
        scene: str = ...,
        call_id: str = ...,
        brief: bool = ...,
        mark: bool = ...,
        until_shown: bool = ...,
    ) -> DeliveryReport:
        """Show (or speak) a short text: an alarm, or progress of the call `call_id`. `brief` never
        interrupts a result; a `mark` says only that the call runs, and replaces no other progress.
        `until_shown`: wait, for a minute at most, while it is queued for a lens in use.
        """

    def ended(self, call_id: str) -> None:
        """The call is over: its progress leaves the lens."""

    def lens(self, *, exact: bool = ...) -> Mapping[str, Json]:
        """What the glasses last acknowledged: `{scene, page, pages, lines, at}`; no page means
        dark. `exact` adds `drawn`, from which it can be drawn again: `{lines: [{row, text, x}],
        tiles: [{x, y, width, height, bpp, pixels}]}`.
        """
