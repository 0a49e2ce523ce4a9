"""One user's own tables: whatever a tool says, it stays within this user's file and these
limits, and secrets in cipher.
"""

import asyncio
import sqlite3
import stat

import pytest

from edge.storage.sqlite.database import StoreError, StoreFull
from edge.storage.tools import table_sql, user_tables
from edge.storage.tools.encryption import KEY_BYTES, Altered, Cipher, KeyLost
from edge.storage.tools.packages import BadSql
from edge.storage.tools.user_stores import PrivateStores
from edge.storage.tools.users import Owner, Users, escaped

INJECTION = "x'); DROP TABLE things; --"


@pytest.fixture
async def stores(tmp_path):
    made = PrivateStores(tmp_path / "users", key=tmp_path / "tools.key")
    yield made
    await made.close()


@pytest.fixture
async def db(stores):
    found = stores.of("anna", "io.things").db
    await found.create_table(
        "things", {"name": "TEXT NOT NULL", "size": "INTEGER", "encrypted__pin": "TEXT"}
    )
    return found


def on_disk(tmp_path):
    return b"".join(p.read_bytes() for p in sorted(tmp_path.rglob("*")) if p.is_file())


# ------------------------------------------------------------------ the five verbs


@pytest.mark.requirement("S4-28")
async def test_rows_are_put_in_found_changed_and_deleted(db):
    assert [
        await db.insert("things", {"name": n, "size": s})
        for n, s in (("pen", 1), ("ink", None), ("pad", 3))
    ] == [1, 2, 3]
    assert await db.select("things", where={"name": "pad"}) == [
        {"id": 3, "name": "pad", "size": 3, "encrypted__pin": None}
    ]
    assert await db.select("things", where={"size": None}, columns=["name"]) == [{"name": "ink"}]
    assert await db.select("things", where={"name": ["pen", "pad"], "size": 3}, columns=["id"]) == [
        {"id": 3}
    ]
    assert await db.select("things", where={"id": []}) == []
    assert [r["name"] for r in await db.select("things", order="-name", limit=2)] == ["pen", "pad"]
    assert [r["name"] for r in await db.select("things", order="name", columns=["name"])] == [
        "ink",
        "pad",
        "pen",
    ]
    assert await db.update("things", {"size": 9}, where={"name": ["pen", "ink"]}) == 2
    assert await db.fetch("SELECT sum(size) AS n FROM things WHERE size > ?", 5) == [{"n": 18}]
    assert await db.execute("UPDATE things SET size = size + ? WHERE id = ?", 1, 1) == 1
    assert await db.delete("things", where={"id": 2}) == 1
    assert await db.delete("things", where={}) == 2
    assert await db.insert("things", {"name": "new"}) == 4  # a number is never given twice


@pytest.mark.requirement("S4-28")
async def test_text_that_looks_like_sql_is_stored_as_it_is(db):
    await db.insert("things", {"name": INJECTION})
    await db.update("things", {"name": INJECTION + "2"}, where={"name": INJECTION})
    await db.execute("INSERT INTO things (name) VALUES (?)", INJECTION)
    assert [r["name"] for r in await db.select("things")] == [INJECTION + "2", INJECTION]
    assert await db.delete("things", where={"name": "' OR 1 = 1 --"}) == 0


