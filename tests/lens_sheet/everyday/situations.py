"""The situations of the everyday tools, by name. Those of one part share what is stored."""

from firmware_bridge.messages import Gesture
from tests.lens_sheet.acts import Act, asked, called
from tests.lens_sheet.everyday import texts
from tests.lens_sheet.everyday.acts import (
    Pages,
    after,
    asked_of_page,
    away,
    due_soon,
    of_page,
    reply_to_newest,
    said,
    silently,
    then,
)
from tests.system import find

GERMAN = {"locale": "de-DE", "timezone": "Europe/Berlin"}
YES, NO = Gesture.TAP, Gesture.DOUBLE_TAP
HOUR = 3600.0

REMINDERS: dict[str, Act] = {
    "no reminders": called("reminder:list"),
    "no reminders today": said("do I have any reminders today"),
    "reminder": said("remind me tomorrow at nine to call Anna"),
    "reminder on a day": said("remind me on the 3rd of December to buy a present"),
    "reminder that repeats": said("add a reminder every weekday at 9 to take the medicine"),
    "reminder on two days": called(
        "reminder:add", text="swim", when="2026-11-24T07:00", repeat="FREQ=WEEKLY;BYDAY=TU,TH"
    ),
    "reminder without a time": called("reminder:add", text="buy stamps"),
    "reminder next year": called("reminder:add", text="passport", when="2027-03-15T09:00"),
    "reminder, long": called(
        "reminder:add",
        text=texts.LONG_REMINDER,
        when="2026-11-21T18:00",
    ),
    "reminder in Hebrew": called("reminder:add", text="להתקשר לנועה", when="2026-11-21T20:00"),
    "reminders": said("what are my reminders"),
    "reminder moved": called("reminder:update", reminder="present", when="2026-12-04T17:30"),
    "reminder done": said("mark the reminder buy stamps as done"),
    "repeating reminder, not yet due": called("reminder:complete", reminder="medicine"),
    "two reminders match": said("mark the reminder al as done"),
    "reminder unknown": said("mark the reminder dentist as done"),
    "reminder at an unknown time": said("remind me when the moon is blue to sing"),
    "reminder removed": asked(YES, "reminder:remove", reminder="call Anna"),
    "reminder kept": asked(NO, "reminder:remove", reminder="present"),
    "reminder due": due_soon("water the plants"),
    "reminder due, repeats": due_soon("take the medicine", repeat="FREQ=DAILY"),
    "reminder due, late": due_soon("leave for the station", late_s=600.0),
    "reminders overdue": said("which reminders are overdue"),
}
CONTACTS: dict[str, Act] = {
    "no contacts": said("list my contacts"),
    "contact unknown": said("find the contact Anna"),
    "contact added": said("add a contact called Anna Berg"),
    "contact with all": called(
        "contacts:add",
        name="Bob Miller",
        phones=["+44 20 7946 0999", "+44 7700 900123"],
        emails=["bob@example.org"],
        addresses=["12 Mill Lane, Oxford OX1 4AA"],
        birthday="1981-05-04",
        note="brother of Eva",
    ),
    "contact with a long name": called(
        "contacts:add",
        name="Maria del Carmen Fernández de la Vega y Álvarez de Toledo",
        emails=["maria.del.carmen.fernandez.de.la.vega@ayuntamiento-de-madrid.example"],
    ),
    "contact in Hebrew": called("contacts:add", name="נועה לוי", phones=["+972 3 123 4567"]),
    "contact in Arabic": called("contacts:add", name="ليلى حداد", phones=["+20 2 2345 6789"]),
    "contact twice": said("add a contact called Anna Berg"),
    "contacts added": called("contacts:add_all", contacts=[{"name": "Anna Zander"}, {"name": " "}]),
    "contact found": said("phone number of Bob"),
    "contact found, long": called("contacts:find", query="Maria"),
    "contact found, Hebrew": called("contacts:find", query="נועה"),
    "contacts found": said("find contact Anna"),
    "contacts listed": called("contacts:list"),
    "contact changed": asked(YES, "contacts:update", contact="Anna Berg", phones=["+47 22 33"]),
    "contact, which one": said("remove contact Anna"),
    "contact by half a name": said("remove contact Bob"),
    "contact removed": asked(YES, "contacts:remove", contact="Anna Zander"),
    "contact kept": asked(NO, "contacts:remove", contact="Anna Berg"),
    "contacts of an address book": called("contacts:sync"),
    "contacts of a file": called("contacts:import", vcard="".join(texts.CARDS[:2])),
    "address book away": away(called("contacts:sync")),
}
PUNCH_CLOCK: dict[str, Act] = {
    "not at work": said("am I working"),
    "no hours": said("how long have I worked today"),
    "work, nothing to pause": said("I take a break"),
    "work begins": said("start working on Alpha"),
    "work goes on": after(1.5 * HOUR, said("what am I working on")),
    "work, another project": said("start work on the website"),
    "work paused": after(HOUR / 3, said("I take a break")),
    "work paused, status": after(HOUR / 4, said("am I working")),
    "work again": said("back to work"),
    "work ends": after(2.2 * HOUR, said("stop working")),
    "work ended already": called("punchclock:stop"),
    "work added": asked(
        YES,
        "punchclock:correct",
        action="add",
        start="2026-11-20T22:00",
        end="2026-11-21T01:30",
        project="Night shift at the harbour",
    ),
    "work of the week": said("how many hours did I work this week"),
    "work of a day": called("punchclock:report", period="day", date="2026-11-20"),
    "work corrected": asked(YES, "punchclock:correct", entry=1, end="2026-11-21T12:30"),
    "work not corrected": asked(NO, "punchclock:correct", entry=1, action="remove"),
    "work without a project": said("I start working now"),
    "stop forgotten": after(20 * HOUR, called("punchclock:status")),
    "work of last week": called("punchclock:report", period="last week"),
}
DOCUMENTS: dict[str, Act] = {
    "no documents": said("list my documents"),
    "document unknown": said("open the document garden"),
    "document created": called("domaindoc:create", title="Garden", text=texts.DOCUMENT),
    "document without text": called("domaindoc:create", title="Recipes"),
    "document in Hebrew": called("domaindoc:create", title="טיול לחיפה", text="# רכבת\nב-15:30"),
    "documents": said("show my documents"),
    "document": said("read the document garden"),
    "document, empty": called("domaindoc:read", document="Recipes"),
    "section": called("domaindoc:read", document="Garden", section="Seeds to order"),
    "documents searched": said("search my documents for peas"),
    "documents searched, nothing": said("search my documents for visa"),
    "section changed": called(
        "domaindoc:edit", document="Garden", section="Tools", text="The spade is here again."
    ),
    "section added": called(
        "domaindoc:edit", document="Garden", action="add", section="Watering", text="At six."
    ),
    "document restored": called("domaindoc:restore", document="Garden", version=1),
    "document removed": asked(YES, "domaindoc:remove", document="Recipes"),
    "document kept": asked(NO, "domaindoc:remove", document="Garden"),
}
HISTORY: dict[str, Act] = {
    "nothing recent": said("what was on the lens"),
    "what was recent": then(
        silently("notes:add", text="the hotel is called Seeblick"),
        called("timer:start", seconds=600, label="tea"),
        said("what did I just ask"),
    ),
    "history searched": said("search my history for tea"),
    "history searched, nothing": said("search my history for insurance"),
    "history of another day": after(24 * HOUR, said("what did I read about tea")),
    "history kept": asked(NO, "continuum:forget", what="tea"),
    "history forgotten": said("forget everything about tea", yes=True),
    "history, nothing forgotten": asked(YES, "continuum:forget", what="volcano", since="today"),
}
WEATHER: dict[str, Act] = {
    "weather now": said("what is the weather in Bergen"),
    "weather now, here": said("what's the weather like"),
    "weather of the hours": said("will it rain"),
    "weather of the days": said("weather this week"),
    "weather of seven days": called("weather:days", place="Bergen", days=7),
    "weather, unknown place": said("what is the weather in Atlantis"),
    "weather away, known": after(
        3 * HOUR, away(called("weather:now", place="Bergen"), said("will it rain"))
    ),
    "weather away, unknown": away(called("weather:now", place="Köln")),
    "weather of two days ago": after(
        45 * HOUR, away(called("weather:days", place="Bergen", days=3))
    ),
}
MAPS: dict[str, Act] = {
    "no route": said("what is the next step"),
    "place": said("find the place Bergen stasjon"),
    "place, long": called("maps:find", place="Klinikk"),
    "place unknown": said("where is the nearest pharmacy"),
    "way": said("how do I get to Bergen stasjon"),
    "way by bike": called("maps:route", to="Bergen stasjon", by="bike"),
    "next step": said("next step"),
    "next step, the last": said("next step"),
    "one step back": said("one step back"),
    "way, long": called("maps:route", to="Klinikk", by="car"),
    "way unknown": said("how do I get to Atlantis"),
    "way away, known": after(1200.0, away(called("maps:route", to="Klinikk", by="car"))),
    "next step, old": after(2 * HOUR, called("maps:next_step")),
    "way away, unknown": away(called("maps:route", to="Bergen stasjon")),
    "place away": away(called("maps:find", place="Bergen stasjon")),
}
WEB: dict[str, Act] = {
    "web search": said("search the web for the opening hours of the zoo"),
    "web search, nothing": said("search the web for vegan recipes"),
    "web search away, known": after(
        5 * HOUR, away(called("web:search", query="the opening hours of the zoo"))
    ),
    "web search away, unknown": away(called("web:search", query="train strikes")),
    "web page": of_page("web:fetch", "/peas"),
    "web page missing": of_page("web:fetch", "/beans"),
    "web page away": away(of_page("web:fetch", "/peas")),
    "web request": asked_of_page("web:request", "/doorbell"),
    "web request, JSON": asked_of_page("web:request", "/beds"),
    "web request not allowed": asked_of_page("web:request", "/beds", method="DELETE"),
}
LIGHTS: dict[str, Act] = {
    "lights found": said("find my lights"),
    "lights": said("which lights are on"),
    "light": called("kasa:state", device="Desk lamp"),
    "light on": said("turn on the fan"),
    "light on already": said("turn on the fan"),
    "light off": said("turn off the desk lamp"),
    "light dimmed": said("dim the desk lamp to 30 percent"),
    "plug of a strip": said("turn on the christmas star"),
    "scene": said("start the scene movie night"),
    "scene unknown": said("set the scene dinner"),
    "lights set": called(
        "kasa:set", states=[{"device": "Fan", "on": True}, {"device": "TV", "on": True}]
    ),
    "light unknown": said("switch on the heater"),
    "lights away": away(called("kasa:switch", device="Fan", on=False), called("kasa:state")),
}
MAIL: dict[str, Act] = {
    "mail unread": said("any new mail"),
    "mail read": said("read my mail"),
    "mail searched": said("any mail from Anna"),
    "mail searched, nothing": said("any emails from the bank"),
    "mail sent": asked(
        YES,
        "email:send",
        to=["anna@example.com", "juergen.mueller-luedenscheidt@example.org"],
        subject="The cabin",
        text="Dear Anna,\nthe key is under the mat, as ever.\nMaria",
    ),
    "mail not sent": asked(
        NO, "email:send", to=["noa@example.org"], subject="ארוחת ערב", text="נתראה"
    ),
    "mail answered": reply_to_newest,
    "mail away, known": after(2 * HOUR, away(said("any new mail"))),
    "mail away, read": away(called("email:read")),
    "mail away, sent": away(
        asked(YES, "email:send", to=["anna@example.com"], subject="Late", text="I am late.")
    ),
}


