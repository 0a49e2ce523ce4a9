"""The web tools, with a real HTTP server and a child process for each request."""

import asyncio
import json
import re

import pytest

from edge.config import tool_options
from edge.core.phrases import match
from edge.storage.sqlite.database import StoreFull
from edge.storage.tools.user_stores import PrivateStores
from edge.tools.worker_calls import WorkerCalls
from edge.tools.workers import web
from edge.tools.workers.readable_text import clean, decoded, one_line
from tests.unit.tools.compiled import shipped
from tests.unit.tools.test_local import Rig, call
from tests.unit.tools.workers.local_server import LOOPBACK, serving
from tools_cache.api.tool import ErrorCode, Source, ToolFailure
from tools_cache.builder import compiler
from tools_cache.everyday import web_searches
from tools_cache.registry.manifest import load

pytestmark = pytest.mark.enable_socket
PEAS = {
    "title": "Growing  peas\u202e",
    "url": "https://www.garden.example/peas",
    "content": "Sow them &amp; wait.",
}
PAGE = f"""<!doctype html><html><head><title>Peas &amp;
beans\u200b</title><script>var x = "hidden";</script></head><body><nav><a href="/">Menu</a></nav>
<article><h1>Peas</h1><p>{"Sow peas in March, in rows. " * 20}</p><p>Größe: 2 m\u202e.</p></article>
</body></html>"""
HTML = {"Content-Type": "text/html; charset=utf-8"}
TEXT = {"Content-Type": "text/plain"}
JSON = {"Content-Type": "application/json"}


class Desk(Rig):
    """The shipped tools with a user's own storage, and real child processes."""

    def __init__(self, path, server):
        self.users, self.server = path / "users", server
        self.stores = PrivateStores(self.users, key=path / "tools.key")
        self.configs = {
            "web:search": {
                "enabled": True,
                "search_url": server.url(""),
                "search_form": "searxng",
                "key_file": "",
            },
            "web:fetch": {"enabled": True, "hosts": [LOOPBACK]},
            "web:request": {"enabled": True, "hosts": [LOOPBACK], "methods": ["GET", "HEAD"]},
        }
        workers = WorkerCalls()
        super().__init__(
            path,
            shipped(),
            compiler.TOOLS,
            private=self.stores.of,
            configs=self.configs,
            workers=lambda: workers,
        )

    async def ask(self, tool, **args):
        return (await self.good(f"web:{tool}", args)).data

    async def fails(self, tool, **args):
        definition = self.registry.snapshot().find(f"web:{tool}").definition
        filled, problems = self.registry.check_args(definition, args)
        assert problems == []
        response = await self.run(f"web:{tool}", filled)
        assert not response.ok
        return response.error

    def finds(self, *results, path="/search"):
        self.server.answers[path] = (200, JSON, json.dumps({"results": results}).encode())


def refused(**request):
    """Return the error of the network part, run here."""
    with pytest.raises(ToolFailure) as raised:
        web.answer({"hosts": [LOOPBACK], "headers": {}, "body": None, **request})
    return raised.value.error


def refused_search(server, **more):
    url = server.url("")
    return refused(
        **{"do": "search", "query": "peas", "search_form": "searxng", "search_url": url, **more}
    )


@pytest.fixture
def server():
    with serving() as local:
        yield local


@pytest.fixture
async def desk(tmp_path, server):
    found = Desk(tmp_path, server)
    yield found
    await found.stores.close()
    await found.packages.close()


def within(told, whole):
    if isinstance(told, dict):
        return all(key in whole and within(value, whole[key]) for key, value in told.items())
    return told == whole


@pytest.mark.parametrize("tool", ["search", "fetch", "request"])
async def test_each_example_of_their_documents_is_true(desk, tool):
    peas = {
        "title": "Growing peas",
        "url": "https://garden.example/peas",
        "content": "Sow them in March.",
    }
    desk.server.answers["/search"] = lambda handler: _found(handler, [peas])
    desk.server.answers["/peas.txt"] = (200, TEXT, b"Sow them in March.")
    desk.server.answers["/api/beds"] = (200, JSON, b'["peas"]')
    doc = (compiler.TOOLS / f"web_{tool}" / "doc.md").read_text(encoding="utf-8")
    if tool != "search":
        doc = doc.replace("https://garden.example", desk.server.url(""))
        doc = doc.replace("garden.example", LOOPBACK)
    found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
    assert found
    for args, result in found:
        data = await desk.ask(tool, **json.loads(args))
        assert within(json.loads(result), data), (args, data)


