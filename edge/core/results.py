"""How a result looks and sounds, and the responses that glassd itself creates."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from edge.core.pages import MAX_SEPARATE
from edge.core.routing import RouteKind
from edge.core.words.wearer_forms import Writer, age
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    ErrorType,
    Json,
    Mode,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
)

if TYPE_CHECKING:
    from edge.core.words.data_text import DataText

INVOKE: Final = "registry:invoke"
"""Our tool that calls another for a model; it is not shown itself, the tool it calls is."""
_ENGLISH: Final = Writer()
STORAGE_RETRY_MS: Final = 5000
"""Retry after a failed write: as often as the daemon itself checks the disk."""
MAX_SCENE: Final = 64
_MAX_DURATION_MS: Final = 60 * 60 * 1000


class LayoutKind(StrEnum):
    """The layouts a `render.display` may name."""

    TEXT_WALL = "text_wall"
    DOUBLE_TEXT_WALL = "double_text_wall"
    REFERENCE_CARD = "reference_card"
    DASHBOARD_CARD = "dashboard_card"
    BITMAP_VIEW = "bitmap_view"
    CLEAR_VIEW = "clear_view"


_TWO: Final = {
    LayoutKind.DOUBLE_TEXT_WALL: ("topText", "bottomText"),
    LayoutKind.DASHBOARD_CARD: ("leftText", "rightText"),
    LayoutKind.REFERENCE_CARD: ("title", "text"),
    LayoutKind.BITMAP_VIEW: ("", "beside"),
}


@dataclass(frozen=True, slots=True)
class Link:
    """An address in a text, and the words it stands behind."""

    words: str
    address: str


@dataclass(frozen=True, slots=True)
class TapOffer:
    """What a tap on the last page of a result does for `for_s` seconds after it was drawn. `text`
    is shown below it ("tap to undo"); the tap is published as `OfferTaken`.
    """

    text: str
    for_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Rendering:
    """What to show and speak. `text` is for the lens (also in place of an image), `speech` is
    spoken; None: not wanted.

    `first` and `second` are the parts of a two-part layout, `image` and `pcm` base64. `silent`
    forbids speech in every fallback. `more`: all of what `text` is a summary of. It and the `links`
    of the text are shown to a wearer who asks for them. `scene`: what it is a newer version of;
    `recall`: whether the wearer may bring it back later. `pages`: in place of `text`, texts that
    begin a page each. `image_problem`: why the image cannot be drawn, once that is known.
    """

    layout: LayoutKind | None = None
    text: str = ""
    first: str = ""
    second: str = ""
    image: str = ""
    speech: str | None = None
    pcm: str = ""
    silent: bool = False
    duration_s: float | None = None
    priority: int = 0
    more: str = ""
    links: tuple[Link, ...] = ()
    offer: TapOffer | None = None
    scene: str = ""
    recall: bool = True
    pages: tuple[str, ...] = ()
    image_problem: str = ""

    @property
    def words(self) -> str:
        """Its text where only text is possible: the lens's, else the spoken one."""
        return self.text or "\n".join(self.pages) or self.speech or ""


def rendering_of(response: ToolResponse, *, name: str = "", writer: Writer = _ENGLISH) -> Rendering:
    """Return what a result wants shown; without a `render` object its text is shown, then spoken. A
    result from the cache says how old it is. `name`: of its tool or app, in people's words.
    """
    return dated(_rendering_of(response, name, writer), response.meta)


