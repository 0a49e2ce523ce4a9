"""Mail by IMAP and SMTP, for the `email` tools; synchronous, with Python's own libraries."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

from edge.tools.workers import mail_smtp, mail_text
from edge.tools.workers.mail_account import Account
from edge.tools.workers.mail_imap import HEADER_BYTES, Mailbox, mailbox
from edge.tools.workers.mail_structure import BadStructure, Part, leaves
from tools_cache.errors import ErrorCode, ToolFailure

MOST_LISTED: Final = 20
MAX_BODY: Final = 256 * 1024
"""Bytes of all text parts of one message that are fetched."""
MOST_TEXTS: Final = 8
"""Text parts of one message that are fetched."""
MOST_ATTACHMENTS: Final = 50
MOST_PEOPLE: Final = 50
_BRIEF: Final = f"UID INTERNALDATE BODY.PEEK[HEADER.FIELDS (FROM SUBJECT)]<0.{HEADER_BYTES}>"
_BRIEF_SENT: Final = _BRIEF.replace("FROM", "TO")
_WHOLE: Final = (
    "UID INTERNALDATE BODYSTRUCTURE BODY.PEEK[HEADER.FIELDS (FROM TO CC REPLY-TO SUBJECT"
    f" MESSAGE-ID REFERENCES)]<0.{4 * HEADER_BYTES}>"
)
_MONTHS: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_DATE: Final = re.compile(r"\s*(\d{1,2})-(\w{3})-(\d{4}) (\d\d):(\d\d):(\d\d) ([+-]\d{4})")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Execute one request: `do` says which."""
    account = Account(request["settings"])
    does = {"unread": unread, "search": search, "read": read, "send": send, "find_sent": find_sent}
    return does[request["do"]](account, request)


