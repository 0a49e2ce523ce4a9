"""Guesses the language of a sentence, so that it is spoken by a voice that knows it.

The script decides. Between the languages of a script decide the letters that each lacks, then
frequent words. Without evidence the language stays what it was.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

UNKNOWN: Final = "und"
"""The language of letters that no voice here knows; what BCP 47 calls undetermined."""
_SCRIPTS: Final = (
    (0x0370, 0x03FF, "el"),
    (0x0400, 0x052F, "ru"),
    (0x0530, 0x058F, "hy"),
    (0x0590, 0x05FF, "he"),
    (0x0600, 0x06FF, "ar"),
    (0x0750, 0x077F, "ar"),
    (0x08A0, 0x08FF, "ar"),
    (0x0900, 0x097F, "hi"),
    (0x0980, 0x09FF, "bn"),
    (0x0A00, 0x0A7F, "pa"),
    (0x0A80, 0x0AFF, "gu"),
    (0x0B00, 0x0B7F, "or"),
    (0x0B80, 0x0BFF, "ta"),
    (0x0C00, 0x0C7F, "te"),
    (0x0C80, 0x0CFF, "kn"),
    (0x0D00, 0x0D7F, "ml"),
    (0x0D80, 0x0DFF, "si"),
    (0x0E00, 0x0E7F, "th"),
    (0x0E80, 0x0EFF, "lo"),
    (0x0F00, 0x0FFF, "bo"),
    (0x1000, 0x109F, "my"),
    (0x10A0, 0x10FF, "ka"),
    (0x1100, 0x11FF, "ko"),
    (0x1200, 0x139F, "am"),
    (0x1780, 0x17FF, "km"),
    (0x1E00, 0x1EFF, "latin"),
    (0x1F00, 0x1FFF, "el"),
    (0x3040, 0x30FF, "ja"),
    (0x3130, 0x318F, "ko"),
    (0x3400, 0x4DBF, "zh"),
    (0x4E00, 0x9FFF, "zh"),
    (0xAC00, 0xD7AF, "ko"),
    (0xF900, 0xFAFF, "zh"),
    (0xFB50, 0xFDFF, "ar"),
    (0xFE70, 0xFEFF, "ar"),
    (0xFF66, 0xFF9F, "ja"),
    (0x20000, 0x3FFFF, "zh"),
)
"""Block of letters → the language that most often uses it."""
_WORDS: Final[Mapping[str, str]] = {
    "en": "the and is are of to in you not with for this that it was have will your on at from",
    "de": "der die das und ist nicht ein eine du ich mit für auf den dem zu sie wie heute von im",
    "fr": "le la les et est une un des vous je pas pour que dans du au avec sur ce il nous",
    "es": "el la los las es una un de que en por con para no está su del cómo hoy hay muy",
    "it": "il lo la gli un una di che non per con sono del della come oggi più nel alle tra",
    "pt": "os as um uma de que não para com do da em você está hoje mais como ao são",
    "nl": "de het een en is niet ik je van met voor op zijn dat maar ook naar om vandaag uur",
    "sv": "och är att en ett det inte jag du för på med som av den till har idag klockan",
    "da": "og er at en et det ikke jeg du for på med som af den til har dag hvad klokken",
    "nb": "og er at en et det ikke jeg du for på med som av den til har dag hva klokka",
    "fi": "ja on ei se että hän minä sinä mitä kun niin mutta oli olen tänään kello ovat",
    "pl": "na nie jest się do to że jak jesteś dzień dziś po czy ma są godzinie",
    "cs": "je na se že to do jak máš dnes ve po ale jsem není jsou si hodin",
    "sk": "je na sa že to do ako máš dnes vo po ale som nie sú si hodín",
    "hu": "az és van nem egy hogy ez de meg ma mi vagy már csak ön jó órakor",
    "ro": "și este nu un în de la cu pe ce mai din ești pentru să azi ora sunt",
    "tr": "ve bir bu için ile değil mi ne çok var bugün nasılsın saat da de olarak",
    "hr": "je na da se nije za što kako si danas su od sa bit će sati",
    "id": "dan yang di ini itu tidak untuk dengan anda apa hari saya ke dari akan pukul",
    "sw": "na ya wa kwa ni katika la za hii leo habari yako saa sana kuwa",
    "ca": "el la els és un una de que no per amb del com avui molt està les dels",
    "et": "ja on ei see et ma sa mis kui aga täna kell oma ka oli",
    "lv": "un ir nav tas ka es tu kas ar no uz par šodien pulksten kā",
    "lt": "ir yra nėra tai kad aš tu kas su iš šiandien kaip valandą",
    "ru": "и в не на что как это вы по для из за от все сегодня если",
    "uk": "і в не на що як це ви по для із за від все сьогодні якщо та або у є",
    "bg": "и в не на че как това се по за от са ще да или е към при",
    "sr": "и у не на да како ово се по за од су је или са",
    "mk": "и во не на да како ова се по за од се е или со",
    "vi": "và là của không có cho một bạn tôi này được hôm nay các những",
}
"""Frequent short words, for languages that share a script."""
_CYRILLIC: Final = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
_LETTERS: Final[Mapping[str, Mapping[str, str]]] = {
    "latin": {
        "en": "",
        "id": "",
        "sw": "",
        "de": "ßäöü",
        "fr": "çœæéêèëàùûâîïôü",
        "es": "ñáéíóúü",
        "it": "àèéìòùî",
        "pt": "ãõçáâàéêíóôúü",
        "nl": "éëïóöüè",
        "sv": "åäöé",
        "nb": "åæøéóòô",
        "da": "åæøéá",
        "fi": "äöåšž",
        "pl": "ąćęłńóśźż",
        "cs": "áčďéěíňóřšťúůýž",
        "sk": "áäčďéíĺľňóôŕšťúýž",
        "hu": "áéíóöőúüű",
        "ro": "ăâîșțşţ",
        "tr": "ğışçöüâî",
        "hr": "đčćšž",
        "ca": "àçèéíïòóúü·",
        "et": "õäöüšž",
        "lv": "āčēģīķļņšūž",
        "lt": "ąčęėįšųūž",
        "vi": "",
    },
    "ru": {
        "ru": _CYRILLIC + "ё",
        "uk": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
        "be": "абвгдеёжзійклмнопрстуўфхцчшыьэюя",
        "bg": "абвгдежзийклмнопрстуфхцчшщъьюя",
        "sr": "абвгдђежзијклљмнњопрстћуфхцчџш",
        "mk": "абвгдѓежзѕијклљмнњопрстќуфхцчџш",
        "mn": _CYRILLIC + "ёөү",
        "kk": _CYRILLIC + "ёәғқңөұүһі",
    },
    "ar": {"ar": "", "fa": "پچژگکی", "ur": "پچژگکیٹڈڑےںھہۃۓ"},
    "hi": {"hi": "", "mr": "ळ"},
    "bn": {"bn": "", "as": "ৰৱ"},
}
"""Script → its languages, the commonest first, and their letters beyond those all of them have."""
_ENOUGH: Final = 3
"""Evidence that a language needs: two words, or one with a letter of its own; a word counts 2."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_LISTS: Final = {
    language: frozenset(_WORDS.get(language, "").split())
    for languages in _LETTERS.values()
    for language in languages
}
_SPECIAL: Final = {script: frozenset("".join(own.values())) for script, own in _LETTERS.items()}
_VIETNAMESE: Final = frozenset("ăđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ") - set("ă")