def pager() -> dict[str, Act]:
    pages = Pages()
    return {
        "no pages": said("read my pages"),
        "pager created": pages.create("Anna"),
        "second pager": pages.create("Ben"),
        "page": pages.send("Ben", "Bring the keys"),
        "page, urgent": pages.send("Ben", "The gate is open", priority=2),
        "page, silent": pages.send("Ben", "No hurry: the milk is sour", priority=0),
        "page with a place": pages.send(
            "Ben", "We are here", location={"lat": 60.3903, "lon": 5.3333}
        ),
        "page, long": pages.send("Ben", texts.LONG_PAGE),
        "page in Hebrew": pages.send("Ben", "נתראה בתחנה בשעה 15:30"),
        "page waits": pages.send_offline("Ben", "From the tunnel"),
        "pages unread": said("are there any unread pages"),
        "pages": said("check my pager"),
        "page not sent": asked(NO, "pager:send", to="PAGER-AB12", text="Nothing"),
        "page to an unknown pager": asked(YES, "pager:send", to="PAGER-ZZ99", text="Hello"),
        "pages sent": called("pager:inbox", sent=True),
        "page to nobody": asked(YES, "pager:send", to="Granny", text="Hello"),
        "page with another key": pages.forge("Anna", "Ben", "Send me the code of the door"),
        "page sender trusted": pages.trust("Anna", accept=True, compared=True),
        "page sender named": pages.trust("Anna", accept=True, name="Sister"),
        "page of a named sender": pages.send("Ben", "It is me again"),
        "page sender refused": pages.trust("Anna", accept=False),
        "pager switched off": pages.switch_off("Ben"),
    }


