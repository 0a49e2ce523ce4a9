"""Answers of DAV servers (RFC 4918) as XML. The code that receives them limits their size."""

from typing import Final
from xml.etree import ElementTree as ET

_ROOT: Final = "{DAV:}multistatus"


def read(body: bytes) -> ET.Element:
    """Return the multistatus of an answer. Raises ValueError for anything else."""
    # Entities could expand without limit. Read as UTF-8 whatever it declares: another encoding
    # would hide them.
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body or b"\0" in body:
        raise ValueError("a document with declarations")
    try:
        parser = ET.XMLParser(encoding="utf-8")  # noqa: S314 - bounded, and without entities
        root = ET.fromstring(body, parser)  # noqa: S314 - as above
    except ET.ParseError:
        raise ValueError("no XML") from None
    if root.tag != _ROOT:
        raise ValueError("no multistatus")
    return root
