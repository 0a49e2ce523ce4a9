"""The index of a validated registry: what is read from it is what was validated, and an index that
is not whole, or is of something else, is made again.
"""

import json
import pickle

import pytest
from msgspec.structs import fields

from tests.unit.tools.compiled import shipped
from tools_cache.api.tool import Source, ToolDefinition
from tools_cache.registry import manifest, registry_index, stored_registry
from tools_cache.registry.manifest import digest, load
from tools_cache.registry.packed_tools import CHUNK, PackedTools
from tools_cache.registry.registry_index import IndexKey
from tools_cache.registry.registry_store import Generation, RegistryStore

KEY = IndexKey("5" * 64, "1.2.3")
BASE = "https://cloud.example"
FULL = {
    "name": "all",
    "description": "Ü “all” 🕶",
    "inputSchema": {"type": "object", "properties": {"ä": {"type": "string"}}},
    "version": "3",
    "category": "media",
    "sideEffects": "none",
    "idempotent": True,
    "requiresConfirmation": "policy",
    "allowedModes": ["voice"],
    "latencyBudgetMs": 12.5,
    "timeoutS": 1.25,
    "queueable": True,
    "queue_ttl_s": 5,
    "executionType": "external",
    "execution": {"url": "https://a.example/x"},
    "pendingTtlS": 7.5,
    "visible": False,
    "display": {"customUI": "card"},
    "cacheTtlS": 60,
    "rateLimit": {"calls": 3, "window": 1.5},
    "availableWhen": {"uplink": True},
    "dependsOn": ["com.all:one", "com.x:y"],
    "openToCloud": True,
    "mentraExtensions": {
        "activationPhrases": ["do all"],
        "localPhrases": {"de": ["mach alles"]},
        "forPrograms": True,
        "howToCheck": "look at it",
        "wearer": {
            "name": "everything",
            "ask": "Do everything?",
            "later": "later: {{input.ä}}",
            "undo": {"tool": "com.all:one", "args": {"id": "{{data.id}}", "n": [1, {"m": 2.5}]}},
        },
    },
    "title": "kept as written",
}
BARE = {"name": "one", "description": "", "inputSchema": {"type": "object"}}


def document(*tools, package="com.all", version="v1", **more):
    app = {"packageName": package, "name": "All", "tools": list(tools), **more}
    return json.dumps({"version": version, "sha256": digest([app]), "apps": [app]}).encode()


NEEDS = [
    {"type": "CAMERA"},
    {
        "type": "DISPLAY",
        "level": "OPTIONAL",
        "description": "d",
        "instead": "SPEAKER",
        "where": {"maxTextLines": {"min": 5.5, "max": 9}, "canDisplayBitmap": True, "x": "opus"},
    },
]


def registry():
    own = {"name": "own", "_meta": {"io.glassd/hardware": NEEDS}}
    body = document(
        FULL,
        BARE,
        {**BARE, **own},
        {"name": "broken"},
        *({**BARE, "name": f"t{n}"} for n in range(3 * CHUNK)),
        hardwareRequirements=NEEDS,
    )
    return load(body, per_tool_hardware=True)


def built_chunks(tools):
    return len(tools._built)


# ------------------------------------------------------------------ packed


def test_every_field_of_a_definition_has_another_value_in_these_tests():
    """So that a new field without one is noticed."""
    (tool,) = (t for t in registry().apps[0].tools if t.name == "com.all:all")
    bare = ToolDefinition(name="", description="", input_schema={}, source=Source.LOCAL, raw={})
    same = {
        f.name for f in fields(ToolDefinition) if getattr(tool, f.name) == getattr(bare, f.name)
    }
    assert same == {"own"}, "an owner's tool is in no registry"


@pytest.mark.parametrize("count", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1])
def test_packed_tools_are_the_tools_that_were_packed(count):
    tools = registry().apps[0].tools[:count]
    packed = PackedTools.of(tools)
    assert tuple(packed) == tools
    assert packed == tools
    assert list(packed.names) == [tool.name for tool in tools]
    assert len(packed) == count
    again = pickle.loads(pickle.dumps(packed))
    assert again == packed
    assert (again.plain, tuple(again)) == (packed.plain, tools)
    assert packed[1:3] == tools[1:3]
    with pytest.raises(IndexError):
        packed[count]
    assert count == 0 or packed[-1] == tools[-1]


