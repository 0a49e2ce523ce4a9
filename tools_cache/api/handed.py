"""The services of a tool handler, one Protocol each; `ToolContext` has them all.

None of them is a radio, a socket or a path, and none makes intents: those come from a tool's result
alone.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict of them."""


class ToolStorage(Protocol):
    """One package's tables, shared by all users; SQL parameters are always bound."""

    async def execute(self, sql: str, *params: Json) -> int:
        """Run one writing statement; return the last row id (INSERT) or the rows changed."""

    async def fetch(self, sql: str, *params: Json) -> list[dict[str, Json]]:
        """Run one SELECT; at most 1,000 rows."""


class Database(Protocol):
    """The caller's own tables within this package: no other user's rows are in reach. Every value
    is bound.

    Each table has `id` (INTEGER PRIMARY KEY) without being asked. A column named `encrypted__…`
    takes any JSON, keeps it encrypted and gives it back as it was; it cannot be searched or sorted
    by, nor be named in `execute` and `fetch`.
    """

    async def create_table(self, table: str, columns: Mapping[str, str]) -> None:
        """Create it, or add missing columns. A column's form is `TEXT`, `INTEGER`, `REAL` or
        `BLOB`, then `NOT NULL` or `UNIQUE` or both; that of an encrypted one is ignored (give
        `TEXT`).
        """

    async def insert(self, table: str, row: Mapping[str, Json]) -> int:
        """Return the new row's id."""

    async def select(
        self,
        table: str,
        *,
        where: Mapping[str, Json] | None = None,
        columns: Sequence[str] = (),
        order: str = "",
        limit: int = 100,
    ) -> list[dict[str, Json]]:
        """Return rows matching `where` (a list: any of it); `order`: a column, `-` for
        descending.
        """

    async def update(
        self, table: str, row: Mapping[str, Json], *, where: Mapping[str, Json]
    ) -> int:
        """Change rows; gives how many. An empty `where` means all of them."""

    async def delete(self, table: str, *, where: Mapping[str, Json]) -> int:
        """Delete rows; gives how many. An empty `where` means all of them."""

    async def execute(self, sql: str, *params: Json) -> int:
        """Run one writing statement of your own, as `ToolStorage.execute` does."""

    async def fetch(self, sql: str, *params: Json) -> list[dict[str, Json]]:
        """Run one SELECT of your own, as `ToolStorage.fetch` does."""


class Files(Protocol):
    """The caller's own files within this package. A name is a relative path that stays inside."""

    async def make_folder(self, name: str) -> None:
        """Make it and those above it; one that is there is fine."""

    async def write(self, name: str, data: bytes | str) -> None:
        """Replace the whole file in one step, on disk when this returns."""

    async def read(self, name: str) -> bytes:
        """Return the whole file. Raises FileNotFoundError."""

    async def exists(self, name: str) -> bool: ...
    async def delete(self, name: str) -> bool:
        """Delete a file or an empty folder; False when there is none."""

    async def names(self, folder: str = "") -> list[str]:
        """List the files below a folder, sorted, each by its whole name."""


class KV(Protocol):
    """Small values by key, the caller's own within this package."""

    async def get(self, key: str, default: Json = None) -> Json: ...
    async def set(self, key: str, value: Json) -> None: ...
    async def delete(self, key: str) -> bool:
        """False when there was none."""

    async def keys(self) -> list[str]: ...


class Alarms(Protocol):
    """Moments in the future at which a text is shown to the wearer; they survive a restart."""

    async def set(self, after_s: float, text: str, *, key: str = "") -> int:
        """Return the new alarm's number. With a `key` that an alarm was set with before, none is
        set: a tool that runs again after a kill announces nothing twice.
        """

    async def pending(self) -> list[dict[str, Json]]:
        """`[{id, text, remaining_s}]`, soonest first."""

    async def cancel(self, alarm: int) -> bool:
        """False when there is no such alarm (any more)."""


class Display(Protocol):
    """The lens, before the result is there; what a result is to show belongs into its `render`."""

    async def show(self, text: str, *, title: str = "") -> str:
        """Return how far it got: `shown`, `acknowledged`, `dropped` …."""


class Audio(Protocol):
    """The ear, before the result is there."""

    async def say(self, text: str) -> str:
        """Return how far it got, as `Display.show` does."""


