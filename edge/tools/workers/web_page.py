"""Reads a page of HTML: its title, and its text without menus and the like."""

import logging

import trafilatura
from lxml import etree
from lxml.html import HtmlElement

logging.getLogger("trafilatura").setLevel(logging.CRITICAL)


def read(page: str) -> tuple[str, str]:
    """Return title and text; what cannot be read is ""."""
    tree = trafilatura.load_html(page)
    if tree is None:  # a page may leave out the tags that it looks for
        page = f"<html><body>{page}</body></html>"
        tree = trafilatura.load_html(page)
    if tree is None:
        return "", ""
    title = _title(tree)
    # A page without an article has the text of all its elements.
    text = trafilatura.extract(tree, include_comments=False, fast=False)
    return title, text or trafilatura.html2txt(page)


def _title(tree: HtmlElement) -> str:
    found = tree.find(".//title")
    return "" if found is None else str(etree.tostring(found, method="text", encoding="unicode"))