def unread(account: Account, _request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the newest unread messages, and how many there are."""
    with mailbox(account) as box:
        total = box.unread_total()
        box.open()
        uids, _ = box.newest([("UNSEEN", "")], MOST_LISTED)
        listed = _listed(box, uids)
    return {"messages": listed, "total": max(total or 0, len(listed))}


def search(account: Account, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the newest messages that meet all that is asked for, with `sent` of those that were
    sent. `complete`: all were looked at, and there are no more.
    """
    criteria = [
        (key.upper(), request[key]) for key in ("from", "subject", "text") if request.get(key)
    ]
    if since := request.get("since"):
        day = date.fromisoformat(since)
        criteria.insert(0, (f"SINCE {day.day}-{_MONTHS[day.month - 1]}-{day.year:04}", ""))
    criteria = criteria or [("ALL", "")]
    with mailbox(account) as box:
        if request.get("sent"):
            _open_sent(box, account)
            uids, complete = box.newest(criteria, MOST_LISTED)
            return {"messages": _listed_sent(box, uids), "complete": complete}
        box.open()
        uids, complete = box.newest(criteria, MOST_LISTED)
        return {"messages": _listed(box, uids), "complete": complete}


def read(account: Account, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return one message as plain text, the newest unread one without an id."""
    with mailbox(account) as box:
        box.open()
        if request.get("id"):
            uid = _uid(box, request["id"])
        else:
            newest, _ = box.newest([("UNSEEN", "")], 1)
            if not newest:
                return {"none": True}
            uid = newest[0]
        try:
            found = _found(box.fetch([uid], _WHOLE), uid)
            parts = leaves(found["BODYSTRUCTURE"])
            body, cut = _body(box, uid, parts)
        except (BadStructure, TypeError, KeyError) as e:
            raise ToolFailure.of(
                ErrorCode.EXECUTION_ERROR,
                "This message is built in a way that cannot be read here",
                retryable=False,
                for_wearer="This mail cannot be read here.",
            ) from e
    return {
        **_about(box, found),
        **_people(found),
        **_listed_parts(parts),
        "body": body,
        "cut": cut,
    }


def send(account: Account, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send a message, and put it into the folder of sent messages if that succeeds."""
    references: Sequence[str] = ()
    if request.get("id"):
        references = _answered(account, request)
    message = mail_smtp.compose(account, request, references).as_bytes()
    mail_smtp.send(account, request["to"], message)
    try:
        with mailbox(account) as box:
            stored = box.add_sent(message, request["message_id"])
    except ToolFailure:
        stored = False  # it was sent all the same
    return {"stored": stored}


def find_sent(account: Account, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether a message is in the folder of sent messages."""
    with mailbox(account) as box:
        return {"there": box.sent_has(request["message_id"])}


# ------------------------------------------------------------------ messages


def _uid(box: Mailbox, name: str) -> int:
    """Return the UID of an id. Raise `ToolFailure` if its mailbox was made again since."""
    validity, _, uid = name.partition("-")
    if int(validity) != box.validity:
        raise _gone(name)
    return int(uid)


def _gone(name: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: /id there is no message {name}",
        suggestion="Take the id from email:unread or email:search",
        for_wearer="There is no such mail any more.",
    )


def _found(fetched: Sequence[dict[str, Any]], uid: int) -> dict[str, Any]:
    for each in fetched:
        if each.get("UID") == str(uid).encode():
            return each
    raise ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        "Invalid parameters: /id there is no such message any more",
        suggestion="Take the id from email:unread or email:search",
        for_wearer="There is no such mail any more.",
    )


def _open_sent(box: Mailbox, account: Account) -> None:
    """Open the folder of sent messages. Raise `ToolFailure` if there is none."""
    if (name := box.sent_name()) is None:
        raise ToolFailure.of(
            ErrorCode.TOOL_UNAVAILABLE,
            f"The mail server {account.imap.host} has no folder of sent messages",
            suggestion="Look into the mail program that sent mail is kept by",
            for_wearer="There is no folder of sent mail.",
        )
    box.open(name)


def _listed(box: Mailbox, uids: Sequence[int]) -> list[dict[str, Any]]:
    return [_about(box, found) for found in _fetched(box, uids, _BRIEF)]


def _listed_sent(box: Mailbox, uids: Sequence[int]) -> list[dict[str, Any]]:
    """Return sent messages: with those they went to, and without an id, as `read` looks into the
    inbox only.
    """
    listed = []
    for found in _fetched(box, uids, _BRIEF_SENT):
        about = _about(box, found)
        head = mail_text.fields(found["HEADER"] or b"")
        to = mail_text.addresses(head.get("to", ""))[:MOST_PEOPLE]
        people = [{"name": name, "address": address} for name, address in to]
        listed.append({"to": people, "subject": about["subject"], "date": about["date"]})
    return listed


def _fetched(box: Mailbox, uids: Sequence[int], items: str) -> list[dict[str, Any]]:
    """Return the messages of these UIDs in their order; one that cannot be read is left out."""
    try:
        fetched = box.fetch(uids, items)
    except BadStructure:
        return []
    by_uid = {each.get("UID"): each for each in fetched if "HEADER" in each}
    numbers = [str(uid).encode() for uid in uids]
    return [by_uid[number] for number in numbers if number in by_uid]


def _about(box: Mailbox, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return who wrote a message, its subject, and when the server received it."""
    head = mail_text.fields(found.get("HEADER") or b"")
    name, address = next(iter(mail_text.addresses(head.get("from", ""))), ("", ""))
    return {
        "id": f"{box.validity}-{found['UID'].decode()}",
        "from": {"name": name, "address": address},
        "subject": mail_text.one_line(mail_text.header(head.get("subject", "")), 300),
        "date": _moment(found.get("INTERNALDATE")),
    }


def _people(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return to whom a message went, and to whom an answer goes."""
    head = mail_text.fields(found.get("HEADER") or b"")
    to = mail_text.addresses(head.get("to", "")) + mail_text.addresses(head.get("cc", ""))
    writers = _reply_to(head)
    subject = mail_text.one_line(mail_text.header(head.get("subject", "")), 190)
    if not subject.lower().startswith("re:"):
        subject = f"Re: {subject}".strip()
    return {
        "to": [{"name": name, "address": address} for name, address in to[:MOST_PEOPLE]],
        "reply": {"to": writers[: mail_smtp.MAX_RECIPIENTS], "subject": subject},
    }


def _reply_to(head: Mapping[str, str]) -> list[str]:
    found = mail_text.addresses(head.get("reply-to", "") or head.get("from", ""))
    return [address for _, address in found if mail_smtp.is_address(address)]


def _listed_parts(parts: Sequence[Part]) -> dict[str, Any]:
    attached = [part for part in parts if not part.readable]
    return {
        "attachments": [part.about() for part in attached[:MOST_ATTACHMENTS]],
        "attachments_total": len(attached),
    }


def _body(box: Mailbox, uid: int, parts: Sequence[Part]) -> tuple[str, bool]:
    """Fetch the text parts, up to a limit, and return them as text; and whether that cut it."""
    readable = [part for part in parts if part.readable]
    wanted, room, cut = [], MAX_BODY, len(readable) > MOST_TEXTS
    for part in readable[:MOST_TEXTS]:
        take = min(part.size or room, room)
        cut = cut or take < part.size
        if take:
            wanted.append((part, take))
        room -= take
    if not wanted:
        return "", cut
    items = " ".join(f"BODY.PEEK[{part.number}]<0.{take}>" for part, take in wanted)
    found = _found(box.fetch([uid], f"UID {items}"), uid)
    texts = [_text_of(part, found.get(part.number) or b"") for part, _ in wanted]
    return "\n\n".join(filter(None, texts)), cut


def _text_of(part: Part, raw: bytes) -> str:
    text = mail_text.decode(mail_text.unpack(raw, part.encoding), part.charset)
    if part.kind == "text/html":
        text = mail_text.from_html(text)
    return mail_text.tidy(text)


def _moment(raw: Any) -> str:
    """Return IMAP's `21-Nov-2026 10:30:00 +0100` as an ISO time in UTC; "" if it is none."""
    match = _DATE.match(raw.decode("ascii", "replace")) if isinstance(raw, bytes) else None
    if match is None or match[2].title() not in _MONTHS:
        return ""
    day, month, rest = match[1], _MONTHS.index(match[2].title()) + 1, match.groups()[3:6]
    try:
        moment = datetime.fromisoformat(
            f"{match[3]}-{month:02}-{int(day):02}T{':'.join(rest)}{match[7][:3]}:{match[7][3:]}"
        )
        return moment.astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return ""


def _answered(account: Account, request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids that an answer refers to. Raise `ToolFailure` if there is no such message, or
    if it is not from, or to, everybody who would get the answer.
    """
    with mailbox(account) as box:
        box.open()
        uid = _uid(box, request["id"])
        try:
            found = _found(box.fetch([uid], _WHOLE.replace("BODYSTRUCTURE ", "")), uid)
        except BadStructure:
            raise _gone(request["id"]) from None
    head = mail_text.fields(found.get("HEADER") or b"")
    named = [
        address.lower()
        for field in ("from", "reply-to", "to", "cc")
        for _, address in mail_text.addresses(head.get(field, ""))
    ]
    for number, address in enumerate(request["to"]):
        if address.lower() not in named:
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS,
                f"Invalid parameters: /to/{number} {address} is nobody in that message",
                suggestion="Take the addresses from email:read, or send a new message with"
                " email:send",
            )
    ids = mail_smtp.message_ids(head.get("message-id", ""))[:1]
    return (*mail_smtp.message_ids(head.get("references", "")), *ids)