class Cloud(Protocol):
    """Other tools, wherever they run, with all checks and within this turn's budgets."""

    async def call(self, tool: str, args: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the envelope of the answer: `{ok, data | error, …}`."""


class Clock(Protocol):
    def now(self) -> float:
        """Wall clock, seconds since 1970."""


class Session(Protocol):
    """The voice session, to look at."""

    def state(self) -> dict[str, Json]:
        """Return a copy of what it is now: `{voice_active, suppress_audio, …}`."""


class Audit(Protocol):
    def log(self, event: str) -> None:
        """Write a word of the tool's own into the audit log."""


class Config(Protocol):
    """The owner's settings for this tool: the validated fields of its `config.py`."""

    def __getitem__(self, key: str, /) -> Json: ...
    def get(self, key: str, default: Json, /) -> Json: ...


class Deeds(Protocol):
    """Actions of finished glasses besides showing and speaking: `brightness {level?, auto}`,
    `silent {on}`, `notify {title, text, app}`, `dashboard {}`, `light {level}`, `blink {color,
    on_ms, off_ms, times, level}`, `light_off {}`, `gain {level}`, `keep_pictures {on}`, `volume
    {level}` of the voice, `vibrate {length}`, `restart {}`.

    What the dashboard shows: `layout {layout, pane?}`, `weather {sky, celsius, fahrenheit?}`,
    `calendar {entries}`, `map {image}`, `note {slot, title?, text?}`. Navigation and translation:
    `navigate {turn, street?, distance?, trip_time?, trip_distance?, speed?, left_traffic?}`, `route
    {image}`, `end_navigation {}`, `begin_translation {source, target}`, `translation {original?,
    translated?}`. What the glasses do by themselves: `wear_detection {on}`, `head_up_angle
    {degrees}`, `head_up {opens}`, `double_tap {opens}`, `notification_time {seconds}`, `language
    {language}`.
    """

    async def __call__(self, deed: str, details: Mapping[str, Json], /) -> None:
        """Return when the glasses did it. Raises `ToolFailure`: UNSUPPORTED if they cannot."""


class Questions(Protocol):
    """What some finished glasses answer, for the tools of `glasses` alone: `wifi {}`, `join_wifi
    {ssid, password?}` and `leave_wifi {forget?}` (`{connected, ssid, address}`), `wifi_networks {}`
    (`{networks: [{ssid, dbm, open}]}`), `gallery {}` (`{photos, videos, bytes, busy}`), `motion {}`
    (`{acceleration, rotation, magnetism}`, three numbers each; None where the glasses do not say
    it), `voice_notes {}` and `remove_voice_note {note}` (`{known, notes: [{note, at}]}`),
    `voice_note {note}` (`{note, seconds}` and `words`, or `why_no_words` and `wave`: a WAV file as
    base64).
    """

    async def __call__(self, question: str, details: Mapping[str, Json], /) -> Mapping[str, Json]:
        """Return their answer. Raises `ToolFailure`: UNSUPPORTED if they have none."""


class Captions(Protocol):
    """Live captions: what is said around the wearer, on the lens. No tool gets the words."""

    async def switch(self, *, on: bool) -> None:
        """Return when they are on, or off. Raises `ToolFailure`: NOT_ACCEPTED, and why."""


class Pictures(Protocol):
    """Converts pictures for the lens in use."""

    async def fitted(self, image: str) -> str:
        """Return a PNG or JPEG (base64, or a data URL) as a PNG (base64) for this lens; "" if its
        display draws no pixels, or there is none. Raises `ToolFailure`.
        """


class Photo(NamedTuple):
    """A photo of the glasses' camera. `turned`: degrees clockwise by which it must be turned to be
    upright.
    """

    jpeg: bytes
    turned: int


class Camera(Protocol):
    """The glasses' camera, for `glasses:take_photo` alone: it asks the wearer."""

    async def take(self, size: str) -> Photo:
        """Take a photo, `small`, `medium`, `large` or `auto`. Raises `ToolFailure`:
        SESSION_INACTIVE, UNSUPPORTED without a camera, NOT_ACCEPTED, TIMEOUT.
        """


class Microphone(Protocol):
    """The glasses' microphone, for `glasses:record_sound` alone: it asks the wearer."""

    async def record(self, seconds: float, *, rate: int) -> bytes:
        """Return the sound of the next `seconds` as WAV of `rate` Hz (16000 or 8000), mono, 16
        bits. Raises `ToolFailure` NOT_ACCEPTED; a recording that ends early gives nothing.
        """


class Toolbox(Protocol):
    """The registry as the caller's user sees it; `ToolContext.call_tool` calls tools."""

    async def search(self, query: str, limit: int) -> Sequence[Mapping[str, Json]]:
        """Return `[{tool, summary, category, loaded}]`, best first, of tools callable now."""

    async def load(self, tools: Sequence[str], *, passing: bool = False) -> Mapping[str, Json]:
        """Offer these from the next turn on (`passing`: for one call); return `{loaded: [name…],
        refused: [{tool, reason}]}`.
        """

    async def describe(self, tool: str) -> Mapping[str, Json] | None:
        """Return everything about one tool with its documentation; None if it does not exist."""


class Wearer(Protocol):
    """What the wearer does."""

    async def next(
        self, events: Container[str] | None, *, after: int | None, timeout_s: float
    ) -> dict[str, Json]:
        """Wait for the next of `events` (None: any but `said`) after number `after` (None: from now
        on). Return `{event, after, age_s, …}`, or `{event: None, after}` on timeout; `missed`
        counts events that are no longer stored.
        """
