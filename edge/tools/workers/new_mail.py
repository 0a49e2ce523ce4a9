"""Looks for new mail of chosen senders, for `edge/tools/announcements/mail_watch.py`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from imaplib import IMAP4
from typing import Any, Final

from edge.tools.workers import mail_text
from edge.tools.workers.mail_account import Account
from edge.tools.workers.mail_imap import Mailbox, mailbox
from edge.tools.workers.mail_smtp import is_address
from edge.tools.workers.mail_structure import BadStructure

MOST_NEW: Final = 500
"""Of more new messages, older ones are not looked at."""
AT_ONCE: Final = 50
"""Messages that one command fetches from."""
HEADER_BYTES: Final = 4_096
MAX_SUBJECT: Final = 120
_ITEMS: Final = f"UID BODY.PEEK[HEADER.FIELDS (FROM SUBJECT)]<0.{HEADER_BYTES}>"
_FROM: Final = re.compile(rb"^from[ \t]*:", re.IGNORECASE | re.MULTILINE)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return how far this looked, how many messages are new, and the latest of them."""
    with mailbox(Account(request["settings"])) as box:
        box.open()
        return look(box, request["senders"], request.get("after"))


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
