"""Waits for new mail of chosen senders: the child of `edge/tools/announcements/mail_watch.py`.

Run: `python -P -m edge.tools.workers.mail_watch`, with a JSON request as the first line of stdin.
It writes JSON lines: after each look how far it looked, how many messages are new, and the latest;
or an error, and ends. It has one connection and ends with it, and when its stdin ends.
"""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from imaplib import IMAP4
from typing import Any, BinaryIO, Final

from edge.runtime.stdio import claim_stdio
from edge.tools.workers import mail_text
from edge.tools.workers.mail_account import Account
from edge.tools.workers.mail_imap import Mailbox, mailbox
from edge.tools.workers.mail_smtp import is_address
from edge.tools.workers.mail_structure import BadStructure
from tools_cache.errors import ToolFailure

IDLE_S: Final = 600.0
"""After which a wait is begun again: servers end one of 30 min, many home routers one of less."""
POLL_S: Final = 300.0
"""Between two looks at a server that says nothing by itself."""
MOST_NEW: Final = 500
"""Of more new messages, older ones are not looked at."""
AT_ONCE: Final = 50
"""Messages that one command fetches from."""
HEADER_BYTES: Final = 4_096
MAX_SUBJECT: Final = 120
MAX_REQUEST: Final = 64 * 1024
_ITEMS: Final = f"UID BODY.PEEK[HEADER.FIELDS (FROM SUBJECT)]<0.{HEADER_BYTES}>"
_FROM: Final = re.compile(rb"^from[ \t]*:", re.IGNORECASE | re.MULTILINE)

Say = Callable[[Mapping[str, Any]], None]


def main() -> None:
    incoming, outgoing = claim_stdio()
    source, sink = os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")
    request = json.loads(source.readline(MAX_REQUEST))
    threading.Thread(target=_end_with, args=(source,), daemon=True).start()

    def say(line: Mapping[str, Any]) -> None:
        sink.write(json.dumps(line).encode() + b"\n")
        sink.flush()

    try:
        watch(request, say)
    except ToolFailure as failure:
        error = failure.error
        say(
            {
                "error": error.message,
                "code": error.code.value,
                "suggestion": error.suggestion or "",
            }
        )


def _end_with(source: BinaryIO) -> None:
    """End this process when its input ends: then there is no daemon any more."""
    while source.read(1024):
        pass
    os._exit(0)


def watch(request: Mapping[str, Any], say: Say) -> None:
    """Look for new mail whenever there may be some. Never returns. Raise `ToolFailure`."""
    after = request.get("after")
    idle_s, poll_s = request.get("idle_s", IDLE_S), request.get("poll_s", POLL_S)
    with mailbox(Account(request["settings"])) as box:
        can_idle = box.can_idle()
        while True:
            box.open()
            found = look(box, request["senders"], after)
            say(found)
            after = found["validity"], found["uid"]
            if not box.grew() and not (can_idle and box.idle(idle_s)):
                time.sleep(poll_s)


def look(box: Mailbox, senders: Sequence[str], after: Sequence[int] | None) -> dict[str, Any]:
    """Return how many unread messages of these senders came after a position, and the latest. All
    that are there before the first look, or in a mailbox that was made again, are not new.
    """
    newest = box.newest_uid()
    chosen: list[dict[str, Any]] = []
    if after is not None and after[0] == box.validity:
        uids = box.unread_after(after[1], MOST_NEW)
        newest = max([newest, after[1], *uids])
        for start in range(0, len(uids), AT_ONCE):
            chosen += _of_senders(box, uids[start : start + AT_ONCE], senders)
    found: dict[str, Any] = {"validity": box.validity, "uid": newest, "count": len(chosen)}
    return found | {"latest": chosen[-1]} if chosen else found


def _of_senders(
    box: Mailbox, uids: Sequence[int], senders: Sequence[str]
) -> Iterable[dict[str, Any]]:
    try:
        fetched = box.fetch(uids, _ITEMS)
    except BadStructure:
        raise IMAP4.error("unreadable answer") from None
    heads = {each.get("UID"): each.get("HEADER") or b"" for each in fetched}
    for uid in uids:
        raw = heads.get(str(uid).encode(), b"")
        if (person := sole_sender(raw)) is not None and is_chosen(person[1], senders):
            subject = mail_text.header(mail_text.fields(raw).get("subject", ""))
            yield {
                "uid": uid,
                "from": {"name": person[0], "address": person[1]},
                "subject": mail_text.one_line(subject, MAX_SUBJECT),
            }


def sole_sender(raw: bytes) -> tuple[str, str] | None:
    """Return name and address of the one person a message is from. None if there is no such
    person: nobody or several are named, in a form that programs read differently, or in a header
    that was cut.
    """
    if len(raw) >= HEADER_BYTES or len(_FROM.findall(raw)) != 1:
        return None
    text = mail_text.fields(raw).get("from", "").strip()
    people = mail_text.addresses(text)
    if len(people) != 1 or not is_address(people[0][1]):
        return None
    address = people[0][1]
    return people[0] if text == address or text.endswith(f"<{address}>") else None


def is_chosen(address: str, senders: Iterable[str]) -> bool:
    """Return whether an address, its domain, or a domain above that is among the chosen ones."""
    address = address.lower()
    domain = address.rpartition("@")[2]
    labels = domain.split(".")
    above = {".".join(labels[at:]) for at in range(len(labels))}
    return not {address, *above}.isdisjoint(map(str.lower, senders))


if __name__ == "__main__":
    main()
