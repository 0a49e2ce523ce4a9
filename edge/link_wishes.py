"""What somebody wanted of the glasses and what they forget with the link: settings, an open microphone.

Refuses to ask for anything by itself, and to remember over a restart: glasses keep their settings, nobody's microphone
opens by itself.
"""

from firmware_bridge.messages import (
    AllowApps,
    Command,
    SetBrightness,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    StartMicrophone,
    StopMicrophone,
)

_SETTINGS = (SetBrightness, SetSilentMode, SetWearDetection, SetHeadUpAngle, AllowApps)


class Wishes:
    """The newest wish of each kind that these glasses granted, in the order in which they were first wished."""

    def __init__(self) -> None:
        self._address = ""
        self._granted: dict[object, Command] = {}
        self._unsure: dict[object, Command] = {}

    def granted(self, command: Command) -> None:
        """The glasses carried `command` out."""
        self._unsure.pop(type(command), None)
        match command:
            case StartMicrophone(stream=stream):
                self._granted["microphone", stream] = command
            case StopMicrophone(stream=stream):
                self._granted.pop(("microphone", stream), None)
            case _ if isinstance(command, _SETTINGS):
                self._granted[type(command)] = command

    def unanswered(self, command: Command) -> None:
        """The glasses may have carried `command` out: it counts as done while it would hide the lens."""
        if _why_unseen(command):
            self._unsure[type(command)] = command

    @property
    def unseen(self) -> str:
        """Why nobody sees what is on the lens; "" when nothing was wished that hides it."""
        wished = [self._granted.get(SetSilentMode), self._granted.get(SetBrightness)]
        sure = next(filter(None, map(_why_unseen, wished)), "")
        unsure = next(map(_why_unseen, self._unsure.values()), "")
        return sure or (f"perhaps {unsure}: it was set without an answer; set it again" if unsure else "")

    def of(self, address: str) -> tuple[Command, ...]:
        """What to tell the glasses at `address` again; other glasses begin with nothing."""
        if address != self._address:
            self._address = address
            self._granted.clear()
            self._unsure.clear()
        return tuple(self._granted.values())

    def refused(self, command: Command) -> None:
        """The glasses did not take this again: it is not asked for any more, but they may still be as it left them."""
        self._granted = {key: kept for key, kept in self._granted.items() if kept is not command}
        self.unanswered(command)


def _why_unseen(command: Command | None) -> str:
    match command:
        case SetSilentMode(on=True):
            return "the glasses are in silent mode"
        case SetBrightness(level=0, auto=False):
            return "the brightness of the display is 0"
    return ""
