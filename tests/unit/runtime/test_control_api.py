"""All pages of a listing: every tool once, also if the registry changes in between."""

from urllib.parse import parse_qs, urlsplit

import pytest

from edge.runtime.control_api import MAX_STARTS, list_tools


class Daemon:
    """Lists `each` tools a page; `versions`: the registry's at each request, the last one stays."""

    def __init__(self, names, each=2, versions=("1",)):
        self.names, self.each, self.versions = sorted(names), each, list(versions)
        self.asked = []

    def __call__(self, path):
        query = parse_qs(urlsplit(path).query, keep_blank_values=True)
        (after,) = query.pop("after")
        self.asked.append((after, query))
        version = self.versions.pop(0) if len(self.versions) > 1 else self.versions[0]
        rest = [name for name in self.names if name > after]
        page, more = rest[: self.each], rest[self.each :]
        return {
            "version": version,
            "tools": [{"name": name, "of": version} for name in page],
            "counts": {"offered": len(self.names)},
            "next": page[-1] if more else "",
        }


NAMES = ["a:1", "a:ü&=%?", "b:2", "c:3", "d:4"]


@pytest.mark.parametrize("each", [1, 2, 5, 6])
def test_every_page_is_asked_for_with_the_same_query(each):
    daemon = Daemon(NAMES, each)
    document = list_tools(daemon, {"all": "1", "category": "ü&"})
    assert [tool["name"] for tool in document["tools"]] == NAMES
    assert (document["version"], document["counts"]) == ("1", {"offered": 5})
    assert [after for after, _ in daemon.asked] == ["", *NAMES[each - 1 : -1 : each]]
    assert all(query == {"all": ["1"], "category": ["ü&"]} for _, query in daemon.asked)


def test_no_tools_are_no_tools():
    assert list_tools(Daemon([]))["tools"] == []


def test_a_daemon_without_pages_gives_all_tools_at_once():
    assert list_tools(lambda _: {"tools": NAMES}) == {"tools": NAMES}


def test_a_registry_that_changes_between_two_pages_is_listed_from_the_start():
    daemon = Daemon(NAMES, 2, ["1", "1", "2", "2", "2", "2"])
    document = list_tools(daemon)
    assert [(tool["name"], tool["of"]) for tool in document["tools"]] == [
        (name, "2") for name in NAMES
    ]


def test_a_registry_that_always_changes_is_listed_in_the_end():
    daemon = Daemon(NAMES, 2, [str(n) for n in range(100)])
    assert [tool["name"] for tool in list_tools(daemon)["tools"]] == NAMES
    assert [after for after, _ in daemon.asked].count("") == MAX_STARTS
