"""Promises to the person at the terminal."""

from typing import Final

from tests.promises.words import Promise

_SOURCE: Final = "issue 13, The person at the terminal"

PROMISES: Final[dict[str, Promise]] = {
    "I13-call-progress": Promise(
        "At a terminal `glassd call` shows what the tool reports while it runs, and erases it; "
        "a pipe, a dumb terminal and --json get nothing of it.",
        _SOURCE,
    ),
    "I13-events-lines": Promise(
        "At a terminal `glassd events` shows one line of words an event; a pipe and --json get "
        "the JSON objects as the daemon sends them.",
        _SOURCE,
    ),
    "I13-lens-pictures": Promise(
        "`glassd lens` shows the pictures on the lens, and calls no lit lens dark.", _SOURCE
    ),
    "I13-lens-keys": Promise(
        "In `glassd lens --watch` keys do what the wearer of simulated glasses does.", _SOURCE
    ),
    "I13-lens-png": Promise(
        "The PNG of `glassd lens` is what the mock's framebuffer holds, font and margins included.",
        _SOURCE,
    ),
    "I13-lens-preview": Promise(
        "`glassd lens preview` shows pages, pixels, missing characters and reading time of a text "
        "on a model of glasses, without glasses and daemon.",
        _SOURCE,
    ),
    "I13-older-questions": Promise(
        "What a server of 2025 asks within a call reaches the caller that can answer, else the "
        "wearer where taps are an answer; else it is declined and the result says why.",
        "issue 13, Agents get the truth where they read it",
    ),
    "I13-demo-long-path": Promise(
        "`glassd demo` runs in a folder whose path is too long for sockets.", "issue 13"
    ),
}

DECLINED: Final[dict[str, str]] = {}