@pytest.mark.parametrize(
    "name",
    [
        "",
        "1x",
        "a b",
        'a"b',
        "a;b",
        "a-b",
        "sqlite_master",
        "SQLITE_x",
        "x" * 64,
        "ä",
        "a\x00b",
        "_kv",
    ],
)
@pytest.mark.requirement("S4-28")
async def test_a_name_that_is_none_is_refused_wherever_it_stands(db, name):
    for attempt in (
        db.create_table(name, {"a": "TEXT"}),
        db.create_table("t", {name: "TEXT"}),
        db.insert(name, {"name": "x"}),
        db.insert("things", {name: 1}),
        db.select(name),
        db.select("things", where={name: 1}),
        db.select("things", columns=[name]),
        db.select("things", order=f"-{name}") if name else db.select(""),
        db.update(name, {"size": 1}, where={}),
        db.update("things", {name: 1}, where={}),
        db.update("things", {"size": 1}, where={name: 1}),
        db.delete(name, where={}),
        db.delete("things", where={name: 1}),
    ):
        with pytest.raises(BadSql, match="is no name of a"):
            await attempt


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        (lambda db: db.create_table("t", {}), "1 to 40 columns"),
        (lambda db: db.create_table("t", {f"c{n}": "TEXT" for n in range(41)}), "1 to 40 columns"),
        (lambda db: db.create_table("t", {"Id": "TEXT"}), "id by itself"),
        (lambda db: db.create_table("t", {"a": "TEXT DEFAULT 'x'"}), "none of TEXT, INTEGER"),
        (lambda db: db.create_table("t", {"a": "TEXT, b TEXT"}), "none of TEXT, INTEGER"),
        (lambda db: db.insert("things", {}), "at least one column"),
        (lambda db: db.insert("things", {"id": 5}), "cannot be set"),
        (lambda db: db.update("things", {"ID": 5}, where={}), "cannot be set"),
        (lambda db: db.insert("things", {"name": ["a"]}), "not list; json.dumps it first"),
        (lambda db: db.insert("things", {"name": None}), "NOT NULL"),
        (lambda db: db.insert("nowhere", {"name": 1}), "no such table"),
        (lambda db: db.insert("things", {"nothing": 1}), "no column named nothing"),
        (
            lambda db: db.update("things", {"encrypted__pin": 1}, where={"nothing": 1}),
            "no such column: nothing",
        ),
        (lambda db: db.select("things", where={"nothing": "nothing"}), "no such column: nothing"),
        (lambda db: db.select("things", columns=["nothing"]), "no such column: nothing"),
        (lambda db: db.select("things", order="-nothing"), "no such column: nothing"),
        (lambda db: db.update("nowhere", {"encrypted__pin": 1}, where={}), "no such table"),
        (lambda db: db.execute("ATTACH DATABASE '/etc/x' AS x"), "not authorized"),
        (lambda db: db.execute("PRAGMA journal_mode = DELETE"), "not authorized"),
        (lambda db: db.fetch("DELETE FROM things"), "not authorized"),
    ],
)
async def test_what_cannot_be_done_is_said_and_changes_nothing(db, attempt, says):
    with pytest.raises(BadSql, match=says):
        await attempt(db)
    assert await db.select("things") == []


async def test_a_misspelt_column_never_means_all_rows(db):
    await db.insert("things", {"name": "pen"})
    for attempt in (
        db.delete("things", where={"nmae": "nmae"}),
        db.update("things", {"size": 9}, where={"nmae": "nmae"}),
    ):
        with pytest.raises(BadSql, match="no such column: nmae"):
            await attempt
    assert await db.select("things", columns=["name", "size"]) == [{"name": "pen", "size": None}]


async def test_sql_keywords_are_valid_names(db):
    await db.create_table("order", {"select": "TEXT UNIQUE", "encrypted__from": "TEXT"})
    await db.insert("order", {"select": "a", "encrypted__from": [1]})
    await db.create_table("order", {"group": "TEXT"})
    assert await db.update("order", {"group": "g"}, where={"select": "a"}) == 1
    assert await db.select("order", order="-group") == [
        {"id": 1, "select": "a", "encrypted__from": [1], "group": "g"}
    ]


async def test_a_table_that_is_there_gets_the_columns_it_lacks(db):
    await db.insert("things", {"name": "old"})
    await db.create_table(
        "things", {"name": "TEXT NOT NULL", "colour": "TEXT", "encrypted__code": "TEXT"}
    )
    await db.update("things", {"colour": "red", "encrypted__code": 7}, where={})
    assert await db.select("things") == [
        {
            "id": 1,
            "name": "old",
            "size": None,
            "encrypted__pin": None,
            "colour": "red",
            "encrypted__code": 7,
        }
    ]
    with pytest.raises(BadSql, match="weight is new in a table with rows"):
        await db.create_table("things", {"weight": "REAL NOT NULL"})


async def test_rows_tables_and_bytes_are_bounded(db, monkeypatch):
    monkeypatch.setattr(user_tables, "MAX_ROWS", 2)
    monkeypatch.setattr(user_tables, "MAX_TABLES", 2)
    for _ in range(2):
        await db.insert("things", {"name": "x"})
    with pytest.raises(StoreFull, match="2 rows"):
        await db.insert("things", {"name": "x"})
    await db.create_table("more", {"a": "TEXT"})
    with pytest.raises(StoreFull, match="2 tables"):
        await db.create_table("yet", {"a": "TEXT"})
    with pytest.raises(BadSql, match="too big"):
        await db.update("things", {"name": "x" * 2_000_000}, where={})
    assert len(await db.select("things")) == 2


