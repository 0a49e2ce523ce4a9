"""What the everyday tools promise beyond the rows of the seed features."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I15-configured": Promise(
        "A tool that needs settings is not offered before they are set, "
        "and says which are missing.",
        "issue 15",
    ),
    "I15-secrets-kept": Promise(
        "Passwords, keys and tokens are in no log, bundle, command line, environment or answer, "
        "also if a server repeats them.",
        "issue 15",
    ),
    "S4-59": Promise(
        "The 13 tools of the catalogue are there, each offline as far as it can: reminder, "
        "contacts, pager, web, email, context, continuum, domaindoc, registry:invoke, maps, kasa, "
        "punchclock, weather.",
        "seed S4-59",
    ),
    "I15-offline": Promise(
        "Without a network each everyday tool answers from what it has, or says in one sentence "
        "what it cannot reach.",
        "issue 15, Shows 3",
    ),
    "I15-three-ways": Promise(
        "Each everyday tool is used from the lens by a sentence, from the command line and from an "
        "MCP client, on mock glasses, against its real server or simulator.",
        "issue 15, Shows",
    ),
    "I15-sentences": Promise(
        "Each everyday tool has 20 sample sentences, and each becomes the call beside it.",
        "issue 15, Build",
    ),
    "I15-found": Promise(
        "With all tools configured, five natural questions find each everyday tool.",
        "issue 15, Shows 6",
    ),
    "I15-workers": Promise(
        "The network part of a tool runs in a child process with a deadline; what may have been "
        "done when it was ended is reported.",
        "issue 15",
    ),
    "I15-mail-reading": Promise(
        "Mail is listed, searched and read as plain text within the deadline, of 2,000 messages "
        "too; reading marks nothing as read and fetches no attachment.",
        "issue 15",
    ),
    "I15-mail-hostile": Promise(
        "A hostile message neither hides the others nor takes more than limited time and space.",
        "issue 15",
    ),
    "I15-mail-secrets": Promise(
        "The mail password is read by the child at each use, sent only over verified TLS, and is "
        "in no error.",
        "issue 15",
    ),
    "I15-mail-once": Promise(
        "A mail is sent once however often its call is repeated, after a yes; an unknown fate is "
        "told and never retried by itself.",
        "issue 15",
    ),
    "I15-mail-notice": Promise(
        "New mail of chosen senders is announced once, over restarts, lost connections and absent "
        "glasses; no header passes one sender off as another, and without chosen senders nothing "
        "runs.",
        "issue 15",
    ),
    "I15-mail-injection": Promise(
        "No field of a mail can add a header or a recipient.", "issue 15"
    ),
    "I15-mail-offline": Promise(
        "Without a network unread mail is the last known list with its age, encrypted on disk; "
        "sending says in one sentence that nothing was sent.",
        "issue 15",
    ),
}

DECLINED: Final[dict[str, str]] = {}