def _found(handler, results):
    body = json.dumps({"results": results if "q=peas" in handler.path else []}).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


# ------------------------------------------------------------------ search


@pytest.mark.requirement("I15-web-search")
async def test_a_search_asks_the_service_and_numbers_its_titles(desk):
    desk.finds(PEAS, {"url": "javascript:x", "title": "no"}, {"title": "no address"}, 7)
    found = await desk.ask("search", query=" growing  peas ")
    assert found == {
        "query": "growing peas",
        "results": [
            {
                "title": "Growing peas",
                "url": PEAS["url"],
                "host": "garden.example",
                "text": "Sow them & wait.",
            }
        ],
        "text": "1. Growing peas (garden.example)",
    }
    assert desk.server.paths() == ["/search?q=growing+peas&format=json"]
    assert desk.server.seen[0][2]["Authorization"] is None


@pytest.mark.parametrize(
    ("form", "path", "answer", "header"),
    [
        (
            "kagi",
            "/api/v0/search",
            {"data": [{"t": 0, "snippet": "<b>Sow</b> 1 < 2", **PEAS}, {**PEAS, "t": 1}]},
            ("Authorization", "Bot k3y"),
        ),
        (
            "brave",
            "/res/v1/web/search",
            {"web": {"results": [{"description": "<strong>Sow</strong> 1 < 2", **PEAS}]}},
            ("X-Subscription-Token", "k3y"),
        ),
    ],
)
async def test_other_services_are_asked_in_their_own_form(
    desk, tmp_path, form, path, answer, header
):
    (tmp_path / "key").write_text("k3y\n")
    desk.configs["web:search"] |= {"search_form": form, "key_file": str(tmp_path / "key")}
    desk.server.answers[path] = (200, JSON, json.dumps(answer).encode())
    found = await desk.ask("search", query="peas")
    assert [(one["title"], one["text"]) for one in found["results"]] == [
        ("Growing peas", "Sow 1 < 2")
    ]
    assert desk.server.seen[0][2][header[0]] == header[1]
    assert "k3y" not in desk.server.paths()[0]


async def test_brave_that_finds_nothing_leaves_the_results_out(desk):
    desk.configs["web:search"] |= {"search_form": "brave"}
    desk.server.answers["/res/v1/web/search"] = (200, JSON, b"{}")
    assert (await desk.ask("search", query="qq"))["text"] == "Nothing found: qq"


@pytest.mark.requirement("I15-web-search")
async def test_without_a_network_the_last_answer_is_given_with_its_age(desk):
    desk.finds(PEAS)
    await desk.ask("search", query="Peas")
    desk.server.answers["/search"] = (503, {}, b"")
    desk.wall += 3 * 3600 + 120
    found = await desk.ask("search", query="peas")
    assert (found["age_s"], found["text"]) == (
        10_920,
        "Found 3 h ago\n1. Growing peas (garden.example)",
    )
    assert found["reason"] == "127.0.0.1 answered with status 503"
    assert (await desk.fails("search", query="beans")).code is ErrorCode.NETWORK_ERROR


async def test_a_refused_key_gives_no_old_answer(desk, tmp_path):
    desk.finds(PEAS)
    await desk.ask("search", query="peas")
    (tmp_path / "key").write_text("k3y")
    desk.configs["web:search"]["key_file"] = str(tmp_path / "key")
    desk.server.answers["/search"] = (401, {}, b"")
    error = await desk.fails("search", query="peas")
    assert error.code is ErrorCode.AUTH
    assert "k3y" not in str(error)


async def test_searxng_without_json_is_explained(desk):
    desk.server.answers["/search"] = (403, {}, b"")
    error = await desk.fails("search", query="peas")
    assert error.suggestion == "Add json to search.formats in the settings.yml of SearXNG"


@pytest.mark.parametrize("answer", [{}, [], {"results": {}}, "x"])
def test_what_is_no_list_of_results_is_refused(server, answer):
    server.answers["/search"] = (200, JSON, json.dumps(answer).encode())
    error = refused_search(server, key_file="")
    assert "something else than search results" in error.message


