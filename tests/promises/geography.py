"""Promises about the weather and map tools."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I15-weather": Promise(
        "The weather of a place is given in plain words; without the network the last known one "
        "with its age.",
        "issue 15",
    ),
    "I15-weather-private": Promise(
        "The places whose weather was asked for are encrypted on disk.", "issue 15"
    ),
    "I15-maps": Promise(
        "Places are found, and the way to one is given step by step, also without the network once "
        "it is known.",
        "issue 15",
    ),
    "I15-separate-pages": Promise(
        "A result may give texts that begin a page each: a tap goes to the next one, text of "
        "others cannot make one, and what was cut before the last page was not shown.",
        "issue 15",
    ),
    "I15-maps-private": Promise(
        "The route of a user is encrypted on disk, and no other user sees it.", "issue 15"
    ),
}

DECLINED: Final[dict[str, str]] = {}
