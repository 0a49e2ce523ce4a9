"""The page on the glasses, as far as they acknowledged it, and the flows that change it."""

from collections.abc import Generator, Sequence
from functools import partial
from typing import Final

from firmware_bridge.codecs.even_g2 import hub
from firmware_bridge.codecs.even_g2.hub import Cmd, Code, Rect
from firmware_bridge.codecs.even_g2.lanes import Answer, Exchange, Flow, Rest, ask
from firmware_bridge.codecs.even_g2.picture import Picture
from firmware_bridge.messages import Done, Failed, Reply

IMAGE_S: Final = 2.0
IMAGE_TRIES: Final = 3
SETTLE_S: Final = 1.0
"""Seconds between the creation of a page and its first picture, which may be lost otherwise."""
_WHY: Final = {
    Code.BAD_CONTAINER: "a container is wrong",
    Code.TOO_LARGE: "it is too large",
    Code.NO_MEMORY: "they are out of memory",
    Code.IMAGE_FAILED: "the picture failed",
    Code.REBUILD_FAILED: "it could not be rebuilt",
}
Steps = Generator[Exchange | Rest, Answer | None, Reply | None]


class HubPage:
    """One page per pair, on the right arm. `alive`: whether there is one, as far as is known."""

    def __init__(self, piece: int = hub.MAX_PIECE) -> None:
        self.alive = False
        self._piece = piece
        self._text = ""
        self._places: tuple[Rect, ...] = ()
        self._files: dict[int, bytes] = {}
        self._session = 0

    def lost(self) -> None:
        """The page is gone, or nothing is known of it."""
        self.alive = False
        self._files = {}

    # -------------------------------------------------------------- flows

    def draw(self, text: str, pictures: Sequence[Picture] = ()) -> Flow:
        """Put this on the lens: change what is there, rebuild it, or create it.

        Returns None where the glasses did not answer.
        """
        places = tuple(each.place for each in pictures)
        if self.alive and places == self._places:
            yield from self._change(text)
        elif self.alive:
            yield from self._rebuild(text, places)
        if not self.alive:
            failed = yield from self._create(text, places)
            if not self.alive:
                return failed
        for at, picture in enumerate(pictures):
            if self._files.get(at) != picture.file:
                failed = yield from self._send(at, picture.file)
                if at not in self._files:
                    return failed
        return Done()

    def ensure(self) -> Flow:
        """Create an empty page if there is none."""
        if not self.alive:
            return (yield from self.draw(hub.EMPTY))
        return Done()

    def clear(self) -> Flow:
        """Empty the page; where there is none, the lens shows nothing from glassd."""
        if self.alive:
            return (yield from self.draw(hub.EMPTY))
        return (yield from self.leave())

    def leave(self) -> Flow:
        """Close the page. Where there was none the glasses refuse that, which is as good."""
        answer = yield ask(hub.leave())
        self.lost()
        return None if answer is None else Done()

    def probe(self) -> Steps:
        """Find out whether the page is still there: write its text again."""
        if self.alive:
            yield from self._change(self._text, again=True)
        return None

    # -------------------------------------------------------------- parts of them

    def _change(self, text: str, *, again: bool = False) -> Steps:
        if text == self._text and not again:
            # the glasses must acknowledge a page that is to be readable
            again = True
        answer = yield ask(partial(hub.text_update, text))
        if _code(answer) == Code.TEXT_OK:
            self._text = text
        else:
            self.lost()
        return None

    def _rebuild(self, text: str, places: tuple[Rect, ...]) -> Steps:
        answer = yield ask(partial(hub.page, Cmd.REBUILD, text, places))
        if _code(answer) in (Code.REBUILT, Code.CREATED):
            self._made(text, places)
        else:
            self.lost()
        return None

    def _create(self, text: str, places: tuple[Rect, ...]) -> Steps:
        """Create the page. One that is there already, of an earlier link, is not answered: then it
        is rebuilt; and created after all where only the first message was lost.
        """
        refused: Reply | None = None
        for cmd in (Cmd.CREATE, Cmd.REBUILD, Cmd.CREATE):
            answer = yield ask(partial(hub.page, cmd, text, places), tries=1)
            code = _code(answer)
            if code in (Code.CREATED, Code.REBUILT):
                self._made(text, places)
                if places:
                    yield Rest(SETTLE_S)
                return None
            refused = refused if answer is None else _refused(answer, code)
            if answer is not None and not answer.result and cmd is Cmd.CREATE:
                break
        return refused

    def _made(self, text: str, places: tuple[Rect, ...]) -> None:
        self.alive, self._text, self._places, self._files = True, text, places, {}

    def _send(self, at: int, file: bytes) -> Steps:
        self._files.pop(at, None)
        self._session = self._session % 0xFF + 1
        for update in hub.image_updates(at, file, self._session, self._piece):
            answer = yield ask(update, timeout_s=IMAGE_S, tries=IMAGE_TRIES)
            if answer is None:
                return None
            code = _code(answer)
            if code != Code.IMAGE_OK:
                return _refused(answer, code)
        self._files[at] = file
        return None


def _code(answer: Answer | None) -> int:
    """Return the code of an answer; -1 where there is none, or it is a refusal."""
    return -1 if answer is None or answer.result else hub.code_of(answer.message)


def _refused(answer: Answer, code: int) -> Failed:
    why = f"result {answer.result}" if answer.result else f"code {code}"
    known = _WHY.get(Code(code)) if code in set(Code) else None
    return Failed("too_big" if code == Code.TOO_LARGE else "busy", known or why)