@pytest.mark.parametrize("content", [None, b"", b" \n", b"a\nb", b"k\xff", b"k" * 4097])
def test_an_unusable_key_file_is_told_without_its_content(server, tmp_path, content):
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    error = refused_search(server, key_file=str(tmp_path / "key"))
    assert error.code is ErrorCode.TOOL_UNAVAILABLE
    assert error.message.startswith("The file of key_file ")
    assert error.suggestion == "See key_file in [tool.web.search]"
    assert server.seen == []


async def test_a_query_of_blanks_is_refused(desk):
    assert "/query holds only blanks" in (await desk.fails("search", query="  ")).message


async def test_ten_results_at_most_are_given_and_stored(desk):
    many = [{**PEAS, "title": "x" * 900, "content": "y" * 9000} for _ in range(15)]
    desk.finds(*many)
    found = await desk.ask("search", query="peas", limit=3)
    assert found["text"].count("\n") == 2
    assert len(found["results"][0]["title"]) == 200
    assert len(found["results"][0]["text"]) == 500
    desk.server.answers["/search"] = (500, {}, b"")
    assert len((await desk.ask("search", query="peas"))["results"]) == 10
    stored = await web_searches.LastAnswers(desk.stores.of("local", "web").db).find("peas")
    assert len(stored.results) == 10


async def test_the_newest_queries_are_stored_each_once(desk, monkeypatch):
    monkeypatch.setattr(web_searches, "MAX_QUERIES", 3)
    last = web_searches.LastAnswers(desk.stores.of("local", "web").db)
    assert await last.find("a") is None
    for at, query in enumerate(["a", "b", "A", "c", "d"]):
        await last.store(query, web_searches.LastAnswer([{"n": at}], float(at)))
    found = [(query, await last.find(query)) for query in "abcd"]
    assert [(query, answer.at) for query, answer in found if answer] == [
        ("a", 2.0),
        ("c", 3.0),
        ("d", 4.0),
    ]


async def test_answers_stored_at_once_do_not_double(desk):
    db = desk.stores.of("local", "web").db
    last, answer = web_searches.LastAnswers(db), web_searches.LastAnswer([], 1.0)
    await asyncio.gather(*(last.store("a", answer) for _ in range(4)))
    assert len(await db.select("last_answers")) == 1


async def test_an_answer_that_cannot_be_stored_is_given(desk, monkeypatch, caplog):
    async def full(*_):
        raise StoreFull("no space left")

    monkeypatch.setattr(web_searches.LastAnswers, "store", full)
    desk.finds(PEAS)
    assert len((await desk.ask("search", query="peas"))["results"]) == 1
    assert "the answer is not stored: no space left" in caplog.text


@pytest.mark.requirement("I15-web-search")
async def test_no_word_of_a_search_is_on_disk_in_plain_text(desk):
    desk.finds(PEAS)
    await desk.ask("search", query="allergy")
    desk.server.answers["/search"] = (500, {}, b"")
    theirs = await desk.go(call("web:search", {"query": "allergy"}, user_id="eva"))
    assert theirs.error.code is ErrorCode.NETWORK_ERROR
    await desk.stores.close()
    stored = b"".join(file.read_bytes() for file in desk.users.rglob("*") if file.is_file())
    assert stored
    for word in (b"allergy", b"Growing", b"garden"):
        assert word not in stored


# ------------------------------------------------------------------ pages


@pytest.mark.requirement("I15-web-fetch")
async def test_a_page_is_its_article_without_the_menu(desk):
    desk.server.answers["/page"] = (200, HTML, PAGE.encode())
    desk.server.redirects("/go", "/page")
    found = await desk.ask("fetch", url=desk.server.url("/go"))
    assert (found["title"], found["url"]) == ("Peas & beans", desk.server.url("/page"))
    assert "Größe: 2 m." in found["content"]
    assert "Menu" not in found["content"]
    assert "hidden" not in found["content"]
    assert found["text"].startswith("Peas & beans\n")
    assert len(found["text"]) < 600
    assert "next_offset" not in found


