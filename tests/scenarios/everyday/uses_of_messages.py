"""Uses of the tools by which people write to each other, email and pager; and what the wearer says
no to.
"""

import asyncio

from tests.scenarios.everyday.services import EVA
from tests.scenarios.everyday.three_ways import Scene, Step, Use, both, finds, first
from tests.scenarios.everyday.uses_at_services import forget_requests, known, web_seen

# ------------------------------------------------------------------ email


def mail_came(subject: str) -> Step:
    async def step(scene: Scene) -> None:
        sender = scene.fill("{who} Berg <eva@example.com>")
        scene.services.mail.arrive(sender, scene.fill(subject), "At noon in the park.")

    return step


async def know_id(scene: Scene) -> None:
    """Remember which message is the newest."""
    scene.known["id"] = (await scene.do("email:unread"))["messages"][0]["id"]


def eva_has(subject: str, *, times: int = 1, answer: bool = False) -> Step:
    """The mail is in her inbox so many times; `answer`: as the answer to another one."""

    async def step(scene: Scene) -> None:
        inbox = await asyncio.to_thread(scene.services.mail.inbox_of_eva)
        found = [mail for mail in inbox if mail[0] == scene.fill(subject)]
        assert [text for _, text, _ in found] == ["See you there."] * times, inbox
        assert all(bool(answered) is answer for *_, answered in found)

    return step


EMAIL = (
    Use(
        "email:unread",
        "{who} Berg: Lunch",
        say="any new mail",
        before=mail_came("Lunch"),
    ),
    Use(
        "email:search",
        "{who} Berg: Supper",
        say="any mail from {who}",
        args={"from": "{who}"},
        before=mail_came("Supper"),
    ),
    Use(
        "email:read",
        "At noon in the park.",
        say="read my mail",
        args={"id": "{id}"},
        before=both(mail_came("Picnic"), know_id),
    ),
    Use(
        "email:send",
        "Sent to eva@example.com",
        unspoken="It needs addresses, a subject and a text.",
        args={"to": [EVA], "subject": "Tea with {who}", "text": "See you there."},
        asks="Send this mail?",
        then=eva_has("Tea with {who}"),
    ),
    Use(
        "email:reply",
        "Sent to eva@example.com",
        unspoken="It needs the id of a message.",
        args={
            "id": "{id}",
            "to": [EVA],
            "subject": "Re: Cake with {who}",
            "text": "See you there.",
        },
        asks="Send this answer?",
        before=both(mail_came("Cake with {who}"), know_id),
        then=eva_has("Re: Cake with {who}", answer=True),
    ),
)


# ------------------------------------------------------------------ pager


async def page_came(scene: Scene) -> None:
    """Ben sends a page, and it came."""
    text = scene.fill("The gate is open, {who}")
    await scene.ben_does("pager:send", to=scene.known["me"], text=text)
    await scene.place.lens_shows(text)


async def ben_has_it(scene: Scene) -> None:
    """The page is on Ben's lens and once in his inbox."""
    text = scene.fill("dinner with {who}")
    await scene.ben.lens_shows(text)
    inbox = (await scene.ben_does("pager:inbox"))["messages"]
    assert [one["message"] for one in inbox].count(text) == 1, inbox


async def relay_knows(scene: Scene) -> None:
    """Ben can send something to the new pager, so the relay knows it."""
    own = (await scene.do("pager:inbox"))["pagers"]
    (new,) = [one for one in own if one["name"] == scene.known["who"]]
    await scene.ben_does("pager:send", to=new["pager"], text="Welcome")


async def ben_has_another(scene: Scene) -> None:
    """Pages come in order: once Ben has a later one, this one will not come."""
    later = scene.fill("The last word of {who}")
    await scene.do("pager:send", to="Ben", text=later)
    await scene.ben.lens_shows(later)
    inbox = (await scene.ben_does("pager:inbox"))["messages"]
    assert scene.fill("nonsense of {who}") not in [one["message"] for one in inbox]


PAGER = (
    Use(
        "pager:create",
        "Your pager: PAGER-",
        say="create a pager called {who}",
        args={"name": "{who}"},
        then=relay_knows,
    ),
    Use(
        "pager:send",
        "Sent to Ben",
        say="send a page to Ben dinner with {who}",
        args={"to": "Ben", "text": "dinner with {who}"},
        asks="Send this page?",
        then=ben_has_it,
    ),
    Use(
        "pager:inbox",
        "The gate is open, {who}",
        say="read my pages",
        before=page_came,
    ),
    Use(
        "pager:trust",
        "You trust Ben ({ben})",
        unspoken="It is for text alone, so that nobody is trusted by a word misheard.",
        args={"pager": "{ben}", "accept": True},
        asks="Change whom you trust?",
    ),
    Use(
        "pager:deactivate",
        "{pager} is off for good",
        unspoken="It is for text alone, and needs the id of a pager.",
        args={"pager": "{pager}"},
        asks="Switch this pager off for good?",
        before=first("pager:create", name="Old {who}"),
    ),
    Use(
        "pager:deliver",
        refused="DENIED",
        unspoken="Only the relay of the cloud calls it, as it does for pager:inbox.",
        args={
            "message": {"from": "{ben}"},
            "signature": "x",
        },
    ),
)

# ------------------------------------------------------------------ what the wearer says no to


UNWANTED = (
    Use(
        "email:send",
        args={"to": [EVA], "subject": "Spam of {who}", "text": "See you there."},
        asks="Send this mail?",
        then=eva_has("Spam of {who}", times=0),
    ),
    Use(
        "web:request",
        args={"url": "{web}/order", "method": "POST", "body": "peas"},
        asks="Send this web request?",
        before=forget_requests,
        then=web_seen(),
    ),
    Use(
        "pager:send",
        say="send a page to Ben nonsense of {who}",
        args={"to": "Ben", "text": "nonsense of {who}"},
        asks="Send this page?",
        then=ben_has_another,
    ),
    Use(
        "contacts:remove",
        say="remove contact {who} Jensen",
        args={"contact": "{who} Jensen"},
        asks="Remove this contact?",
        before=known("{who} Jensen"),
        then=finds("{who} Jensen", "contacts:list"),
    ),
)

MESSAGES = (*EMAIL, *PAGER)