def test_what_was_written_by_an_author_comes_back_as_text_and_read_only():
    tools = registry().apps[0].tools
    for before, after in zip(tools, PackedTools.of(tools), strict=True):
        assert after.raw.text == before.raw.text
        assert after.input_schema == before.input_schema
        assert [type(getattr(after, f.name)) for f in fields(after)] == [
            type(getattr(before, f.name)) for f in fields(before)
        ]
        with pytest.raises(TypeError):
            after.raw["x"] = 1


def test_every_tool_that_is_shipped_comes_back_as_it_was():
    for app in load(shipped().encode(), source=Source.LOCAL, trusted=True).apps:
        assert tuple(PackedTools.of(app.tools)) == app.tools


def test_only_the_tools_that_are_looked_at_are_built():
    packed = PackedTools.of(registry().apps[0].tools)
    assert (packed.names[0], len(packed), built_chunks(packed)) == ("com.all:all", 99, 0)
    assert packed[40] is packed[40]
    assert built_chunks(packed) == 1


def test_a_tool_with_conditions_dependencies_or_limits_is_not_plain():
    tools = [
        {**BARE, "name": "plain", "sideEffects": "writes", "allowedModes": ["text"]},
        {**BARE, "name": "when", "availableWhen": {"glasses": True}},
        {**BARE, "name": "needs", "dependsOn": ["com.all:plain"]},
        {**BARE, "name": "programs", "mentraExtensions": {"forPrograms": True}},
    ]
    body = document(*tools)
    assert PackedTools.of(load(body).apps[0].tools).plain == {"com.all:plain"}
    local = load(body, source=Source.LOCAL).apps[0].tools
    assert PackedTools.of(local).plain == frozenset()


# ------------------------------------------------------------------ the file


def test_a_registry_is_read_back_whole(tmp_path):
    before = registry()
    registry_index.write(tmp_path, KEY, before.packed())
    after = registry_index.read(tmp_path, KEY)
    assert after == before.packed()
    assert [tuple(app.tools) for app in after.apps] == [app.tools for app in before.apps]
    assert after.apps[0].tools.plain == before.packed().apps[0].tools.plain
    assert (after.dropped, after.apps[0].requirements) == (
        before.dropped,
        before.apps[0].requirements,
    )
    assert after.apps[0].tool_requirements == before.apps[0].tool_requirements
    assert after.dropped


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(source="6" * 64),
        KEY._replace(version="1.2.4"),
        KEY._replace(per_tool_hardware=True),
    ],
    ids=["document", "version", "settings"],
)
def test_an_index_of_something_else_is_not_used(tmp_path, other):
    registry_index.write(tmp_path, KEY, registry().packed())
    assert registry_index.read(tmp_path, other) is None
    assert registry_index.read(tmp_path, KEY) is not None


def test_an_index_of_another_format_is_not_used(tmp_path, monkeypatch):
    registry_index.write(tmp_path, KEY, registry().packed())
    monkeypatch.setattr(registry_index, "FORMAT", registry_index.FORMAT + 1)
    assert registry_index.read(tmp_path, KEY) is None


def test_no_damage_of_an_index_goes_unnoticed(tmp_path):
    registry_index.write(tmp_path, KEY, registry().packed())
    file = tmp_path / registry_index.NAME
    whole = file.read_bytes()
    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert registry_index.read(tmp_path, KEY) is None, place
    for content in (b"", b"\n", b"{}\n", whole[:-1], whole + b"x", whole * 2, b"[" * 5000):
        file.write_bytes(content)
        assert registry_index.read(tmp_path, KEY) is None
    file.unlink()
    assert registry_index.read(tmp_path, KEY) is None
    file.mkdir()
    assert registry_index.read(tmp_path, KEY) is None


def test_an_index_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    registry_index.write(tmp_path, KEY, registry().packed())
    monkeypatch.setattr(
        registry_index, "MAX_FILE", (tmp_path / registry_index.NAME).stat().st_size - 1
    )
    assert registry_index.read(tmp_path, KEY) is None