async def test_the_lens_has_no_title_twice_no_half_word_and_no_data(desk):
    desk.server.answers["/peas.txt"] = (200, TEXT, b"Sow them in March. " * 60)
    shown = (await desk.ask("fetch", url=desk.server.url("/peas.txt")))["text"]
    assert shown.endswith((" March…", " them…", " Sow…"))
    titled = PAGE.replace("<h1>Peas</h1>", "<h1>Peas &amp; beans</h1>")
    desk.server.answers["/page"] = (200, HTML, titled.encode())
    shown = (await desk.ask("fetch", url=desk.server.url("/page")))["text"]
    assert shown.count("Peas & beans") == 1
    desk.server.answers["/beds"] = (200, JSON, b'{"beds": ["peas"]}')
    found = await desk.ask("fetch", url=desk.server.url("/beds"))
    assert (found["content"], found["text"]) == ('{"beds": ["peas"]}', "Data for programs")


async def test_a_page_that_is_not_there_is_said_to_be_missing(desk):
    error = await desk.fails("fetch", url=desk.server.url("/nowhere"))
    assert (error.code, error.for_wearer) == (ErrorCode.HTTP_ERROR, "There is no such page.")


@pytest.mark.requirement("I15-web-fetch")
async def test_a_long_page_is_read_in_parts(desk):
    desk.server.answers["/long"] = (200, TEXT, b"0123456789" * 4500)
    parts, more = [], {}
    while True:
        part = await desk.ask("fetch", url=desk.server.url("/long"), **more)
        parts.append(part["content"])
        if "next_offset" not in part:
            break
        more = {"offset": part["next_offset"]}
    assert [len(part) for part in parts] == [20_000, 20_000, 5_000]
    assert "".join(parts) == "0123456789" * 4500
    error = await desk.fails("fetch", url=desk.server.url("/long"), offset=45_000)
    assert "/offset the page has 45000 characters" in error.message


async def test_a_page_above_the_limit_is_read_to_it(desk):
    desk.server.answers["/huge"] = (200, TEXT, "ä".encode() * 600_000)
    found = await desk.ask("fetch", url=desk.server.url("/huge"))
    assert (found["truncated"], found["total_chars"]) == (True, 524_288)


async def test_a_page_without_an_article_has_the_text_of_all_of_it(desk):
    desk.server.answers["/short"] = (200, HTML, b"<title>T</title><p>Open 9 to 5")
    assert (await desk.ask("fetch", url=desk.server.url("/short")))["content"] == "Open 9 to 5"
    bare = b"<title>T</title><article><p>Peas</p><p>Beans</p></article>"
    desk.server.answers["/bare"] = (200, HTML, bare)
    found = await desk.ask("fetch", url=desk.server.url("/bare"))
    assert (found["title"], found["content"]) == ("T", "T\nPeas\nBeans")
    desk.server.answers["/empty"] = (200, HTML, b"<script>draw()</script>")
    error = await desk.fails("fetch", url=desk.server.url("/empty"))
    assert error.message == "The page of 127.0.0.1 has no text"


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "text/css", ""])
def test_another_kind_of_content_is_refused(server, kind):
    server.answers["/x"] = (200, {"Content-Type": kind}, b"x")
    error = refused(do="fetch", url=server.url("/x"))
    assert error.code is ErrorCode.UNSUPPORTED
    assert kind in error.message


@pytest.mark.requirement("I15-web-public")
@pytest.mark.parametrize("tool", ["fetch", "request"])
async def test_a_private_host_must_be_named_in_the_settings(desk, tool):
    desk.configs[f"web:{tool}"]["hosts"] = []
    error = await desk.fails(tool, url=desk.server.url("/page"))
    assert error.code is ErrorCode.DENIED
    assert error.suggestion == "Only a host that the settings name may be private"
    assert desk.server.seen == []


async def test_a_page_that_is_not_for_everybody_is_no_question_of_a_key(desk):
    desk.server.answers["/x"] = (403, HTML, b"no")
    error = await desk.fails("fetch", url=desk.server.url("/x"))
    assert (error.code, error.suggestion) == (ErrorCode.HTTP_ERROR, None)


