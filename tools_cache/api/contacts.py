"""Extracts contacts from text: e-mail addresses, phone numbers, and the names next to them.

Deterministic; no name is derived from an address, and dates and times are not phone numbers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tools_cache.api.tool import Json

MAX_CONTACTS: Final = 100
_EMAIL: Final = re.compile(
    r"(?<![\w.+-])[A-Za-z0-9_%+-]{1,64}(?:\.[A-Za-z0-9_%+-]{1,64}){0,8}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])"
)
_PHONE: Final = re.compile(
    r"(?<![\w.,:/+-])\+?(?:\(\d{1,5}\)|\d)(?:[ ./-]?(?:\(\d{1,5}\)|\d)){5,19}(?![\w:/-]|[.,]\d)"
)
_DATE: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{1,2}\.\d{2}[ "
    r"-]+\d{1,2}\.\d{2}|^\d+\.\d+$"
)
_NAME: Final = re.compile(r"[^\W\d_][^\W\d_'’.-]*(?:['’-][^\W\d_]+)*")
_JOINS: Final = frozenset(
    {"von", "van", "de", "der", "den", "da", "di", "du", "la", "le", "al", "bin", "zu"}
)
_NO_NAMES: Final = frozenset(
    """
    Call Phone Tel Telephone Telefon Mobile Mobil Cell Fax Email E-Mail Mail Mailto Contact Write
    Ask Reach Text From To Cc Bcc Or And At The My His Her Our Your Please Send Meet Dear Hello Hi
    No Then In By Is On With For Number Address Office Home Work Name Also You I Regards Monday
    Tuesday Wednesday Thursday Friday Saturday Sunday Email: Signed Best Kind Thanks
    """.split()
)
MAX_BESIDE: Final = 80
"""Characters before an address or number in which its name is searched."""
MAX_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class Contact:
    """One contact: parts that stand together in a text."""

    name: str
    emails: tuple[str, ...]
    phones: tuple[str, ...]
    written: tuple[str, ...] = field(default=(), compare=False)
    """The numbers as they stand in the text: people read them in groups."""

    def to_json(self) -> dict[str, Json]:
        return {"name": self.name or None, "emails": list(self.emails), "phones": list(self.phones)}


@dataclass(frozen=True, slots=True)
class _Found:
    """One address or number: either of the two has one element."""

    start: int
    end: int
    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


def extract(text: str) -> list[Contact]:
    """Return the contacts in order; what follows a name in its sentence or line belongs to it."""
    contacts: list[Contact] = []
    seen: set[tuple[str, ...]] = set()
    ended = 0
    for one in sorted(_found(text), key=lambda f: f.start):
        if one.start < ended:
            continue
        before, since, ended = text[ended : one.start], ended, one.end
        if (*one.emails, *one.phones) in seen:
            continue
        seen.add((*one.emails, *one.phones))
        name = _name(before) or _name_after(text, one) or _card(before)
        together = contacts and since and not name and _together(before, contacts[-1])
        if together or (name and contacts and contacts[-1].name == name):
            last = contacts.pop()
            emails, phones = (*last.emails, *one.emails), (*last.phones, *one.phones)
            contacts.append(Contact(last.name, emails, phones, (*last.written, *one.written)))
        elif len(contacts) < MAX_CONTACTS:
            contacts.append(Contact(name, one.emails, one.phones, one.written))
    return contacts


def _together(between: str, last: Contact) -> bool:
    """Return whether two parts belong to one contact: in one sentence, or on the line after a name.
    A list of bare addresses is a list of people.
    """
    if "\n" in between:
        return bool(last.name) and between.count("\n") == 1
    return not re.search(r"[.;!?](?:\s|$)", between)


def _found(text: str) -> Iterator[_Found]:
    for match in _EMAIL.finditer(text):
        local, _, host = match[0].rpartition("@")
        yield _Found(*match.span(), emails=(f"{local}@{host.lower()}",))
    for match in _PHONE.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if 7 <= len(digits) <= 15 and not _DATE.search(match[0]):
            plain = "+" * match[0].startswith("+") + digits
            yield _Found(*match.span(), phones=(plain,), written=(match[0],))


def _name(before: str) -> str:
    """Return the last name before it in its line and sentence: "Eva Meier at", "Eva Meier <"."""
    beside = re.split(
        r"\n|[;!?]|\.(?=\s+[^\W\d_])(?<!Dr\.)(?<!Mr\.)(?<!Ms\.)", before[-MAX_BESIDE:]
    )[-1]
    runs: list[list[str]] = [[]]
    at = 0
    for match in _NAME.finditer(beside):
        gap = beside[at : match.start()]
        if runs[-1] and gap.strip(" .") != "":
            runs.append([])
        at = match.end()
        word = match[0]
        if (word in _JOINS and runs[-1]) or _is_name(word):
            runs[-1].append(word)
        else:
            runs.append([])
    names = [_trimmed(run) for run in runs]
    return next((name for name in reversed(names) if name), "")


def _is_name(word: str) -> bool:
    return word[0].isupper() and word not in _NO_NAMES and word.capitalize() not in _NO_NAMES


def _card(before: str) -> str:
    """Return the line above if it is just a name, as on a business card."""
    lines = before[-2 * MAX_BESIDE :].split("\n")
    words = _NAME.findall(lines[-2]) if len(lines) > 1 else []
    if not 0 < len(words) <= MAX_WORDS or re.sub(r"[\s.,]", "", _NAME.sub("", lines[-2])):
        return ""
    return _trimmed(words) if all(w in _JOINS or _is_name(w) for w in words) else ""


def _trimmed(run: list[str]) -> str:
    while run and run[-1] in _JOINS:
        run = run[:-1]
    return " ".join(run[-MAX_WORDS:])


def _name_after(text: str, one: _Found) -> str:
    """Return a name in brackets right after: "eva@example.com (Eva Meier)"."""
    match = re.match(r"[ \t]{0,3}\(([^()\n]{2,60})\)", text[one.end : one.end + 70])
    words = _NAME.findall(match[1]) if match else []
    named = all(w[0].isupper() or w in _JOINS for w in words) and not set(words) & _NO_NAMES
    return " ".join(words) if named else ""
