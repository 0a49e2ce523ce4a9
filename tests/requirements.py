"""The promises as data: id → what must be true, and where it was promised. Each has a test, each
test names a real one.

`S…` and `C-…` are rows of the seed features, `K…` sections of the contract, `M-…` promises of this
project's first issue. A test says which it proves with `@pytest.mark.requirement("id")`;
`tests/test_requirements.py` holds both directions.
"""

from typing import Final

from tests.promises import (
    base,
    build,
    cloud,
    contact_cards,
    contacts,
    documents,
    documents_in_sections,
    everyday_tools,
    execution,
    geography,
    glasses,
    hardware,
    history,
    llm,
    loader,
    mcp_server,
    microphone,
    pager,
    reminders,
    scripts,
    shipped,
    small_faults,
    sound,
    spoken,
    stage,
    storage,
    sync,
    terminal,
    uplink,
    upstream,
    upstream_child,
    web,
)
from tests.promises.words import Promise

PARTS: Final = (
    base,
    build,
    cloud,
    contact_cards,
    contacts,
    documents,
    documents_in_sections,
    everyday_tools,
    execution,
    geography,
    glasses,
    hardware,
    history,
    llm,
    loader,
    mcp_server,
    microphone,
    pager,
    reminders,
    scripts,
    shipped,
    small_faults,
    stage,
    sound,
    spoken,
    storage,
    sync,
    terminal,
    uplink,
    upstream,
    upstream_child,
    web,
)