@pytest.mark.parametrize(
    ("body", "header", "text"),
    [
        ("Größe".encode(), "", "Größe"),
        ("Größe".encode("latin-1"), "", "Größe"),
        ("10 €".encode("cp1252"), "text/html; charset=ISO-8859-1", "10 €"),
        ("Größe".encode("utf-16"), "text/html; charset=utf-8", "Größe"),
        (b"\xef\xbb\xbfG", "text/html; charset=latin-1", "G"),
        ("<meta charset='koi8-r'>мир".encode("koi8-r"), "", "<meta charset='koi8-r'>мир"),
        ("мир".encode(), 'text/html; charset="UTF-8"', "мир"),
        ("мир".encode(), "text/html; charset=no-such", "мир"),
        (b"a", "text/html; charset=zlib", "a"),
        (b"a\\x41", "text/html; charset=unicode_escape", "a\\x41"),
        ("мир".encode()[:-1], "", "ми"),
        (b"a\xff", "text/html; charset=utf-8", "a�"),
    ],
)
def test_a_text_is_decoded_by_what_names_its_charset(body, header, text):
    assert decoded(body, header) == text


def test_characters_that_are_not_seen_are_removed():
    text = "a\u202eb\u2066c\x00\x1b[1md\ufeff\u200b\U000e0041e\r\nf\u2028g\n\n\n\nh \ti\x7f "
    assert clean(text) == "abc[1mde\nf\ng\n\nh  i"
    assert clean("می\u200cخواهم 👩\u200d🌾") == "می\u200cخواهم 👩\u200d🌾"
    assert one_line(" a\n b", 9) == "a b"
    assert one_line("abc def", 5) == "abc…"


# ------------------------------------------------------------------ requests


@pytest.mark.requirement("I15-web-request")
async def test_a_method_must_be_allowed_by_the_settings(desk):
    desk.server.answers["/api"] = (201, JSON, b'{"id": 7}')
    error = await desk.fails("request", url=desk.server.url("/api"), method="POST", body="x")
    assert (error.code, error.message) == (ErrorCode.DENIED, "The settings allow no POST requests")
    assert error.suggestion == 'Add "POST" to methods in [tool.web.request]'
    desk.configs["web:request"]["methods"] = ["POST"]
    found = await desk.ask(
        "request",
        url=desk.server.url("/api"),
        method="POST",
        headers={"X-Key": "k", "Content-Type": "application/json"},
        body='{"ä": 1}',
    )
    assert (found["status"], found["content"]) == (201, '{"id": 7}')
    assert found["text"] == "127.0.0.1 answered 201"
    ((method, _, headers, body),) = desk.server.seen
    assert (method, headers["X-Key"], body) == ("POST", "k", '{"ä": 1}'.encode())
    definition = desk.registry.snapshot().find("web:request").definition
    assert definition.requires_confirmation == "always"


async def test_an_answer_is_cut_and_bytes_are_no_text(desk):
    desk.server.answers["/long"] = (500, TEXT, b"x" * 70_000)
    found = await desk.ask("request", url=desk.server.url("/long"))
    assert (found["status"], found["truncated"], len(found["content"])) == (500, True, 65_536)
    desk.server.answers["/wide"] = (200, TEXT, "日".encode() * 21_000)
    found = await desk.ask("request", url=desk.server.url("/wide"))
    assert found["content"].startswith("日")
    desk.server.answers["/png"] = (200, {"Content-Type": "image/png", "ETag": "e"}, b"\x89PNG")
    found = await desk.ask("request", url=desk.server.url("/png"))
    assert (found["content"], found["bytes"], found["headers"]["etag"]) == ("", 4, "e")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"headers": {"HOST": "a"}}, "HOST is set by glassd itself"),
        ({"headers": {"Content-Length": "1"}}, "Content-Length is set by glassd itself"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "is set by glassd itself"),
        ({"headers": {"Connection": "close"}}, "is set by glassd itself"),
        ({"headers": {"a b": "1"}}, "'a b' is no name of a header"),
        ({"headers": {"X": "1", "x": "2"}}, "one is there twice"),
        ({"body": "x"}, "/body a GET request has none"),
        ({"method": "POST", "body": "ä" * 40_000}, "/body is longer than 64 KiB"),
    ],
)
def test_a_request_that_is_not_the_callers_to_make_is_refused(server, more, problem):
    error = refused(**{"do": "request", "url": server.url("/"), "method": "GET", **more})
    assert error.code is ErrorCode.INVALID_ARGUMENTS
    assert problem in error.message
    assert server.seen == []