async def test_no_more_than_a_thousand_rows_come_at_once(db):
    assert table_sql.select("t", where=None, columns=(), order="", limit=10**9).params == (1000,)
    assert table_sql.select("t", where=None, columns=(), order="", limit=-1).params == (0,)


# ------------------------------------------------------------------ whose they are


@pytest.mark.requirement("S4-06")
async def test_what_one_user_keeps_another_does_not_see(stores, db):
    await db.insert("things", {"name": "anna's", "encrypted__pin": 1})
    other = stores.of("ben", "io.things").db
    with pytest.raises(BadSql, match="no such table"):
        await other.select("things")
    await other.create_table(
        "things", {"name": "TEXT", "size": "INTEGER", "encrypted__pin": "TEXT"}
    )
    assert await other.select("things") == []
    assert await other.fetch("SELECT name FROM things UNION SELECT name FROM main.things") == []
    assert await other.delete("things", where={}) == 0
    assert await stores.of("anna", "io.others").db.fetch("SELECT name FROM sqlite_master") == []
    assert [r["name"] for r in await stores.of("anna", "io.things").db.select("things")] == [
        "anna's"
    ]


@pytest.mark.requirement("S4-05")
async def test_a_users_folder_is_private_and_its_name_leads_nowhere(stores, tmp_path):
    users = [
        "anna",
        "..",
        ".",
        "",
        "a/b",
        "/etc",
        "ä" * 200,
        "~x",
        "%2E",
        "A",
        "x\x00y",
        "\ud800",
        "🙂",
    ]
    for user in users:
        private = stores.of(user, "../io")
        await private.files.write("a.txt", user.encode("utf-8", "surrogatepass"))
        await private.db.create_table("t", {"a": "TEXT"})
    folders = {p for p in (tmp_path / "users").rglob("*") if p.is_dir()}
    assert {stat.S_IMODE(p.stat().st_mode) for p in [tmp_path / "users", *folders]} == {0o700}
    assert {p.relative_to(tmp_path).parts[0] for p in tmp_path.rglob("*")} == {"users"}
    assert len(list((tmp_path / "users").iterdir())) == len(users)
    assert (
        tmp_path / "users" / "anna" / "tools" / "%2E.%2Fio" / "files" / "a.txt"
    ).read_text() == "anna"
    assert (
        stat.S_IMODE(
            (tmp_path / "users" / "anna" / "tools" / "%2E.%2Fio" / "files" / "a.txt").stat().st_mode
        )
        == 0o600
    )
    assert len({escaped(u) for u in users}) == len(users)


async def test_users_beyond_the_bound_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.storage.tools.users.MOST_USERS", 2)
    users = Users(tmp_path / "users")
    for user in ("a", "b", "a"):
        async with users.database(Owner(user, "p")) as database:
            assert await database.read(lambda c: c.execute("SELECT 1").fetchone()[0]) == 1
    with pytest.raises(StoreFull, match="2 users"):
        async with users.database(Owner("c", "p")):
            pass
    assert users.make_folder(Owner("a", "other")).is_dir()
    await users.close()


@pytest.mark.requirement("S4-04", "S4-06")
async def test_few_files_are_open_at_once_and_none_is_closed_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.storage.tools.users.MOST_OPEN", 2)
    users = Users(tmp_path / "users")
    inside = asyncio.Event()
    many = asyncio.Event()

    async def hold():
        async with users.database(Owner("held", "p")) as database:
            inside.set()
            await many.wait()
            return await database.read(lambda c: c.execute("SELECT 7").fetchone()[0])

    async def touch(n):
        async with users.database(Owner(f"u{n % 5}", "p")) as database:
            await database.write(lambda c: c.execute("CREATE TABLE IF NOT EXISTS t(x)"))

    async with asyncio.TaskGroup() as tasks:
        held = tasks.create_task(hold())
        await inside.wait()
        for n in range(10):
            await touch(n)
            assert len(users._open) <= 2
        await asyncio.gather(*map(touch, range(10)))
        many.set()
    assert held.result() == 7
    # More were open while they were in use; the next one to be opened closes them.
    async with users.database(Owner("fresh", "p")):
        assert len(users._open) <= 2
    await users.close()
    assert users._open == {}


# ------------------------------------------------------------------ encrypted columns