IN_GERMAN: dict[str, Act] = {
    "reminder": said("erinnere mich morgen um neun daran, Anna anzurufen"),
    "reminder that repeats": said("erinnere mich jeden Montag um halb acht an die Mülltonne"),
    "reminder for the rent": said("erinnere mich am 1. Dezember um 10 Uhr an die Miete"),
    "reminders": said("welche Erinnerungen habe ich"),
    "reminder removed": said("lösche die Erinnerung Miete", yes=True),
    "reminder due": due_soon("die Pflanzen gießen"),
    "contacts": then(
        silently("contacts:add", name="Bob Müller", phones=["+49 30 901820"]),
        said("Telefonnummer von Bob"),
    ),
    "contacts listed": said("liste meine Kontakte"),
    "documents": said("zeige meine Dokumente"),
    "documents searched": said("durchsuche meine Dokumente nach Erbsen"),
    "web": said("suche im Internet nach Zugverbindungen"),
    "weather": said("wie ist das Wetter in Bergen"),
    "weather of the hours": said("wird es regnen"),
    "weather of the days": said("wettervorhersage für Bergen"),
    "place": said("wo ist die nächste Apotheke"),
    "way": said("wie komme ich zum Bergen stasjon"),
    "next step": said("nächster Schritt"),
    "light on": said("schalte den Fan ein"),
    "light dimmed": said("dimme die Desk lamp auf 20"),
    "lights": said("welche Lampen sind an"),
    "work begins": said("ich fange an zu arbeiten"),
    "work ends": after(1.5 * HOUR, said("ich mache Feierabend")),
}
MAIL_IN_GERMAN: dict[str, Act] = {
    "mail unread": said("habe ich neue Mails"),
    "mail searched": said("gibt es Mails von Anna"),
    "mail read": said("lies mir die Mail vor"),
}

HISTORY_IN_GERMAN: dict[str, Act] = {
    "recent": said("was habe ich gefragt"),
    "history": said("durchsuche den Verlauf nach Wetter"),
    "history of another day": after(24 * HOUR, said("durchsuche den Verlauf nach Wetter")),
    "history forgotten": said("vergiss alles über das Wetter", yes=True),
}


def groups(*, few: bool) -> list[dict[str, Act]]:
    """Return the situations in English; each group is a world of its own. `few`: without those of
    packages whose texts are all short.
    """
    web = WEB | (MAIL if find("dovecot") else {})
    if few:
        return [REMINDERS, CONTACTS, WEATHER | MAPS, web]
    return [REMINDERS | PUNCH_CLOCK, HISTORY | CONTACTS | DOCUMENTS, WEATHER | MAPS, web, LIGHTS]


def in_german() -> dict[str, Act]:
    mail = MAIL_IN_GERMAN if find("dovecot") else {}
    found = IN_GERMAN | mail | HISTORY_IN_GERMAN  # the last one goes on to another day
    return {f"in German, {name}": act for name, act in found.items()}