PROMISES: Final[dict[str, Promise]] = {
    # ------------------------------------------------------------ the main job
    "M-tour": Promise(
        "`glassd demo --json --script tour` shows the main job on real parts within 45 s.",
        "issue 2, Shows 2",
    ),
    "M-three-processes": Promise(
        "Cloud, glasses and daemon as three processes serve a fourth, on both brokers.",
        "issue 2, Shows 3, 4",
    ),
    "M-kill-glasses": Promise(
        "Killed glasses come back, are reconnected and show the current scene.", "issue 2, Shows 5"
    ),
    "M-kill-daemon": Promise(
        "A killed daemon comes back, reconnects and restores the current scene.", "issue 2, Shows 5"
    ),
    "M-air": Promise(
        "A decoder that imports none of ours reads the same lens and sound from the HCI stream.",
        "issue 2, Glasses",
    ),
    "M-mtu": Promise("Everything works from the smallest MTU on.", "issue 2, Glasses"),
    "M-caps-live": Promise(
        "When the glasses' abilities change while they run, the filter follows.", "issue 2, Glasses"
    ),
    "M-walls": Promise(
        "The walls of the house hold: who may import whom, no circles, no long functions.",
        "issue 2, Shows 6",
    ),
    "M-import-cost": Promise("Short verbs load no heavy library.", "house §3"),
    "M-never-gives-up": Promise(
        "The link is looked for again for ever, with capped, "
        "growing rests, and warns once a cycle.",
        "issue 2, Daemon",
    ),
    "M-tap": Promise(
        "A tap turns the page; while something is spoken it stops the voice first.",
        "issue 2, Daemon",
    ),
    "M-ladder": Promise(
        "What these glasses cannot show is spoken, "
        "what they cannot say is shown, and the change is named.",
        "K3",
    ),
    "M-unspeakable": Promise(
        "Text the voice cannot say goes on down the ladder.", "issue 2, Daemon; trap 10"
    ),
    "M-pages": Promise(
        "Pages fit the model's pixels, lines and bytes; no text is lost.", "issue 2, Daemon"
    ),
    "M-nagle": Promise("A call costs no 40 ms of Nagle, shown on Mosquitto.", "traps T1…T9"),
    "M-one-bad-tool": Promise(
        "One bad tool is dropped with its reason and the rest serve.", "issue 2, Bad input"
    ),
    "M-settings": Promise(
        "An unknown configuration key is an error that names the nearest known one.", "K2"
    ),
    # ------------------------------------------------------------ contract
    "I4-agent-restart": Promise(
        "A bluetoothd that restarts while glasses are paired gets the agent again.",
        "issue 4, Pairing; ble-stack §5.13",
    ),
    "I4-agent-window": Promise(
        "The agent is there only while pairing, "
        "answers for the one device, and refuses everything else.",
        "issue 4, Pairing",
    ),
    "I4-bond-kept": Promise(
        "A bond survives both sides being switched off; nobody is asked again.", "issue 4, Pairing"
    ),
    "I4-bond-lost": Promise(
        "A bond lost on either side is told as that and cured by "
        "one `glassd pair`, never silently.",
        "issue 4, Pairing",
    ),
    "I4-bonds-file": Promise(
        "bonds.json is private, replaced whole, bounded, and put aside with a word when damaged.",
        "issue 4, Pairing",
    ),
    "I4-bus-policy": Promise(
        "On the system bus the daemon may call BlueZ and the bus itself, and nobody else.",
        "issue 4, systemd",
    ),
    "I4-deb": Promise(
        "Each Debian has its package; the same commit gives the same bytes, "
        "and only purging takes what is a person's.",
        "issue 4, systemd",
    ),
    "I4-doctor-bounded": Promise(
        "The doctor's checks run at once where they can, "
        "are told in order, and end within 15 s, whatever hangs.",
        "issue 4, glassd doctor",
    ),
    "I4-doctor-broker": Promise(
        "The broker's ladder stops at the rung that fails, "
        "says which and why, and leaves the daemon's session alone.",
        "issue 4, glassd doctor; ux §5",
    ),
    "I4-doctor-bundle": Promise(
        "`glassd doctor --bundle` holds what a helper needs and no secret, wherever one stood.",
        "issue 4, glassd doctor",
    ),
    "I4-doctor-fixes": Promise(
        "Every check of the doctor fails on its real fault, "
        "and its printed fix, run as printed, turns it OK.",
        "issue 4, Show 5",
    ),
    "I4-doctor-good": Promise(
        "On a good machine the doctor finds nothing and ends with 0; "
        "on one with a fault it ends with 1.",
        "issue 4, Show 5",
    ),
    "I4-enrol": Promise(
        "A code from a cloud's operator is all it takes to be its edge; nothing is restarted.",
        "issue 4, Enrolment",
    ),
    "I4-enrol-once": Promise(
        "A code works once; a mistyped one names the group and is not spent.", "issue 4, Enrolment"
    ),
    "I4-enrol-pinned": Promise(
        "A server whose authority is not the one the code names is told nothing.",
        "issue 4, Enrolment",
    ),
    "I4-enrol-renewal": Promise(
        "A client certificate is renewed over itself before it ends, "
        "and the next connection shows the new one.",
        "issue 4, Enrolment",
    ),
    "I4-enrol-secret": Promise(
        "The secret of an enrolment code is in no log, no message and no file once it is spent.",
        "issue 4, Enrolment",
    ),
    "I4-faults-deeds": Promise(
        "Each fault does below the glasses' own logic what its word says, "
        "to one side or to all, now or at its moment.",
        "issue 4, Faults on demand",
    ),
    "I4-faults-words": Promise(
        "The command line, scripts and the control channel of a mock take the same "
        "words for faults, checked before anything happens.",
        "issue 4, Faults on demand",
    ),
    "I4-g1-awake": Promise(
        "Glasses that are left alone stay connected for as long as they are worn.",
        "facts/ble-even-g1.md 13",
    ),
    "I4-g1-conflicts": Promise(
        "Whichever source about the Even G1 is right, these glasses are understood and obey.",
        "issue 4, Shows 7",
    ),
    "I4-g1-golden": Promise(
        "Every golden packet of the Even G1 cites its row of the fact sheet.", "issue 4, Shows 7"
    ),
    "I4-g1-left-first": Promise(
        "A page goes to the right arm only after the left took all of it.",
        "issue 4, Even Realities G1",
    ),
    "I4-g1-lens": Promise(
        "A page renders at 576 × 136 with the glyph metrics of that lens.",
        "issue 4, Even Realities G1",
    ),
    "I4-g1-one-side": Promise(
        "With one side lost the other keeps showing; "
        "a side that returns gets the page, the other notices nothing.",
        "issue 4, Even Realities G1",
    ),
    "I4-g1-skew": Promise(
        "How far apart both arms take a page is bounded, and told.", "issue 4, Even Realities G1"
    ),
    "I4-install": Promise(
        "Installing again is an upgrade that keeps settings and state; "
        "uninstalling removes exactly what was installed.",
        "issue 4, systemd",
    ),
    "I4-link-adapter": Promise(
        "An adapter that is off or pulled out, a bluetoothd or a D-Bus that dies "
        "end the link at once, and each recovers by itself.",
        "issue 4, Link life",
    ),
    "I4-link-asks": Promise(
        "A refused key stops the trying and says what to do; pairing, or a person, resumes it.",
        "issue 4, Link life",
    ),
    "I4-link-bond-lost": Promise(
        "A bond that the glasses forgot is noticed on BlueZ, "
        "which does not say so, and asked about.",
        "issue 4, Link life; facts/ble-stack.md 5.15",
    ),
    "I4-link-ladder": Promise(
        "What is done about a failed link is one table, and every kind of failure stands in it.",
        "issue 4, Link life",
    ),
    "I4-link-left-over": Promise(
        "A link that a killed daemon left behind is taken over; "
        "one that another program holds is named and ended.",
        "issue 4, Link life; facts/ble-stack.md 5.6",
    ),
    "I4-link-named": Promise(
        "What ails the link is named in status, with what to do about it.", "issue 4, Link life"
    ),
    "I4-link-quiet": Promise(
        "A drop under 5 s costs one warning in the log, nothing on the lens, "
        "and nobody is told that the glasses are away.",
        "issue 4, Link life",
    ),
    "I4-link-restored": Promise(
        "After a reconnect the page and the settings are "
        "as they were, drawn once and never dark between.",
        "issue 4, Link life",
    ),
    "I4-link-storm": Promise(
        "Whatever happens to the link, one fault upon another, "
        "the page that was read is on the lens again.",
        "issue 4, Shows 4",
    ),
    "I11-skips-counted": Promise(
        "Where a program of the system is missing its tests are skipped, "
        "and `make test` counts them and says what to install.",
        "issue 11, A bare Debian",
    ),
    "I11-long-tmpdir": Promise(
        "`make test` runs wherever TMPDIR points, however long its path is.",
        "issue 11, A bare Debian",
    ),
    "I11-time-limits": Promise(
        "A time limit ends in TimeoutError on every Python that we promise, "
        "also while something cleans up after a failure.",
        "issue 11, A bare Debian",
    ),
    "I12-atomic-files": Promise(
        "A process killed while it writes a file leaves the old or the new content, "
        "private from the beginning.",
        "issue 12, Build 3",
    ),
    "I12-atomic-files-two-writers": Promise(
        "Two processes or threads may write one file at the same time: both succeed.",
        "issue 12, Build 3",
    ),
    "I4-man": Promise("Man page and completions know every verb and option.", "issue 4, systemd"),
    "I4-only-ours": Promise("Only glasses of ours are ever connected to.", "issue 4, Pairing"),
    "I4-pair-compare": Promise(
        "Numbers are compared on both sides; a no on either is no bond.", "issue 4, Pairing"
    ),
    "I4-pair-just-works": Promise(
        "Glasses that can neither show nor type a code are paired without one.", "issue 4, Pairing"
    ),
    "I4-pair-passkey": Promise(
        "A code shown on the lens is typed here, and the link is encrypted from then on.",
        "issue 4, Pairing",
    ),
    "I4-pair-proof": Promise(
        "Glasses that can show a code and were paired without one are unpaired and refused.",
        "issue 4, Pairing",
    ),
    "I4-pair-refused": Promise(
        "Glasses that refuse to be paired are told with what to do.", "issue 4, Pairing"
    ),
    "I4-pair-up": Promise(
        "`glassd up` finds, pairs, connects and saves, and says each step and the next action.",
        "issue 4, Pairing; contract §1",
    ),
    "I4-pair-window": Promise(
        "One pairing window at a time; it closes by itself, and with its client.",
        "issue 4, Pairing",
    ),
    "I4-pair-wrong-code": Promise(
        "A wrong code is told as one, the next code is another, "
        "and three in a row make the glasses wait.",
        "issue 4, Pairing",
    ),
    "I4-radio-forgetful": Promise(
        "Glasses that forgot their bond are noticed, "
        "asked about once, and paired again in one step.",
        "issue 4, Prove it",
    ),
    "I4-radio-killed": Promise(
        "A killed daemon finds the glasses that it left connected.", "issue 4, Prove it"
    ),
    "I4-radio-mtu": Promise(
        "Pages get through at every MTU, also when it was another at the last connection.",
        "issue 4, Prove it; facts/ble-stack.md 5.17",
    ),
    "I4-radio-passkey": Promise(
        "A code shown on the lens and typed here makes glasses ours; "
        "the bond outlives daemon and bluetoothd.",
        "issue 4, Prove it",
    ),
    "I4-radio-random": Promise(
        "Links lost at random moments are all made again, with the page that was on the lens.",
        "issue 4, Prove it",
    ),
    "I4-radio-unpaired": Promise(
        "What is written before pairing is never applied by the glasses, "
        "and the caller hears so in bounded time.",
        "issue 4, Prove it; facts/traps.md 3",
    ),
    "I4-show-g1": Promise(
        "`glassd demo --glasses sim:even_g1` runs the tour on two "
        "arms; with one away the other carries on.",
        "issue 4, Shows 3",
    ),
    "I4-sim-g1": Promise(
        "A simulated G1 is two radios that answer every command of its "
        "sources, in every dialect, on a lens each.",
        "issue 4, Even Realities G1",
    ),
    "I4-sim-g1-quirks": Promise(
        "Everything its sources disagree about is a switch of the simulated G1.", "issue 4, Shows 7"
    ),
    "I4-support-table": Promise(
        "The table of supported glasses is what the catalogue says.", "issue 4, Shows 6"
    ),
    "I4-tls-clock": Promise(
        "A clock that was never set is waited for, and said; certificates are never passed over.",
        "issue 4, Enrolment",
    ),
    "I4-tls-mutual": Promise(
        "Mutual TLS works; a refused client certificate is told as "
        "missing, expired, revoked or strange.",
        "issue 4, Enrolment",
    ),
    "I4-tls-renewed": Promise(
        "Certificates renewed on disk serve the next connection.", "issue 4, Enrolment"
    ),
    "I4-tls-verified": Promise(
        "A broker of another name, an expired or unknown certificate is refused, with the fix.",
        "issue 4, Enrolment",
    ),
    "I4-unit-confined": Promise(
        "The unit runs as its own user, scores at most 1.5, "
        "and reaches BlueZ and nothing else on the bus.",
        "issue 4, Prove it",
    ),
    "I4-unit-doctor": Promise(
        "On a good machine `glassd doctor` finds everything OK and ends with 0.", "issue 4, Shows 5"
    ),
    "I4-unit-lives": Promise(
        "systemd starts the unit again when it was killed, "
        "and kills and restarts one whose loop is blocked.",
        "issue 4, Prove it",
    ),
    "I4-watchdog": Promise(
        "A daemon whose loop hangs, or whose service is stuck beyond its bound, "
        "is restarted; one whose glasses are away is not.",
        "issue 4, systemd",
    ),
    "I4-write-bonded": Promise(
        "A write before encryption is never applied, and its caller hears that in bounded time.",
        "issue 4, Pairing; trap 3",
    ),
    "K3-shown": Promise(
        "`shown` is said only when pixels were lit, `spoken` only when samples were played.",
        "contract §3",
    ),
    "K3-scene": Promise(
        "Showing the same scene again after a reconnect is not a "
        "second rendering; speech is at most once.",
        "contract §3",
    ),
    "K3-one-answer": Promise("Every call gets exactly one answer.", "contract §3"),
    "K3-ids": Promise("A call id is a UUIDv7.", "contract §3"),
    "K4-fallback": Promise(
        "With the uplink down a call that cannot wait is answered at once, on the lens too.",
        "contract §4",
    ),
    "K4-queue": Promise(
        "A call that may wait is answered pending and finished once when the network is back.",
        "contract §4",
    ),
    "K4-not-accepted": Promise(
        "When nobody accepts a call within 2 s the wearer is told and the call withdrawn.",
        "contract §4",
    ),
    "I13-accept-held-up": Promise(
        "A worker that accepts a call while the daemon is held up has accepted it in time.",
        "issue 13",
    ),
    "K4-late": Promise("A result after its deadline is not shown.", "contract §4"),
    "K4-twice": Promise(
        "A message that arrives twice is executed and rendered once.", "contract §4"
    ),
    "K4-will": Promise(
        "Presence and capabilities are retained; "
        "the will of a killed daemon arrives 15 to 25 s later.",
        "contract §4",
    ),
    "K4-wire": Promise(
        "No bytes on the wire crash the daemon; what is wrong is answered by name.", "contract §4"
    ),
    "K4-prefix": Promise(
        "A response topic outside the edge's own prefix is refused.", "contract §4"
    ),
    "K4-ack-after-store": Promise(
        "A worker stores a call before it acknowledges it and answers a duplicate from the store.",
        "contract §4",
    ),
    "K4-quarantine": Promise(
        "A damaged database is put aside and a fresh one started.", "contract §4"
    ),
    "K5-etag": Promise(
        "The registry is asked for by its ETag; an unchanged one costs a 304.", "contract §5"
    ),
    "K5-last-good": Promise(
        "The last good registry serves until a newer one is verified.", "contract §5"
    ),
    "K7-golden": Promise(
        "The published golden frames are what both roles of the codec say and read.", "contract §7"
    ),
    "K7-loss": Promise("A lost, doubled or overtaking packet is repaired.", "contract §7"),
    "K7-credits": Promise("Nothing is sent beyond the credit the peer granted.", "contract §7"),
    "K7-unknown": Promise("An unknown message is answered, not dropped.", "contract §7"),
    # ------------------------------------------------------------ seed rows this step keeps
    "S0-02": Promise(
        "One list holds the tools of all apps, local and cloud, in one order.", "seed S0-02"
    ),
    "S0-07": Promise(
        "A tool's own name cannot hold a colon; said when it is defined.", "seed S0-07"
    ),
    "S0-08": Promise(
        "A tool's own name cannot hold a colon; said again when it is registered.", "seed S0-08"
    ),
    "S0-10": Promise(
        "An app that lacks required hardware loses all its tools, no other does.", "seed S0-10"
    ),
    "S0-11": Promise("The worked matrix of the seed.", "seed S0-11"),
    "S0-12": Promise(
        "Never-known glasses fail closed; last-known ones stay, marked stale.", "seed S0-12"
    ),
    "S0-15": Promise("Unknown fields of a definition pass through untouched.", "seed S0-15"),
    "S0-26": Promise(
        "A missing user header is 401, an unknown user too, word for word.", "seed S0-26, S0-27"
    ),
    "S0-43": Promise("A legacy tool schema is migrated.", "seed S0-43"),
    "S0-45": Promise("Wrong arguments touch neither network nor app.", "seed S0-45"),
    "S0-46": Promise(
        "Malformed and unknown names are answered with the seed's words.",
        "seed S0-30, S0-46, S0-47; C-46",
    ),
    "S0-66": Promise("A text is shown, then spoken, unless suppressed.", "seed S0-66"),
    "S2-13": Promise("A tool's summary has at most 250 characters.", "seed S2-13"),
    "S2-17": Promise("A build names every broken tool and writes nothing.", "seed S2-17"),
    "S2-23": Promise(
        "The same tools give the same version, any change another.", "seed S2-23, C-09"
    ),
    "S2-34": Promise("Defaults are filled as Ajv does.", "seed S2-34"),
    "S2-45": Promise("A crash becomes an INTERNAL answer without its cause.", "seed S2-45"),
    "S2-48": Promise("Every violation of a schema is reported with its path.", "seed S2-48"),
    "S2-85": Promise("A call rejected by mode consumes no budget.", "seed S2-85, C-13"),
    "S2-86": Promise(
        "A voice turn has three calls, two of them retrievals; text has no caps.",
        "seed S2-86, S2-87, S2-89",
    ),
    "S2-90": Promise(
        "`top_k` is clamped for the ear, also when it came from the default.", "seed S2-90, C-08"
    ),
    "S2-101": Promise("Every answer leaves one audit line, without the arguments.", "seed S2-101"),
    "C-15": Promise("Only final answers are replayed.", "C-15"),
    "C-17": Promise("A cloud tool never stands in for one that lives here.", "C-17"),
    "C-45": Promise("Arguments are validated before anybody is asked to confirm.", "C-13, C-45"),
    # ------------------------------------------------------------ durable calls and policy (issue
    # 3)
    "S0-60": Promise(
        "Every answered call leaves a line that says tool, outcome and whole milliseconds.",
        "seed S0-60",
    ),
    "S1-39": Promise("The owner's switch hides and denies all tools.", "seed S1-39"),
    "S2-41": Promise("An envelope is ok or an error, never both, never neither.", "seed S2-41"),
    "S2-53": Promise("The four intents steer the voice session.", "seed S2-53"),
    "S2-54": Promise("An unknown intent is refused and logged.", "seed S2-54, S2-55"),
    "S2-56": Promise("Every change of the session is kept with its cause.", "seed S2-56"),
    "S2-67": Promise(
        "A tool's VALIDATION error is never retryable and never leaves effects.", "seed S2-67"
    ),
    "S2-68": Promise(
        "A tool's NOT_FOUND error is never retryable and never leaves effects.", "seed S2-68"
    ),
    "S2-69": Promise(
        "A tool that is not for this mode is MODE_RESTRICTED, with the way out.", "seed S2-69"
    ),
    "S2-70": Promise("A call beyond the budget is BUDGET_EXCEEDED.", "seed S2-70"),
    "S2-71": Promise(
        "Who asks to be told gets CONFIRMATION_REQUIRED at once, with its request.", "seed S2-71"
    ),
    "S2-72": Promise(
        "A confirmation nobody gave in time is CONFIRMATION_EXPIRED.", "seed S2-72, C-04"
    ),
    "S2-73": Promise("What needs glasses that are away is SESSION_INACTIVE.", "seed S2-73"),
    "S2-74": Promise("SESSION_ACTIVE reaches the caller as it was said.", "seed S2-74"),
    "S2-75": Promise("What may work later is TRANSIENT and retryable.", "seed S2-75"),
    "S2-76": Promise("What will not work is PERMANENT.", "seed S2-76"),
    "S2-77": Promise(
        "A RATE_LIMIT answer of a mini-app says when to come back, within an hour.", "seed S2-77"
    ),
    "S2-78": Promise(
        "A failed sign-in is final and says that somebody must sign in again.", "seed S2-78, C-10"
    ),
    "S2-79": Promise("CONFLICT reaches the caller as it was said.", "seed S2-79"),
    "S2-80": Promise("Our own fault is INTERNAL, and side effects are assumed.", "seed S2-80"),
    "S2-81": Promise(
        "An error from before anything was done claims neither effects nor use in asking again.",
        "seed S2-81",
    ),
    "S2-82": Promise(
        "A mini-app can say that something was done before it failed, and it reaches the caller.",
        "seed S2-82",
    ),
    "S2-83": Promise(
        "A session's mode is set by its first call; a later one in another mode is refused.",
        "seed S2-83",
    ),
    "S2-84": Promise("A call without a name is answered.", "seed S2-84, C-46"),
    "S2-87": Promise(
        "The fourth call of a voice turn is refused with the seed's words.", "seed S2-87"
    ),
    "S2-88": Promise("A new turn has a new budget.", "seed S2-88"),
    "S2-89": Promise("Text mode has no hard caps.", "seed S2-89"),
    "S2-91": Promise(
        "A call slower than its tool's latency budget is told, and returns all the same.",
        "seed S2-91",
    ),
    "S2-92": Promise(
        "Calls of one spoken turn that together take over 1.5 s "
        "are told once, and run all the same.",
        "seed S2-92",
    ),
    "S2-93": Promise("Counts are hard limits.", "seed S2-93"),
    "S2-94": Promise(
        "A latency budget never changes how many calls a turn may make.", "seed S2-94"
    ),
    "S2-95": Promise(
        "What needs a yes is asked where the wearer is: on the lens, "
        "else in the ear; a tap or press answers.",
        "seed S2-95, contract §7",
    ),
    "S2-96": Promise(
        "A token is bound to its tool, arguments, session and user.", "seed S2-96, C-14"
    ),
    "S2-97": Promise("A token runs the stored call, once.", "seed S2-97, C-14"),
    "S2-98": Promise("No handler and no disk sees a token.", "seed S2-98"),
    "S2-99": Promise(
        "A confirmation's preview says what would run; a question's last line has the tool's name.",
        "seed S2-99",
    ),
    "S2-100": Promise("A handler runs only after the yes.", "seed S2-100"),
    "S2-102": Promise("A provider's id is a key when it is stable.", "seed S2-102"),
    "S2-103": Promise(
        "Without a stable id the question within its turn is the key.", "seed S2-103"
    ),
    "S2-104": Promise(
        "A second call with a known key gets the first one's whole "
        "answer, marked, and runs nothing.",
        "seed S2-104",
    ),
    "S2-105": Promise(
        "A hundred keys a session are kept; the one hit longest ago "
        "leaves first, a running one never.",
        "seed S2-105, C-26",
    ),
    "S2-106": Promise("A retryable failure is not held against its key.", "seed S2-106, C-15"),
    "S2-107": Promise("A voice call is tried once.", "seed S2-107"),
    "S2-108": Promise(
        "A text call of an idempotent tool is tried once more after a transient failure.",
        "seed S2-108",
    ),
    "S2-109": Promise(
        "A validation error names every path, so that a model can mend its call.", "seed S2-109"
    ),
    "S2-110": Promise("A permanent failure is told to the wearer.", "seed S2-110"),
    "S2-111": Promise("Intents of a failure are applied.", "seed S2-111, C-03"),
    "I3-whole-error": Promise("An error arrives whole, never only its data.", "seed S2-114"),
    "S2-131": Promise("A tool's rate is held, and says when to come again.", "seed S2-131"),
    "S2-132": Promise(
        "Calls, errors and times of every tool are counted, in status and as OpenMetrics text.",
        "seed S2-132",
    ),
    "S2-133": Promise(
        "A tool may declare when it works, as a table of facts; expressions are refused.",
        "seed S2-133",
    ),
    "S2-134": Promise(
        "A tool may call others, three deep, within the turn's budget.", "seed S2-134"
    ),
    "S2-135": Promise(
        "Optional fields of the envelope are absent when there is nothing to say.", "seed S2-135"
    ),
    "S2-136": Promise(
        "A turn that is replayed after a reconnect or restart is answered from the store.",
        "seed S2-136, C-06",
    ),
    "S2-137": Promise("Unstable ids make no second call of a replayed one.", "seed S2-137, C-47"),
    "S2-138": Promise(
        "A turn goes on with the registry it began with; development refuses.", "seed S2-138"
    ),
    "S2-139": Promise("The third retrieval of a turn is BUDGET_EXCEEDED.", "seed S2-139, C-25"),
    "S2-140": Promise(
        "Latencies are reported as percentiles by category and mode, beside their targets.",
        "seed S2-140",
    ),
    "S3-01": Promise("A gateway tool is answered in the same call.", "seed S3-01"),
    "S3-02": Promise(
        "An external tool with an address is answered in the same call.", "seed S3-02"
    ),
    "S3-03": Promise("An external tool without an address is answered later.", "seed S3-03"),
    "S3-04": Promise(
        "What only the wearer can decide is a question on the lens, and the answer is the result.",
        "seed S3-04",
    ),
    "S3-21": Promise("An inline call is answered in its own cycle.", "seed S3-21"),
    "S3-22": Promise("A pending call is answered with its id at once.", "seed S3-22"),
    "S3-23": Promise("Calls that wait for their results take no place from others.", "seed S3-23"),
    "S3-24": Promise("A pending call survives kill -9 and can still be resolved.", "seed S3-24"),
    "S3-25": Promise(
        "The first result handed in stands; a second is refused as a conflict.", "seed S3-25"
    ),
    "S3-26": Promise(
        "The result of a pending call can be handed in over the "
        "control API, plain or as a whole envelope.",
        "seed S3-26",
    ),
    "S3-27": Promise("A result for a call nobody knows is a 404.", "seed S3-27"),
    "S3-28": Promise(
        "A result for a call of another session or user is a 404 and resolves nothing.",
        "seed S3-28",
    ),
    "S3-29": Promise(
        "A pending call expires with its life, with one answer, over restarts.", "seed S3-29"
    ),
    "S3-30": Promise("A resolved call is told once.", "seed S3-30"),
    "S3-31": Promise(
        "When a question is over it leaves the lens, and what was there before comes back.",
        "seed S3-31",
    ),
    "S3-32": Promise("What is drawn calls nothing.", "seed S3-32"),
    "S3-33": Promise("The events of a call come in order, its end last.", "seed S3-33"),
    "S3-38": Promise(
        "Progress reaches the lens as its newest word, in order, and the result takes its place.",
        "seed S3-38",
    ),
    "C-01": Promise("Inside there is one word for success.", "C-01"),
    "C-03": Promise("Intents count on success and on failure.", "C-03"),
    "C-04": Promise("The fourteen types are all there are, and every code has one.", "C-04"),
    "C-06": Promise(
        "Keys go by precedence: the caller's, the provider's, "
        "the hash; what may not run twice does not.",
        "C-06",
    ),
    "C-07": Promise("The schema decides about unknown arguments.", "C-07"),
    "C-08": Promise("`top_k` is clamped after its default.", "C-08"),
    "C-09": Promise("The registry version covers everything that changes execution.", "C-09"),
    "C-10": Promise("AUTH is final and says to sign in again.", "C-10"),
    "C-11": Promise("An app that does not come up is TRANSIENT.", "C-11"),
    "C-12": Promise("The seed's routes answer with its own statuses.", "C-12"),
    "C-13": Promise("Checks come in one order: mode, budgets, arguments, confirmation.", "C-13"),
    "C-14": Promise("A token is used up before anything runs.", "C-14"),
    "C-20": Promise("Confirmation is never, always, or for what writes.", "C-20"),
    "C-22": Promise(
        "A token travels beside the call, never in its arguments; "
        "the seed's other names for it are taken too.",
        "seed C-22, C-24",
    ),
    "C-23": Promise("Every answer carries meta, whoever gave it.", "C-23"),
    "C-25": Promise("Too many calls of a turn are BUDGET_EXCEEDED, not RATE_LIMIT.", "C-25"),
    "C-26": Promise(
        "The key of a write that must not be repeated is kept for a day, over restarts.", "C-26"
    ),
    "C-30": Promise("A summary's bound is 250 characters.", "C-30"),
    "C-31": Promise("A section is a heading of its own level.", "C-31"),
    "C-32": Promise("All four intents are handled; the mode is no part of the state.", "C-32"),
    "C-35": Promise("The budget stands in one place.", "C-35"),
    "C-36": Promise("A turn runs on one snapshot.", "C-36"),
    "C-39": Promise("Absent glasses are SESSION_INACTIVE.", "C-39"),
    "C-40": Promise("A spoken call that takes long becomes pending.", "C-40"),
    "C-41": Promise(
        "An external tool's address may be called url or webhookUrl; url comes first.", "C-41"
    ),
    "C-43": Promise("What must survive is on this edge's disk.", "C-43"),
    "C-44": Promise(
        "Hardware belongs to the app, unless a tool's own needs are switched on.", "C-44"
    ),
    "C-46": Promise("A nameless call is answered.", "C-46"),
    "C-47": Promise("Every executed call is known under all its keys.", "C-47"),
    "C-48": Promise(
        "Distinct stable ids are distinct calls; "
        "without ids only replays and calls in flight are joined.",
        "C-48",
    ),
    "I3-ask-ear": Promise(
        "Without a lens the question is spoken; a press answers, and not before it is heard.",
        "issue 3, Confirmation",
    ),
    "I3-ask-fits": Promise(
        "A question fits the lens, and its last row always says what to do.",
        "issue 3, Confirmation",
    ),
    "I3-ask-killed": Promise(
        "A daemon that dies while it asks leaves no question behind; what was read comes back.",
        "issue 3, Prove it",
    ),
    "I3-ask-lost": Promise(
        "Glasses lost while they ask are asked again with the rest of the time, and answered once.",
        "issue 3, Prove it",
    ),
    "I3-ask-nobody": Promise(
        "Where no known glasses could ever ask, that is said at once.", "issue 3, Confirmation"
    ),
    "I3-ask-older": Promise(
        "An answer to an older question is none: "
        "prompt numbers never repeat, also not after a restart.",
        "issue 3, Confirmation",
    ),
    "I3-ask-one": Promise(
        "Questions are asked one at a time and in order; "
        "a ninth that would wait is refused at once.",
        "issue 3, Confirmation",
    ),
    "I3-ask-restores": Promise(
        "After a question the scene before it is back at its page, which is no second rendering.",
        "issue 3, Confirmation; contract §3",
    ),
    "I3-ask-silence": Promise(
        "Silence is a time-out by the daemon's own clock, and takes the question off the lens.",
        "issue 3, Confirmation",
    ),
    "I3-ask-too-soon": Promise(
        "A tap in the first 0.7 s of a page with a question counts for nothing.",
        "issue 3, Confirmation",
    ),
    "I11-consent-alone": Promise(
        "Nothing lies over a question and nothing darkens it: no notification, setting, "
        "dashboard or page of a result; a dark lens asks nothing.",
        "issue 11, Show 4",
    ),
    "I11-consent-echo": Promise(
        "One tap that both arms report, however late, is one tap.", "issue 11, Show 4"
    ),
    "I11-consent-hidden": Promise(
        "What the wearer hides (silent mode, the glasses' dashboard, an early double tap), "
        "or what was dark before the daemon started, takes no answer; "
        "it is asked when it can be seen.",
        "issue 11, Show 4",
    ),
    "I11-consent-worn": Promise(
        "A yes of glasses that are not worn, or were put on this moment, does not count.",
        "issue 11, Show 4",
    ),
    "I13-ladders": Promise(
        "What is to be shown is spoken on glasses without a display, what is to be said is shown "
        "on those without a speaker, a picture is replaced by its description; the delivery "
        "names it.",
        "issue 13, Ladders at the door",
    ),
    "I13-picture-forms": Promise(
        "`glasses:show_image` takes base64 and data URLs; `glassd call` takes a path, also of a "
        "photograph that is too large to be sent.",
        "issue 13, Agents get the truth where they read it",
    ),
    "I13-page-back": Promise(
        "A tap on the left of a G1 goes a page back, on the right a page on, also when one follows "
        "the other within seconds; a question is answered by neither twice.",
        "issue 13, The lens as one stage for many",
    ),
    "I13-recall": Promise(
        "A tap on the dark lens brings back the last three results of calls, one after the other, "
        "for an hour; nothing else, and not over a restart.",
        "issue 13, The lens as one stage for many",
    ),
    "I13-scene": Promise(
        "A result that names a scene replaces the older version of it at once and in place, on the "
        "lens and in the queue.",
        "issue 13, The lens as one stage for many",
    ),
    "I13-duration": Promise(
        "What has a duration is on the lens for exactly that time, without what covered it.",
        "issue 13, The lens as one stage for many",
    ),
    "I13-said": Promise(
        "`glasses:wait_for_event` can wait for what the wearer says: only for those who name it, "
        "kept for a minute, never while the session is private.",
        "issue 13, Agents get the truth where they read it",
    ),
    "I13-present": Promise(
        "What an agent or a program looks up for itself is not shown to the wearer; "
        "`present` decides for any call.",
        "issue 13, The lens as one stage for many",
    ),
    "I13-wearer-forms": Promise(
        "Dates, times and numbers are in the wearer's language and time zone, which the "
        "configuration names; a wrong name is an error that says which one was meant.",
        "issue 13, Text made for a lens",
    ),
    "I13-plain-text": Promise(
        "Markdown never reaches a lens or the voice; both have the same plain text, with the dates "
        "in the wearer's form.",
        "issue 13, Text made for a lens",
    ),
    "I13-columns": Promise(
        "A table's cells stand below each other; one that does not fit is lines with a point "
        "between the cells.",
        "issue 13, Text made for a lens",
    ),
    "I13-table-of-strings": Promise(
        "Timers, free times, waiting calls and old results are said as people say them.",
        "issue 13, Text made for a lens",
    ),
    "I13-failures": Promise(
        "A failed call is a sentence for people: no report of a program, no command for a "
        "terminal.",
        "issue 13, Text made for a lens",
    ),
    "I13-data": Promise(
        "Long data is summarised by its keys on one page; all of it comes after a tap.",
        "issue 13, Text made for a lens",
    ),
    "I13-consent-words": Promise(
        "A question begins with the app and the tool's title in words; dates and numbers are in "
        "the wearer's form, and lists are counted and shown item by item.",
        "issue 13, Consent in plain words",
    ),
    "I13-consent-directions": Promise(
        "Right-to-left text in a question is readable, and two texts are never drawn alike.",
        "issue 13, Show 3",
    ),
    "I13-consent-joiners": Promise(
        "Joiners and emoji in a question stay where they are seen; all others are escaped.",
        "issue 13, Consent in plain words",
    ),
    "I13-undo": Promise(
        "A result whose tool names an undo offers a tap for 10 s, which takes it back once.",
        "issue 13, Consent in plain words",
    ),
    "I13-consent-answered": Promise(
        "After a yes the lens says that it works until the result, after a no that nothing was "
        "changed; the page from before does not come between.",
        "issue 13, Consent in plain words",
    ),
    "I13-wearer": Promise(
        "A definition names the tool for the wearer, what is said when it waits for the network, "
        "and the tool that takes its call back; mistakes in it are named.",
        "issue 13, Consent in plain words",
    ),
    "I11-consent-complete": Promise(
        "A confirmation shows every argument, in the order of the schema, unknown ones marked; in "
        "the place of an id what it stands for; what is too long to show is refused.",
        "issue 11, Consent 6",
    ),
    "I11-consent-early": Promise(
        "Nothing in the first 0.7 s after the last page was drawn, "
        "or the speech ended, is a yes, whatever the glasses say.",
        "issue 11, Consent 7",
    ),
    "I11-consent-everywhere": Promise(
        "The lens, the terminal, MCP, the control API and the event show the same particulars.",
        "issue 11, Consent 6",
    ),
    "I11-consent-frozen": Promise(
        "What runs is what was shown; a yes does not hold when the tool, or what an argument "
        "stands for, changed meanwhile.",
        "issue 11, Consent 6",
    ),
    "I11-consent-pages": Promise(
        "A yes is offered on the last page only, and counts only after every page was on the lens.",
        "issue 11, Consent 6",
    ),
    "I11-consent-spoken": Promise(
        "A spoken question is heard to its end before a yes counts; "
        "one that cannot be said whole is refused.",
        "issue 11, Consent 6",
    ),
    "I11-consent-unreadable": Promise(
        "What a lens cannot draw is escaped; "
        "a question that would be unreadable is not asked on it.",
        "issue 11, Consent 6",
    ),
    "I11-consent-visible": Promise(
        "No key, value or name can look like another line, and hidden characters are escaped.",
        "issue 11, Consent 6",
    ),
    "I11-consent-whose": Promise(
        "A confirmation names the tool whole, and whose it is; no tool can borrow another's words.",
        "issue 11, Consent 6",
    ),
    "I3-ask-waits": Promise(
        "While a question is open results and alarms wait, "
        "brief words are dropped, and nothing is spoken over it.",
        "issue 3, Confirmation",
    ),
    "I3-cache": Promise(
        "A tool that reads answers from its last good result, with its age, "
        "when its route is away; one that writes never.",
        "issue 3, Cached results",
    ),
    "I3-call-off": Promise(
        "A double tap on a working mark calls its call off, and the mark goes within 100 ms.",
        "issue 3, Async; ux §4",
    ),
    "I3-progress-rate": Promise(
        "A flood of progress never exceeds the panel's rate, "
        "never delays a result, and ends with its last word.",
        "issue 3, Async",
    ),
    "I3-recovery": Promise("A restart ends every open call by rule, once.", "issue 3, Call life"),
    "I3-shows-3": Promise(
        "A calendar entry is asked about on the lens, a tap makes it once, its token is used then.",
        "issue 3, Shows 3",
    ),
    "I3-shows-4": Promise(
        "The third retrieval of a turn never leaves the edge; the next turn works.",
        "issue 3, Shows 4",
    ),
    "I3-shows-7": Promise(
        "The weather is shown with its age when the cloud is away, and says so on the lens.",
        "issue 3, Shows 7",
    ),
    "I3-stale-said": Promise(
        "A result from the cache says its age, on the lens and in the ear.",
        "issue 3, Cached results",
    ),
    "K3-backlog": Promise(
        "A thousand calls taken while the broker is away survive a kill -9 and "
        "are each answered once; status tells how many wait.",
        "issue 3, Show 2",
    ),
    "K3-chaos": Promise(
        "Whenever the daemon is killed and whatever fails around it, "
        "nothing accepted is lost and nothing runs twice.",
        "issue 3, Prove it",
    ),
    "K3-power": Promise(
        "After a power cut everything that was acknowledged is "
        "still there, and nothing is done twice.",
        "facts/mqtt-edge.md 6.4",
    ),
    "M-grants": Promise(
        "What is allowed or forbidden for good is listed, given and taken back.",
        "issue 3, Confirmation",
    ),
    "M-show-confirmation": Promise(
        "A call that needs a yes says what it asks, "
        "its token and how to go on, while the lens asks.",
        "issue 3, Shows 3",
    ),
    "M-show-story": Promise(
        "`glassd calls ID` tells one call's whole story: "
        "states with times, attempts, route, keys, delivery.",
        "issue 3, Shows 5",
    ),
    # ------------------------------------------------------------ rough hands
    "I11-cloud-may": Promise(
        "The cloud calls and is told of nothing private, on any way, until the owner names it.",
        "issue 11, Consent 9",
    ),
    "I11-folder-said": Promise(
        "A folder that the configuration names and that cannot be read is an "
        "error to the caller, a line in status and in doctor.",
        "issue 11, A bare Debian 19",
    ),
    "I11-registry-said": Promise(
        "A registry of the cloud that cannot be used is named in status with its "
        "reason, both hashes and what is used meanwhile.",
        "issue 11, A bare Debian 19",
    ),
    "I11-radio-said": Promise(
        "`glassd status` names what `glassd doctor` finds wrong with the "
        "radio, and its cure is the next thing to do.",
        "issue 11, A bare Debian 18",
    ),
    "I11-scope-inherited": Promise(
        "What is called through another tool is judged by the "
        "scope and origin of the first caller.",
        "issue 11, Consent 9",
    ),
    # ------------------------------------------------------------ the registry, a file a part
    **{name: promise for part in PARTS for name, promise in part.PROMISES.items()},
}

DECLINED: Final[dict[str, str]] = {
    row: reason for part in PARTS for row, reason in part.DECLINED.items()
}
"""Rows of the seed features that do not apply to an edge, and why."""
