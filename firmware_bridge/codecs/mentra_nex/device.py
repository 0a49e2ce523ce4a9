"""What a Mentra Display answers by itself, for its peripheral end: voice activity, the angle of the
head, dashboards that it keeps (schema B).
"""

from collections.abc import Callable, Mapping
from typing import Final

from firmware_bridge.codecs.mentra_nex.wire import ToGlasses, ToPhone, encode
from firmware_bridge.protobuf import Message

MAX_DASHBOARDS: Final = 16
MAX_ID: Final = 32
"""Characters of an identifier that is sent back."""
_Answer = dict[int, bytes] | None


class Device:
    """State of these. Each method takes the body of an order and returns the answer to it."""

    def __init__(self) -> None:
        self.dashboards: dict[int, Message] = {}
        self._vad = False
        self._sensitivity = 50
        self.takes: Final[Mapping[int, Callable[[Message], _Answer]]] = {
            ToGlasses.HEAD_POSITION: lambda _body: {ToPhone.HEAD_POSITION: b""},
            ToGlasses.VAD_ENABLED: self._switch_vad,
            ToGlasses.VAD_CONFIG: self._set_vad,
            ToGlasses.VAD_STATUS: self._vad_status,
            ToGlasses.CACHE_DASHBOARD: self._keep_dashboard,
            ToGlasses.CLEAR_DASHBOARD: self._forget_dashboard,
        }

    def _switch_vad(self, body: Message) -> _Answer:
        self._vad = body.integer(2) != 0
        return {ToPhone.VAD_ENABLED: encode({1: _id_of(body), 2: True})}

    def _set_vad(self, body: Message) -> _Answer:
        level = body.integer(2)
        if level > 100:
            why = {3: "sensitivity is 0 to 100"}
            return {ToPhone.VAD_CONFIGURED: encode({1: _id_of(body), **why})}
        self._sensitivity = level
        return {ToPhone.VAD_CONFIGURED: encode({1: _id_of(body), 2: True})}

    def _vad_status(self, body: Message) -> _Answer:
        state = {1: _id_of(body), 2: self._vad, 3: self._sensitivity}
        return {ToPhone.VAD_STATUS: encode(state)}

    def _keep_dashboard(self, body: Message) -> _Answer:
        if len(self.dashboards) < MAX_DASHBOARDS:
            self.dashboards[body.integer(1)] = body.message(2)
        return None

    def _forget_dashboard(self, body: Message) -> _Answer:
        self.dashboards.pop(body.integer(1), None)
        return None


def _id_of(body: Message) -> str:
    return body.text(1)[:MAX_ID]
