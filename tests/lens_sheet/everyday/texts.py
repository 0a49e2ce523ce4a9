"""What is at the services: mails, pages, devices, places; short ones, long ones, other scripts."""

from base64 import b64encode

from tests.unit.tools import recorded_services as recorded

BY_THEMSELVES = ("domaindoc", "pager", "punchclock")
"""Packages that need no service, and are off until they are wanted."""
SCENES = [
    {
        "name": "Movie night",
        "devices": [
            {"device": "Desk lamp", "on": True, "brightness": 20},
            {"device": "Fan", "on": False},
        ],
    },
    {"name": "Reading", "devices": [{"device": "Desk lamp", "on": True, "brightness": 80}]},
]
LONG_REMINDER = (
    "ask Jürgen whether the boat is still in the shed, and whether the key to the cellar hangs"
    " where it always hung"
)
LONG_PAGE = "The ferry does not leave today because of the wind. " * 9 + "Take the bus."
LONG_SUBJECT = (
    "Ihre Buchung: Wien Hbf – Bregenz am 27. November, 2 Reisende, Wagen 24, Plätze 61 und 62"
)
LONG_PLACE = (
    "Haukeland universitetssjukehus, Kvinneklinikken",
    (
        "Haukeland universitetssjukehus, Kvinneklinikken, Jonas Lies vei, Årstad, Bergen,"
        " Vestland, 5021, Norge"
    ),
)
STEPS = {
    "5.3333,60.3903": recorded.STEPS,
    "5.3414,60.3738": [
        recorded.step("depart", name="Bryggen", metres=421.3),
        recorded.step("roundabout", "right", "Storetveitvegen", 890.0, maneuver={"exit": 2}),
        recorded.step("turn", "slight left", "", 64.0),
        recorded.step("fork", "right", "Haukelandsveien", 1250.0),
        recorded.step("new name", "straight", "Jonas Lies vei", 310.0),
        recorded.step("turn", "sharp right", "Sykehusgangen", 12.0),
        recorded.step("arrive", "left", "", 0),
    ],
}
FOUND_LONG = (
    "Bergen Zoo: all you need to know before your visit, with children, by bus and in the rain"
)
FOUND = {
    "the opening hours of the zoo": [
        {
            "title": "Opening hours and prices – Bergen Zoo",
            "url": "https://www.zoo.example/visit",
            "content": "Daily 10–18.",
        },
        {
            "title": FOUND_LONG,
            "url": "https://travel.example/bergen/zoo",
            "content": "Last admission is at 17.",
        },
        {"title": "حديقة الحيوان في بيرغن", "url": "https://ar.example/zoo", "content": "10–18"},
    ],
    "Zugverbindungen": [
        {
            "title": "Fahrplanauskunft: Züge und Busse",
            "url": "https://www.bahn.example/",
            "content": "Verbindungen suchen.",
        }
    ],
}
LONG = (LONG_REMINDER, LONG_PAGE, LONG_SUBJECT, LONG_PLACE[0], FOUND_LONG)
"""Texts that a lens shows whole, or with a mark where something is missing."""
PAGE = f"""<!doctype html><html><head><title>Growing peas</title></head><body><article>
<h1>Growing peas</h1><p>{"Sow peas in March, in rows, two inches deep. " * 20}</p></article></body>
</html>"""
DOCUMENT = """# Beds
Peas by the wall, beans behind them.
# Seeds to order
Two bags of peas, one of beans, and the tomatoes that Eva liked so much last summer.
# Tools
The spade is at Jürgen's."""


def _mail(sender: str, subject: str, text: str, *, to: str = "maria@example.com") -> str:
    return (
        f"From: {_word(sender)}\nTo: {to}\nSubject: {_word(subject)}\nMIME-Version: 1.0\n"
        f"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{text}\n"
    )


def _word(text: str) -> str:
    """Return a header as mail writes it: other letters than ASCII as an encoded word."""
    name, bracket, rest = text.partition(" <")
    if not name.isascii():
        name = f"=?utf-8?B?{b64encode(name.encode()).decode()}?="
    return f"{name}{bracket}{rest}"


READ_MAILS = (
    _mail("City library <no-reply@library.example>", "Two books are due", "On Tuesday."),
    _mail("Anna Berg <anna@example.com>", "The cabin", "The key is under the mat."),
)
MAILS = (
    _mail(
        "Österreichische Bundesbahnen, Kundenservice <service@oebb.example>",
        LONG_SUBJECT,
        "Guten Tag,\nIhre Fahrkarten sind beigefügt.",
    ),
    _mail("נועה לוי <noa@example.org>", "ארוחת ערב ביום שישי", "נתראה בשבע."),
    _mail("billing@power.example", "", "Your invoice is ready."),
    _mail(
        "Anna Berg <anna@example.com>",
        "Lunch on Tuesday?",
        "Hi Maria,\n\nshall we meet at noon at the harbour? I can bring the photos.\n\nAnna",
    ),
)
CARDS = [
    f"BEGIN:VCARD\r\nVERSION:4.0\r\nUID:card-{number}\r\nFN:{name}\r\nTEL:{phone}\r\nEND:VCARD\r\n"
    for number, (name, phone) in enumerate(
        (
            ("Jonas Weber", "+49 30 901820"),
            ("Lena Weber", "+49 30 901821"),
            ("Peter Müller-Lüdenscheidt", "+49 89 12345"),
        )
    )
]