@pytest.mark.parametrize(
    "headers", [{f"X-{n}": "" for n in range(21)}, {"X": "a\nb"}, {"X": "ä"}, {"X": "a" * 2001}]
)
async def test_headers_have_limits(desk, headers):
    definition = desk.registry.snapshot().find("web:request").definition
    args = {"url": "https://a.example", "headers": headers}
    _, problems = desk.registry.check_args(definition, args)
    assert any("/headers" in str(problem) for problem in problems)


@pytest.mark.requirement("I15-web-request")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_failure_after_sending_is_uncertain_unless_it_only_reads(desk, method):
    desk.configs["web:request"]["methods"] = ["GET", "DELETE"]
    desk.server.answers["/gone"] = lambda handler: setattr(handler, "close_connection", True)
    error = await desk.fails("request", url=desk.server.url("/gone"), method=method)
    assert error.code is ErrorCode.NETWORK_ERROR
    assert error.partial_side_effects == (method == "DELETE")


@pytest.mark.parametrize("writes", [False, True])
async def test_an_answer_that_never_comes_ends_by_the_deadline(desk, writes):
    desk.server.answers["/silent"] = lambda _handler: desk.server.over.wait(30)
    request = {"url": desk.server.url("/silent"), "hosts": [LOOPBACK], "headers": {}, "body": None}
    method = "POST" if writes else "GET"
    with pytest.raises(ToolFailure, match="took longer than 2 s") as raised:
        await WorkerCalls().ask(
            "web", {"do": "request", "method": method, **request}, deadline_s=2.0, writes=writes
        )
    assert raised.value.error.partial_side_effects == writes


# ------------------------------------------------------------------ settings and voice


def _settings(**web):
    settings, problems = tool_options.read({"web": web}, compiler.TOOLS)
    assert problems == []
    off = {name: why for name, why in settings.off.items() if name.startswith("web:")}
    return {n: v for n, v in settings.values.items() if n.startswith("web:")}, off


def test_nothing_of_the_web_is_on_by_itself():
    for given in ({}, {"hosts": ["nas"]}):
        values, off = _settings(**given)
        assert values == {}
        assert off["web:search"] == "not configured: set search_url in [tool.web]"
        assert sorted(off) == ["web:fetch", "web:request", "web:search"]


def test_a_search_service_switches_on_the_search_alone():
    values, off = _settings(search_url="http://searx.lan:8888")
    assert list(values) == ["web:search"]
    assert sorted(off) == ["web:fetch", "web:request"]


@pytest.mark.parametrize(
    ("search", "problem"),
    [
        ({"search_url": "searx.lan"}, "search_url"),
        ({"search_url": "https://me:pw@a.example"}, "search_url"),
        ({"search_url": "https://a.example/?q="}, "search_url"),
        ({"search_url": "https://kagi.example", "search_form": "kagi"}, "kagi needs a key"),
        ({"search_url": "https://a.example", "key_file": "key"}, "key_file"),
        ({"search_url": "http://a.example", "key_file": "/key"}, "by https only"),
        ({"search_url": "https://a.example", "search_form": "bing"}, "search_form"),
    ],
)
def test_wrong_settings_of_the_search_are_named(search, problem):
    assert problem in _settings(search=search)[1]["web:search"]


@pytest.mark.parametrize("host", ["http://nas", "nas:80", "a/b", "", "me@nas"])
def test_a_host_in_the_settings_is_a_name_alone(host):
    assert "hosts" in _settings(fetch={"enabled": True, "hosts": [host]})[1]["web:fetch"]
    good = ["nas", "192.168.1.5", "fd00::5"]
    assert _settings(fetch={"enabled": True, "hosts": good})[0]["web:fetch"]["hosts"] == good


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "Search the web for growing peas"),
        ("en", "Look up on the web growing peas"),
        ("de", "Suche im Internet nach growing peas"),
        ("es", "Busca en internet growing peas"),
        ("fr", "Cherche sur internet growing peas"),
        ("it", "Cerca su internet growing peas"),
    ],
)
def test_a_search_is_asked_by_voice(language, sentence):
    registry = load(shipped().encode(), source=Source.LOCAL, trusted=True)
    tools = tuple(tool for app in registry.apps for tool in app.tools)
    found = match(sentence, tools, language)
    assert (found.tool.name, found.args["query"]) == ("web:search", "growing peas")
