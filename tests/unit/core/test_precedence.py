"""Whose tools may stand side by side: nothing takes the place of what is there, and what is
left out is named.
"""

import pytest

from edge.core.tools.precedence import ToolOffer, merged
from edge.core.tools.registry import Union
from tools_cache.api.tool import Source, ToolDefinition
from tools_cache.registry.models import App


def app(package, *names, source=Source.LOCAL, said=""):
    return App(
        package=package,
        name=package,
        tools=tuple(
            ToolDefinition(
                name=f"{package}:{name}",
                description=said or str(source),
                input_schema={"type": "object"},
                source=source,
            )
            for name in names
        ),
    )


def names(apps):
    return [tool.name for found in apps for tool in found.tools]


BUILT_IN = app("glasses", "show_text", "clear", source=Source.GLASSES)


@pytest.mark.requirement("S3-19", "S3-36")
@pytest.mark.parametrize("where", ["own", "upstream"])
@pytest.mark.parametrize("name", ["show_text", "another"])
def test_a_package_of_this_device_is_not_anybody_elses_to_add_to(where, name):
    union = Union.of([BUILT_IN], [], **{where: [app("glasses", name), app("my", "tool")]})
    snapshot = union.snapshot("1", None, stale=False)
    assert snapshot.find("glasses:show_text").definition.source is Source.GLASSES
    assert snapshot.find("glasses:another") is None
    assert snapshot.find("my:tool") is not None
    (refused,) = union.refused
    assert refused.name == f"glasses:{name}"
    assert "the package glasses is taken" in refused.reason


@pytest.mark.requirement("S3-36", "C-17")
def test_of_two_tools_of_one_name_the_earlier_source_stands():
    union = Union.of(
        [BUILT_IN], [app("my", "tool", "other", source=Source.CLOUD)], own=[app("my", "tool")]
    )
    snapshot = union.snapshot("1", None, stale=False)
    assert snapshot.find("my:tool").definition.source is Source.LOCAL
    assert snapshot.find("my:other").definition.source is Source.CLOUD
    assert [(d.name, "the cloud's is refused" in d.reason) for d in union.refused] == [
        ("my:tool", True)
    ]


def test_what_is_refused_is_not_there_at_all():
    apps, refused = merged(
        [
            ToolOffer("this device's", (app("a", "x"),)),
            ToolOffer("the cloud's", (app("a", "x", "y"),)),
        ]
    )
    assert names(apps) == ["a:x", "a:y"]
    assert [d.name for d in refused] == ["a:x"]


def test_what_is_refused_takes_nobody_elses_name():
    union = Union.of(
        [BUILT_IN],
        [app("glasses", "another", source=Source.CLOUD)],
        own=[app("glasses", "another")],
    )
    assert (
        union.snapshot("1", None, stale=False).find("glasses:another").definition.source
        is Source.CLOUD
    )
    assert len(union.refused) == 1


def test_a_source_is_no_rival_of_itself():
    apps, refused = merged(
        [ToolOffer("your own", (app("my", "a"), app("my", "b")), namespaced=True)]
    )
    assert (names(apps), refused) == (["my:a", "my:b"], ())


def test_a_tool_of_the_owners_that_cannot_be_asked_is_hidden_with_its_reason():
    union = Union.of([BUILT_IN], [app("c", "x", source=Source.CLOUD)], own=[app("my", "tool")])
    snapshot = union.snapshot(
        "1",
        None,
        stale=False,
        withheld={"my:tool": "${env.X} is not set", "c:x": "no business of this"},
    )
    assert snapshot.find("my:tool").hidden == "${env.X} is not set"
    assert not snapshot.find("c:x").hidden