def _rendering_of(response: ToolResponse, name: str, writer: Writer) -> Rendering:
    from edge.core.words.data_text import DataText, of_text  # noqa: PLC0415 - at the first result

    render = response.render or {}
    display, audio = _part(render, "display"), _part(render, "audio")
    silent = _flag(render, audio, response)
    if not (display or audio):
        return _of_text(describe(response, name=name, writer=writer), silent=silent, spoken=True)
    speech = audio.get("text") if isinstance(audio.get("text"), str) else None
    pcm = audio.get("pcm") if isinstance(audio.get("pcm"), str) else ""
    layout = _layout(display)
    if layout is None and speech is None and not pcm:  # a url is not fetched: its text is shown
        return _of_text(describe(response, name=name, writer=writer), silent=silent)
    given, alt = (_string(display, key) for key in ("text", "alt"))
    parts = [of_text(text, writer.written) for text in _two_parts(layout, display)]
    first, second = (part.text for part in parts)
    pages = [of_text(text, writer.written) for text in _pages(layout, display)]
    shown = of_text("" if pages else given, writer.written)
    if layout is LayoutKind.BITMAP_VIEW:
        described = describe(response, name=name, writer=writer).text
        shown = DataText(alt or shown.text or described)
    elif layout is LayoutKind.REFERENCE_CARD or not (given or pages):
        shown = DataText(_joined(first, second) or alt)
    return Rendering(
        layout,
        shown.text,
        first,
        second,
        _string(display, "data"),
        None if speech is None else of_text(speech, writer.written).text,
        pcm or "",
        silent,
        _seconds(display),
        _rank(display),
        scene=_string(display, "scene")[:MAX_SCENE],
        recall=display.get("recall") is not False,
        more=shown.more or "\n".join(part.more for part in (*parts, *pages) if part.more),
        pages=tuple(page.text for page in pages),
    )


def _of_text(shown: "DataText", *, silent: bool, spoken: bool = False) -> Rendering:
    layout = LayoutKind.TEXT_WALL if shown.text.strip() else None
    speech = shown.text if spoken else None
    return Rendering(layout, shown.text, speech=speech, silent=silent, more=shown.more)


_LONG: Final = 200
"""Characters from which a text may need several pages: then its age is shown first."""


def dated(rendering: Rendering, meta: Mapping[str, Json]) -> Rendering:
    """Add the age of an old result to its text and speech (`stale`, `ageS`)."""
    if meta.get("stale") is not True:
        return rendering
    shown, said = _age(meta.get("ageS"))

    def with_age(text: str) -> str:
        if not text.strip():
            return text
        return f"{shown}\n{text}" if len(text) > _LONG else f"{text}\n{shown}"

    speech = rendering.speech
    return replace(
        rendering,
        text=with_age(rendering.text),
        first=with_age(rendering.first),
        pages=(*map(with_age, rendering.pages[:1]), *rendering.pages[1:]),
        speech=f"{speech.rstrip()}\n{said.capitalize()}." if speech and speech.strip() else speech,
    )


def _age(age_s: Any) -> tuple[str, str]:
    """Return the age for the lens and for speech."""
    if (
        isinstance(age_s, bool)
        or not isinstance(age_s, int | float)
        or not 0 <= age_s < float("inf")
    ):
        return "not up to date", "not up to date"
    return age(age_s), age(age_s, spoken=True)


def describe(response: ToolResponse, *, name: str = "", writer: Writer = _ENGLISH) -> "DataText":
    """Return the text of a result: a sentence for its error, its own text, or its data in lines."""
    from edge.core.words import data_text  # noqa: PLC0415 - at the first result

    if response.error is not None:
        from edge.core.words.failure_sentences import sentence  # noqa: PLC0415 - at the first failure

        return data_text.DataText(sentence(response.error, name))
    return data_text.describe(response.data, writer.written)


# ------------------------------------------------------------------ the render object, read
# forgivingly