@pytest.mark.requirement("S4-29")
async def test_encrypted_columns_hold_any_json_and_the_disk_no_plain_text(db, stores, tmp_path):
    values = [
        "SECRET-1",
        {"deep": ["SECRET-2", 3.5, True, None]},
        12345678901,
        "",
        [],
        False,
        "ünïcödé SECRET-3",
        None,
    ]
    for n, value in enumerate(values):
        await db.insert("things", {"name": f"plain {n}", "encrypted__pin": value})
    assert [r["encrypted__pin"] for r in await db.select("things")] == values
    assert (
        await db.update(
            "things",
            {"encrypted__pin": "SECRET-4", "size": 1},
            where={"name": ["plain 0", "plain 1"]},
        )
        == 2
    )
    assert [
        r["encrypted__pin"] for r in await db.select("things", limit=2, columns=["encrypted__pin"])
    ] == ["SECRET-4"] * 2
    disk = on_disk(tmp_path)
    await stores.close()
    for bytes_ in (disk, on_disk(tmp_path)):
        assert b"SECRET" not in bytes_
        assert b"12345678901" not in bytes_
        assert b"plain 1" in bytes_  # the test does see what is not encrypted
    assert [
        r["encrypted__pin"]
        for r in await stores.of("anna", "io.things").db.select("things", limit=1)
    ] == ["SECRET-4"]


@pytest.mark.requirement("S4-29")
async def test_the_same_secret_never_looks_the_same(db, stores, tmp_path):
    for _ in range(3):
        await db.insert("things", {"name": "x", "encrypted__pin": "same"})
    await db.update("things", {"encrypted__pin": "same"}, where={"id": 3})
    await stores.close()
    blobs = rows(tmp_path, "SELECT encrypted__pin FROM things")
    assert len({b[5:17] for (b,) in blobs}) == len({b for (b,) in blobs}) == 3


def rows(tmp_path, sql, *params):
    connection = sqlite3.connect(tmp_path / "users/anna/tools/io.things/data.db")
    try:
        return connection.execute(sql, params).fetchall()
    finally:
        connection.commit()
        connection.close()


@pytest.mark.parametrize(
    "change",
    [
        (
            "UPDATE things SET encrypted__pin = (SELECT encrypted__pin "
            "FROM things WHERE id = 2) WHERE id = 1"
        ),
        "UPDATE things SET encrypted__other = encrypted__pin, encrypted__pin = NULL WHERE id = 1",
        (
            "UPDATE things SET encrypted__pin = substr(encrypted__pin, 1, "
            "length(encrypted__pin) - 1) WHERE id = 1"
        ),
        "UPDATE things SET encrypted__pin = x'0102' WHERE id = 1",
        "UPDATE things SET encrypted__pin = x'' WHERE id = 1",
    ],
)
@pytest.mark.requirement("S4-29")
async def test_a_value_that_was_moved_or_changed_is_noticed(db, stores, tmp_path, change):
    await db.create_table("things", {"encrypted__other": "TEXT"})
    for pin in (1, 2):
        await db.insert("things", {"name": "x", "encrypted__pin": pin})
    await stores.close()
    rows(tmp_path, change)
    again = stores.of("anna", "io.things").db
    with pytest.raises(Altered):
        await again.select("things")
    assert (await again.select("things", where={"id": 2}))[0]["encrypted__pin"] == 2


async def test_another_users_value_opens_nowhere_else(db, stores, tmp_path):
    await db.insert("things", {"name": "x", "encrypted__pin": 1})
    other = stores.of("ben", "io.things").db
    await other.create_table("things", {"name": "TEXT", "encrypted__pin": "TEXT"})
    await stores.close()
    anna = (tmp_path / "users/anna/tools/io.things/data.db").read_bytes()
    (tmp_path / "users/ben/tools/io.things/data.db").write_bytes(anna)
    with pytest.raises(Altered, match="another row, column or user"):
        await stores.of("ben", "io.things").db.select("things")


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        (lambda db: db.select("things", where={"encrypted__pin": 1}), "cannot be searched"),
        (lambda db: db.select("things", where={"Encrypted__pin": 1}), "cannot be searched"),
        (lambda db: db.select("things", order="encrypted__pin"), "cannot be sorted"),
        (
            lambda db: db.execute("INSERT INTO things (name, encrypted__pin) VALUES ('x', 'y')"),
            "SQL of your own",
        ),
        (lambda db: db.execute("INSERT INTO things VALUES (9, 'x', 1, 'PLAIN')"), "CHECK"),
        (lambda db: db.fetch("SELECT ENCRYPTED__pin AS p FROM things"), "SQL of your own"),
        (lambda db: db.fetch("SELECT * FROM things"), "SQL of your own"),
    ],
)
@pytest.mark.requirement("S4-29")
async def test_an_encrypted_column_is_reached_by_the_verbs_alone(db, attempt, says):
    await db.insert("things", {"name": "x", "encrypted__pin": 1})
    with pytest.raises(BadSql, match=says):
        await attempt(db)
    assert len(await db.select("things")) == 1


