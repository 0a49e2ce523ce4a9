"""Sets height and depth of the picture: shown first, kept a few seconds later."""

from typing import Final

from firmware_bridge.codecs.even_g1.own_encoder import OwnEncoder
from firmware_bridge.codecs.even_g1.scheduler import End, PairRequest
from firmware_bridge.messages import Command
from firmware_bridge.own_commands import SetDisplayPosition
from firmware_bridge.sides import Side

PREVIEW_S: Final = 5.0
"""Seconds that the picture is shown, in a host tested on hardware; kept without having been shown,
the values are refused.
"""


class PositionSetter:
    """What follows a position that was shown. `missed`: arms that did not take the last one."""

    def __init__(self, encoder: OwnEncoder) -> None:
        self.missed: dict[Side, SetDisplayPosition] = {}
        self._encoder = encoder
        self._shown: list[tuple[float, PairRequest]] = []

    def asks_again(self, request: PairRequest, now: float) -> bool:
        """Whether a finished request showed a position that is to be kept: it is answered later."""
        about = request.about
        if not isinstance(about, SetDisplayPosition) or about.preview:
            return False
        if End.TAKEN not in request.ends.values():
            return False
        self._shown.append((now + PREVIEW_S, request))
        return True

    def due(self) -> float | None:
        return self._shown[0][0] if self._shown else None

    def keep(self, now: float) -> list[PairRequest]:
        """Return the requests that are due: to keep what was shown, on the arms that showed it."""
        requests = []
        while self._shown and now >= self._shown[0][0]:
            _, shown = self._shown.pop(0)
            assert isinstance(shown.about, SetDisplayPosition)
            request = self._encoder.place(shown.about, preview=False)
            took = {side for side, end in shown.ends.items() if end is End.TAKEN}
            request.steps = {side: each for side, each in request.steps.items() if side in took}
            request.number, request.about = shown.number, Kept(shown.about)
            requests.append(request)
        return requests

    def replace(self) -> list[PairRequest]:
        """Return the requests that will not be answered: a newer position replaces theirs."""
        gone, self._shown = [request for _, request in self._shown], []
        return gone

    def finished(self, request: PairRequest) -> None:
        """Remember the arm that did not keep a position that the other kept."""
        if isinstance(request.about, Kept) and End.TAKEN in request.ends.values():
            for side in Side:
                if request.ends.get(side) is End.TAKEN:
                    self.missed.pop(side, None)
                elif request.number:
                    self.missed[side] = request.about.command

    def wanted(self, side: Side) -> list[Command]:
        """Return what a returning arm has missed."""
        return [self.missed[side]] if side in self.missed else []


class Kept:
    """What a request is about that keeps a position."""

    def __init__(self, command: SetDisplayPosition) -> None:
        self.command = command
