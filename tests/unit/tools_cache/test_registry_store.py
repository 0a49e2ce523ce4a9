import pytest

from tools_cache.registry import registry_store as module
from tools_cache.registry.registry_store import Generation, RegistryStore


def generation(text, **more):
    return Generation(
        text.encode(), "https://cloud", etag='"e"', fetched_wall=5.5, refused={"a:b": "why"}, **more
    )


def bodies(store):
    found, complaints = store.load()
    return [g.body.decode() for g in found], complaints


def test_what_is_saved_is_read_back_whole(tmp_path):
    store = RegistryStore(tmp_path / "new" / "registry")
    store.save(generation("one\ntwo\x00", kind="tools"))
    found, _ = store.load()
    assert list(found) == [generation("one\ntwo\x00", kind="tools").with_digest()]


def test_nothing_saved_is_nothing_and_no_complaint(tmp_path):
    assert bodies(RegistryStore(tmp_path / "none")) == ([], [])


def test_two_generations_are_kept_newest_first(tmp_path):
    store = RegistryStore(tmp_path)
    for text in ("one", "two", "three"):
        store.save(generation(text))
    assert bodies(store) == (["three", "two"], [])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["current.json", "previous.json"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: p.write_bytes(p.read_bytes()[:-1]),
        lambda p: p.write_bytes(p.read_bytes() + b"x"),
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(b"{}\nbody"),
        lambda p: p.write_bytes(b"[]\nbody"),
        lambda p: p.write_bytes(b"\xff\n"),
        lambda p: p.write_bytes(p.read_bytes().replace(b'"format": 1', b'"format": 9')),
        lambda p: p.write_bytes(
            p.read_bytes().replace(b'"refused": {"a:b": "why"}', b'"refused": null')
        ),
        lambda p: p.write_bytes(b"[" * 100_000),
        lambda p: p.write_bytes(b"x" * (module.MAX_FILE + 1)),
    ],
)
def test_a_damaged_newest_is_put_aside_and_the_previous_given(tmp_path, damage):
    store = RegistryStore(tmp_path)
    store.save(generation("one"))
    store.save(generation("two"))
    damage(tmp_path / "current.json")
    texts, complaints = bodies(store)
    assert (texts, len(complaints)) == (["one"], 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["damaged.json", "previous.json"]
    assert bodies(store) == (["one"], []), "it is not met again"


def test_a_crash_between_the_two_moves_leaves_the_previous(tmp_path):
    store = RegistryStore(tmp_path)
    store.save(generation("one"))
    (tmp_path / "current.json").replace(tmp_path / "previous.json")
    assert bodies(store) == (["one"], [])
    store.save(generation("two"))
    assert bodies(store) == (["two", "one"], [])


def test_a_full_disk_leaves_the_old_ones(tmp_path, monkeypatch):
    store = RegistryStore(tmp_path)
    store.save(generation("one"))
    monkeypatch.setattr(
        module.os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space"):
        store.save(generation("two"))
    assert bodies(store) == (["one"], [])
    assert [p.name for p in tmp_path.iterdir()] == ["current.json"]