def language_of(sentence: str, *otherwise: str) -> str:
    """Return the language as in BCP 47 (`de`, `zh`); one of `otherwise` where nothing decides.

    `otherwise`: the language of the text around it, then the configured one. The first that is
    written in the same letters counts; it wins a tie.
    """
    text = unicodedata.normalize("NFC", sentence).lower()
    scripts = Counter(script for script in map(_script_of, text) if script)
    if not scripts:
        return otherwise[0]
    if scripts["ja"]:  # Japanese is written with Chinese characters as well
        scripts["ja"] += scripts.pop("zh", 0)
    script = scripts.most_common(1)[0][0]
    if script not in _LETTERS:
        return script
    same = [each for each in otherwise if each in _LETTERS[script]]
    return _choose(script, text, next(iter((*same, *_LETTERS[script]))))


def parts(sentence: str) -> Iterator[str]:
    """Cut a sentence where its script changes, for an engine skips in silence the letters of a
    script it does not know. What is no letter stays with the letters before it.
    """
    kana = any(_script_of(ch) == "ja" for ch in sentence)
    begin, before = 0, ""
    for at, ch in enumerate(sentence):
        script = _script_of(ch)
        if script == "zh" and kana:
            script = "ja"
        if script and before and script != before:
            yield sentence[begin:at].strip()
            begin = at
        before = script or before
    yield sentence[begin:].strip()


def _script_of(character: str) -> str:
    """Return the language that stands for the letter's script; "" for what is no letter."""
    code = ord(character)
    if code < 0x250:
        return "latin" if character.isalpha() else ""
    for first, last, language in _SCRIPTS:
        if first <= code <= last:
            return language if unicodedata.category(character)[0] in "LMN" else ""
    return UNKNOWN if character.isalnum() and not 0x2B0 <= code <= 0x2FF else ""


def _choose(script: str, text: str, otherwise: str) -> str:
    """Choose between the languages of one script: one that lacks a letter of the text is out."""
    alphabets = _LETTERS[script]
    special = _SPECIAL[script]
    letters = {letter for letter in text if letter in special}
    able = [each for each, own in alphabets.items() if letters <= set(own)]
    if script == "latin" and any(letter in _VIETNAMESE for letter in text):
        able = ["vi"]
    words = _WORD.findall(text)
    marks = sum(letter in special for letter in text) if script == "latin" else _ENOUGH
    scores = {each: 2 * sum(word in _LISTS[each] for word in words) for each in able or alphabets}
    best = max(scores.values())
    if best + marks < _ENOUGH or scores.get(otherwise) == best:
        return otherwise
    return next(each for each, score in scores.items() if score == best)
