"""The promises as data: id → what must be true, and where it was promised. Each has a test, each test names a real one.

`S…` and `C-…` are rows of the seed features, `K…` sections of the contract, `M-…` promises of this project's first issue.
A test says which it proves with `@pytest.mark.requirement("id")`; `tests/test_requirements.py` holds both directions.
"""

from typing import Final, NamedTuple


class Promise(NamedTuple):
    """One promise: a sentence a user can rely on, and its source."""

    sentence: str
    source: str


PROMISES: Final[dict[str, Promise]] = {
    # ------------------------------------------------------------ the main job
    "M-tour": Promise("`glassd demo --json --script tour` shows the main job on real parts within 45 s.", "issue 2, Shows 2"),
    "M-three-processes": Promise("Cloud, glasses and daemon as three processes serve a fourth, on both brokers.", "issue 2, Shows 3, 4"),
    "M-kill-glasses": Promise("Killed glasses come back, are reconnected and show the current scene.", "issue 2, Shows 5"),
    "M-kill-daemon": Promise("A killed daemon comes back, reconnects and restores the current scene.", "issue 2, Shows 5"),
    "M-air": Promise("A decoder that imports none of ours reads the same lens and sound from the HCI stream.", "issue 2, Glasses"),
    "M-mtu": Promise("Everything works from the smallest MTU on.", "issue 2, Glasses"),
    "M-caps-live": Promise("When the glasses' abilities change while they run, the filter follows.", "issue 2, Glasses"),
    "M-walls": Promise("The walls of the house hold: who may import whom, no circles, no long functions.", "issue 2, Shows 6"),
    "M-import-cost": Promise("Short verbs load no heavy library.", "house §3"),
    "M-never-gives-up": Promise("The link is looked for again for ever, with capped, growing rests, and warns once a cycle.", "issue 2, Daemon"),
    "M-tap": Promise("A tap turns the page; while something is spoken it stops the voice first.", "issue 2, Daemon"),
    "M-ladder": Promise("What these glasses cannot show is spoken, what they cannot say is shown, and the change is named.", "K3"),
    "M-unspeakable": Promise("Text the voice cannot say goes on down the ladder.", "issue 2, Daemon; trap 10"),
    "M-pages": Promise("Pages fit the model's pixels, lines and bytes; no text is lost.", "issue 2, Daemon"),
    "M-nagle": Promise("A call costs no 40 ms of Nagle, shown on Mosquitto.", "traps T1…T9"),
    "M-one-bad-tool": Promise("One bad tool is dropped with its reason and the rest serve.", "issue 2, Bad input"),
    "M-settings": Promise("An unknown configuration key is an error that names the nearest known one.", "K2"),
    # ------------------------------------------------------------ contract
    "K3-shown": Promise("`shown` is said only when pixels were lit, `spoken` only when samples were played.", "contract §3"),
    "K3-scene": Promise("Showing the same scene again after a reconnect is not a second rendering; speech is at most once.", "contract §3"),
    "K3-one-answer": Promise("Every call gets exactly one answer.", "contract §3"),
    "K3-ids": Promise("A call id is a UUIDv7.", "contract §3"),
    "K4-fallback": Promise("With the uplink down a call that cannot wait is answered at once, on the lens too.", "contract §4"),
    "K4-queue": Promise("A call that may wait is answered pending and finished once when the network is back.", "contract §4"),
    "K4-not-accepted": Promise("When nobody accepts a call within 2 s the wearer is told and the call withdrawn.", "contract §4"),
    "K4-late": Promise("A result after its deadline is not shown.", "contract §4"),
    "K4-twice": Promise("A message that arrives twice is executed and rendered once.", "contract §4"),
    "K4-will": Promise("Presence and capabilities are retained; the will of a killed daemon arrives 15 to 25 s later.", "contract §4"),
    "K4-wire": Promise("No bytes on the wire crash the daemon; what is wrong is answered by name.", "contract §4"),
    "K4-prefix": Promise("A response topic outside the edge's own prefix is refused.", "contract §4"),
    "K4-ack-after-store": Promise("A worker stores a call before it acknowledges it and answers a duplicate from the store.", "contract §4"),
    "K4-quarantine": Promise("A damaged database is put aside and a fresh one started.", "contract §4"),
    "K5-etag": Promise("The registry is asked for by its ETag; an unchanged one costs a 304.", "contract §5"),
    "K5-last-good": Promise("The last good registry serves until a newer one is verified.", "contract §5"),
    "K7-golden": Promise("The published golden frames are what both roles of the codec say and read.", "contract §7"),
    "K7-loss": Promise("A lost, doubled or overtaking packet is repaired.", "contract §7"),
    "K7-credits": Promise("Nothing is sent beyond the credit the peer granted.", "contract §7"),
    "K7-unknown": Promise("An unknown message is answered, not dropped.", "contract §7"),
    # ------------------------------------------------------------ seed rows this step keeps
    "S0-02": Promise("One list holds the tools of all apps, local and cloud, in one order.", "seed S0-02"),
    "S0-07": Promise("A tool's own name cannot hold a colon; said when it is defined.", "seed S0-07"),
    "S0-08": Promise("A tool's own name cannot hold a colon; said again when it is registered.", "seed S0-08"),
    "S0-10": Promise("An app that lacks required hardware loses all its tools, no other does.", "seed S0-10"),
    "S0-11": Promise("The worked matrix of the seed.", "seed S0-11"),
    "S0-12": Promise("Never-known glasses fail closed; last-known ones stay, marked stale.", "seed S0-12"),
    "S0-15": Promise("Unknown fields of a definition pass through untouched.", "seed S0-15"),
    "S0-26": Promise("A missing user header is 401, an unknown user too, word for word.", "seed S0-26, S0-27"),
    "S0-43": Promise("A legacy tool schema is migrated.", "seed S0-43"),
    "S0-45": Promise("Wrong arguments touch neither network nor app.", "seed S0-45"),
    "S0-46": Promise("Malformed and unknown names are answered with the seed's words.", "seed S0-30, S0-46, S0-47; C-46"),
    "S0-66": Promise("A text is shown, then spoken, unless suppressed.", "seed S0-66"),
    "S2-13": Promise("A tool's summary has at most 250 characters.", "seed S2-13"),
    "S2-17": Promise("A build names every broken tool and writes nothing.", "seed S2-17"),
    "S2-23": Promise("The same tools give the same version, any change another.", "seed S2-23, C-09"),
    "S2-34": Promise("Defaults are filled as Ajv does.", "seed S2-34"),
    "S2-45": Promise("A crash becomes an INTERNAL answer without its cause.", "seed S2-45"),
    "S2-48": Promise("Every violation of a schema is reported with its path.", "seed S2-48"),
    "S2-85": Promise("A call rejected by mode consumes no budget.", "seed S2-85, C-13"),
    "S2-86": Promise("A voice turn has three calls, two of them retrievals; text has no caps.", "seed S2-86, S2-87, S2-89"),
    "S2-90": Promise("`top_k` is clamped for the ear, also when it came from the default.", "seed S2-90, C-08"),
    "S2-101": Promise("Every answer leaves one audit line, without the arguments.", "seed S2-101"),
    "C-15": Promise("Only final answers are replayed.", "C-15"),
    "C-17": Promise("A cloud tool never stands in for one that lives here.", "C-17"),
    "C-45": Promise("Arguments are validated before anybody is asked to confirm.", "C-13, C-45"),
}