def _part(render: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    found = render.get(key)
    return found if isinstance(found, Mapping) else {}


def _layout(display: Mapping[str, Json]) -> LayoutKind | None:
    named = display.get("layout", display.get("layoutType"))
    if isinstance(named, Mapping):  # MentraOS nests the fields under `layout`
        named = named.get("layoutType")
    try:
        return LayoutKind(str(named)) if named else (LayoutKind.TEXT_WALL if display else None)
    except ValueError:
        return LayoutKind.TEXT_WALL


def _string(display: Mapping[str, Json], key: str) -> str:
    nested = display.get("layout")
    for place in (display, nested if isinstance(nested, Mapping) else {}):
        if isinstance(place.get(key), str):
            return str(place[key])
    return ""


def _two_parts(layout: LayoutKind | None, display: Mapping[str, Json]) -> tuple[str, str]:
    keys = _TWO.get(layout) if layout else None
    return (_string(display, keys[0]), _string(display, keys[1])) if keys else ("", "")


def _pages(layout: LayoutKind | None, display: Mapping[str, Json]) -> list[str]:
    """Return the texts that begin a page each, one more than are shown if there are more."""
    given = display.get("pages")
    if layout is not LayoutKind.TEXT_WALL or not isinstance(given, list):
        return []
    texts = (text for text in given if isinstance(text, str) and text.strip())
    return list(islice(texts, MAX_SEPARATE + 1))


def _joined(first: str, second: str) -> str:
    return "\n".join(part for part in (first, second) if part.strip())


def _flag(render: Mapping[str, Json], audio: Mapping[str, Json], response: ToolResponse) -> bool:
    places = (audio, render, _part(response.meta, "mentraExtensions"))
    return any(place.get("suppressVoiceResponse") is True for place in places)


def _seconds(display: Mapping[str, Json]) -> float | None:
    asked: Any = display.get("durationMs")
    if (
        isinstance(asked, bool)
        or not isinstance(asked, int | float)
        or not 0 < asked < float("inf")
    ):
        return None
    return min(float(asked), _MAX_DURATION_MS) / 1000


def _rank(display: Mapping[str, Json]) -> int:
    asked = display.get("priority")
    if isinstance(asked, int) and not isinstance(asked, bool):
        return max(-9, min(9, asked))
    return {"low": -1, "high": 1, "urgent": 2}.get(str(asked), 0)


# ------------------------------------------------------------------ responses created here


def pending(call: ToolCall) -> ToolResponse:
    """Return the answer to a call that is finished later."""
    return ToolResponse(data={"status": "pending", "pendingToolCallId": call.call_id})


def fallback(code: ErrorCode, tool: ToolDefinition, reason: str) -> ToolResponse:
    """Return a short error for the wearer when no route is available."""
    name = tool.name.partition(":")[2].replace("_", " ")
    said, advice = {
        ErrorCode.OFFLINE: (
            f"Offline: {name} cannot be reached now",
            "Try again when the connection is back",
        ),
        ErrorCode.NOT_ACCEPTED: (
            f"No answer: {name} was not accepted in time",
            "Try again in a moment",
        ),
        ErrorCode.SESSION_INACTIVE: (
            f"The glasses are away: {name} needs them",
            "Bring the glasses back",
        ),
        ErrorCode.DEADLINE_EXPIRED: (f"Too late: the time for {name} is over", "Ask again"),
        ErrorCode.TOOL_NOT_FOUND: (f"Tool {tool.name} not found", None),
    }.get(code, (f"{name} is not available: {reason}", None))
    return ToolResponse.failure(code, said, suggestion=advice, details={"reason": reason})


def timed_out(limit_s: float, *, tool: ToolDefinition, started: bool) -> ToolResponse:
    """Return the error for a timeout; effects are unknown unless repeatable or read-only."""
    return ToolResponse.failure(
        ErrorCode.TIMEOUT,
        f"Tool execution timeout after {round(limit_s * 1000)}ms",
        partial_side_effects=started and not repeatable(tool),
    )


def cancelled(text: str, *, tool: ToolDefinition | None, started: bool) -> ToolResponse:
    """Return the error for a cancelled call; effects are unknown as in `timed_out`."""
    unsafe = started and not (tool is not None and repeatable(tool))
    return ToolResponse.failure(ErrorCode.CANCELLED, text, partial_side_effects=unsafe)


def interrupted(tool: ToolDefinition | None, *, started: bool) -> ToolResponse:
    """Return the error for a call that was running when the daemon stopped."""
    unsafe = started and not (tool is not None and repeatable(tool))
    return ToolResponse.failure(
        ErrorCode.INTERRUPTED,
        "The daemon was restarted while this call ran",
        partial_side_effects=unsafe,
        idempotency_required=unsafe,
    )


def internal(tool: str) -> ToolResponse:
    """Return an internal error: its cause is in the log, never in the response."""
    return ToolResponse.failure(
        ErrorCode.INTERNAL, f"Internal error executing {tool}", partial_side_effects=True
    )


def too_large(size: int, limit: int) -> ToolError:
    """Return the error for a call that is too large to be sent."""
    text = f"This call has {size} bytes; {limit} can be sent"
    return ToolError.of(
        ErrorCode.INVALID_ARGUMENTS,
        text,
        suggestion="Send less in its arguments",
        details={"size": size, "limit": limit},
    )


def storage_unavailable(why: object) -> ToolError:
    """Return the error for a disk that cannot be written; nothing was done, a retry may succeed."""
    return ToolError.of(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"Nothing new can be stored now: {why}",
        retry_after_ms=STORAGE_RETRY_MS,
        suggestion="To see what to do about the disk: glassd status",
    )


def undecided() -> ToolResponse:
    """Return the error for an accepted call that could not be stored; it may run later."""
    return ToolResponse.failure(
        ErrorCode.INTERRUPTED,
        "The disk cannot be written now: "
        "whether the call was done is known when it can be written again",
        partial_side_effects=True,
        idempotency_required=True,
        suggestion="Free some disk space, then look: glassd calls",
    )


def repeatable(tool: ToolDefinition) -> bool:
    """Return whether running it twice does no more than once."""
    return tool.idempotent or tool.read_only


_OWN_BUSINESS: Final = frozenset(
    {
        ErrorType.VALIDATION,
        ErrorType.NOT_FOUND,
        ErrorType.MODE_RESTRICTED,
        ErrorType.BUDGET_EXCEEDED,
        ErrorType.CONFIRMATION_REQUIRED,
        ErrorType.CONFIRMATION_EXPIRED,
        ErrorType.RATE_LIMIT,
    }
)


def concerns_wearer(call: ToolCall, response: ToolResponse, *, confirmed: bool = False) -> bool:
    """Return whether the wearer is shown it: not a program's formal errors, but always what the
    wearer asked for, or said yes to (`confirmed`).
    """
    if call.depth and call.through != INVOKE:
        return False  # the tool that called it says what there is to say
    asked = call.mode is Mode.VOICE or call.origin in (CallOrigin.VOICE, CallOrigin.GLASSES)
    error = response.error
    return (
        asked
        or confirmed
        or error is None
        or (error.type not in _OWN_BUSINESS and error.code is not ErrorCode.DENIED)
    )


_FROM_AFAR: Final = tuple(
    "activatedForTool clamped stale ageS toolVersion mentraExtensions content".split()
)


def stamped(
    response: ToolResponse,
    call: ToolCall,
    *,
    tool: ToolDefinition | None,
    registry: str,
    duration_s: float,
    timestamp: str,
    route: RouteKind | None,
    clamped: Mapping[str, Json],
) -> ToolResponse:
    """Add the meta of every answer (docs/control-api.md lists it); of a remote tool's own meta only
    the known keys are kept.
    """
    kept = {key: response.meta[key] for key in _FROM_AFAR if key in response.meta}
    bare = ToolResponse(
        data=response.data, error=response.error, intents=response.intents, render=response.render
    )
    return bare.with_meta(
        **{
            **kept,
            "tool": call.tool,
            "toolVersion": tool.version if tool else None,
            "registryVersion": registry,
            "duration": max(0, round(duration_s * 1000)),
            "timestamp": timestamp,
            "callId": call.call_id,
            "route": route.value if route else None,
            "clamped": dict(clamped) or kept.get("clamped"),
        }
    )