# ------------------------------------------------------------------ the key


@pytest.fixture
def key(tmp_path):
    return tmp_path / "tools.key"


@pytest.mark.requirement("S4-29")
async def test_the_key_is_made_at_the_first_secret_and_is_private(db, key):
    await db.insert("things", {"name": "no secret"})
    assert not key.exists()
    await db.insert("things", {"name": "x", "encrypted__pin": 1})
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(bytes.fromhex(key.read_text())) == 32


@pytest.mark.parametrize("harm", ["gone", "empty", "another", "garbled", "cut"])
@pytest.mark.requirement("S4-29")
async def test_a_lost_key_is_reported_and_nothing_overwritten(db, stores, key, tmp_path, harm):
    await db.insert("things", {"name": "x", "encrypted__pin": "SECRET"})
    await stores.close()
    kept = key.read_bytes()
    {
        "gone": key.unlink,
        "empty": lambda: key.write_bytes(b""),
        "another": lambda: key.write_text("ab" * 32),
        "garbled": lambda: key.write_text("no key"),
        "cut": lambda: key.write_bytes(kept[:-2]),
    }[harm]()
    left = key.read_bytes() if key.exists() else None
    again = PrivateStores(tmp_path / "users", key=key)
    now = again.of("anna", "io.things").db
    for attempt in (
        now.select("things"),
        now.insert("things", {"name": "y", "encrypted__pin": 1}),
        now.update("things", {"encrypted__pin": 1}, where={}),
    ):
        with pytest.raises(KeyLost) as reported:
            await attempt
        assert reported.value.error.suggestion.startswith("put the old key back")
        assert str(key) in reported.value.error.message
        assert {"another": "is not the key", "garbled": "holds no key", "cut": "holds no key"}.get(
            harm, "is gone"
        ) in reported.value.error.message
    assert (key.read_bytes() if key.exists() else None) == left
    assert len(await now.select("things", columns=["name"])) == 1
    await again.close()
    key.write_bytes(kept)
    back = PrivateStores(tmp_path / "users", key=key)
    assert (await back.of("anna", "io.things").db.select("things"))[0]["encrypted__pin"] == "SECRET"
    await back.close()


@pytest.mark.requirement("S4-29")
async def test_a_credential_of_systemd_is_the_key_when_there_is_one(tmp_path, key):
    credential = tmp_path / "credential"
    credential.write_bytes(bytes(range(32)))
    for form in (bytes(range(32)), bytes(range(32)).hex().encode() + b"\n"):
        credential.write_bytes(form)
        stores = PrivateStores(tmp_path / "users", key=key, credential=credential)
        db = stores.of("anna", "io.things").db
        await db.create_table("t", {"encrypted__a": "TEXT"})
        await db.insert("t", {"encrypted__a": 1})
        assert {r["encrypted__a"] for r in await db.select("t")} == {1}
        await stores.close()
    assert not key.exists()
    without = PrivateStores(tmp_path / "users", key=key)
    with pytest.raises(KeyLost):
        await without.of("anna", "io.things").db.select("t")
    await without.close()
    assert not key.exists()


def test_a_value_of_another_key_asks_for_that_key():
    before, now = (Cipher(bytes([n]) * KEY_BYTES, bytes) for n in (1, 2))
    with pytest.raises(KeyLost, match="encrypted with another key"):
        now.open(before.seal("pin", b"here"), b"here")


async def test_without_the_library_only_encrypted_columns_fail_and_say_what_to_install(
    db, monkeypatch
):
    import sys

    from tools_cache.api.tool import ToolFailure

    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(ToolFailure, match="not installed"):
        await db.insert("things", {"name": "x", "encrypted__pin": 1})
    assert await db.insert("things", {"name": "x"}) == 1


async def test_a_damaged_file_is_put_aside_and_the_others_serve(db, stores, tmp_path):
    await db.insert("things", {"name": "x"})
    await stores.close()
    path = tmp_path / "users/anna/tools/io.things/data.db"
    path.write_bytes(b"not a database at all" * 500)
    with pytest.raises(StoreError, match="no such table"):
        await stores.of("anna", "io.things").db.select("things")
    assert path.with_name("data.db.bad-1").exists()