# ------------------------------------------------------------------ at the start


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Two stored documents, and how often a tool was validated."""
    store = RegistryStore(tmp_path / "registry")
    for version, name in (("v1", "old"), ("v2", "new")):
        store.save(
            Generation(document({**BARE, "name": name}, version=version), BASE, etag=version)
        )
    validated, definition = [], manifest.definition

    def counted(package, raw, *, source):
        if source is Source.CLOUD:
            validated.append(package)
        return definition(package, raw, source=source)

    monkeypatch.setattr(manifest, "definition", counted)
    (tmp_path / "builtin.json").write_text(shipped())

    def read(version="1.0", **more):
        validated.clear()
        found = stored_registry.read(
            tmp_path / "builtin.json", tmp_path / "registry", base=BASE, version=version, **more
        )
        return found, len(validated)

    return read


def names(found):
    return [name for app in found.remote.apps for name in app.names]


def test_a_second_start_validates_nothing_again(stored):
    first, validated = stored()
    assert (names(first), validated) == (["com.all:new"], 1)
    second, validated = stored()
    assert (second, validated) == (first, 0)
    assert tuple(second.remote.apps[0].tools) == tuple(first.remote.apps[0].tools)
    assert (second.generation.etag, second.generation.body) == ("v2", b"")


def test_another_version_of_glassd_validates_again(stored):
    runs = [stored(version)[1] for version in ("1.0", "1.0", "1.1", "1.1", "1.0")]
    assert runs == [1, 0, 1, 0, 1]
    assert [stored("", per_tool_hardware=True)[1] for _ in range(2)] == [1, 1]
    hardware = [stored("1.0", per_tool_hardware=on)[1] for on in (True, True, False)]
    assert hardware == [1, 0, 1]


def test_a_damaged_index_is_made_again(stored, tmp_path):
    first, _ = stored()
    file = tmp_path / "registry" / registry_index.NAME
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    again, validated = stored()
    assert (again, validated, file.read_bytes()) == (first, 1, whole)
    assert stored()[1] == 0


def test_a_damaged_document_is_not_replaced_by_its_index(stored, tmp_path):
    assert stored()[1] == 1
    file = tmp_path / "registry" / "current.json"
    file.write_bytes(file.read_bytes().replace(b'"new"', b'"bad"'))
    found, validated = stored()
    assert (names(found), validated) == (["com.all:old"], 1)
    assert "does not match its hash" in found.complaints[0]
    assert found.generation.body, "it may have to be stored as the newest one"
    assert (tmp_path / "registry" / "damaged.json").exists()


def test_a_changed_document_is_validated_again(stored, tmp_path):
    assert stored()[1] == 1
    body = document({**BARE, "name": "newest"}, version="v3")
    RegistryStore(tmp_path / "registry").save(Generation(body, BASE))
    found, validated = stored()
    assert (names(found), validated) == (["com.all:newest"], 1)


def test_an_index_that_cannot_be_written_is_done_without(stored, tmp_path):
    (tmp_path / "registry" / registry_index.NAME).mkdir()
    runs = [stored() for _ in range(2)]
    assert [(names(found), validated) for found, validated in runs] == [(["com.all:new"], 1)] * 2


def test_chunks_that_do_not_belong_to_the_names_are_refused(tmp_path):
    one = registry().packed()
    (app,) = one.apps
    for chunks in (app.tools.chunks[:-1], (*app.tools.chunks, b"x")):
        tools = PackedTools(app.tools.names, app.tools.plain, chunks)
        broken = type(one)(
            version="v", sha256="", apps=(type(app)(package="p", name="p", tools=tools),)
        )
        registry_index.write(tmp_path, KEY, broken)
        assert registry_index.read(tmp_path, KEY) is None


def test_the_order_of_the_tools_stays(tmp_path):
    registry_index.write(tmp_path, KEY, registry().packed())
    found = registry_index.read(tmp_path, KEY).apps[0].tools
    assert all(found[at].name == name for at, name in enumerate(found.names))
    assert len({*found.names}) == len(found)
    assert found.names[:2] == ("com.all:all", "com.all:one")
