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
    "en": """
    the and is are of to in you not with for this that it was have will your on at from be as by
    or an if can all no has we they he she but what when who how there which their would been were
    more than about into out up do does my me his her our us them then its only also time some any
    after before over today tomorrow now here please could should may must just like because very
    so did done get got make new one two a i
    """,
    "de": """
    der die das und ist nicht ein eine du ich mit für auf den dem zu sie wie heute von im es er
    wir ihr sich auch als an bei nach aus um am zum zur des einen einem einer eines kein keine hat
    haben wird werden wurde sind war sein kann können muss soll nur noch schon oder aber wenn dann
    dass weil was wer wo hier dort über unter vor durch gegen ohne bis mehr sehr alle diese dieser
    dieses mein dein ihre unsere morgen gestern jetzt uhr bitte danke
    """,
    "fr": """
    le la les et est une un des vous je pas pour que dans du au avec sur ce il nous de qui ne se
    en par elle ils on plus mais ou où sont être avoir avez cette ces cet son sa ses mon ma mes
    votre vos notre leur leurs aux comme tout tous toute fait peut bien aussi très même si sans
    sous entre après avant depuis pendant chez ici aujourd hui demain hier maintenant heure heures
    quand comment pourquoi quel quelle été était sera doit merci impossible lors fichier aucun
    """,
    "es": """
    el la los las es una un de que en por con para no está su del cómo hoy hay muy y se lo al como
    más pero sus le ya este esta estos estas ese esa eso si sin sobre también me hasta donde quien
    desde todo todos toda nos uno ni contra otros otra son fue ser era han tiene puede pueden debe
    hacer cuando ahora mañana ayer aquí hora horas qué cuál porque entre después antes usted
    ustedes tu mi gracias
    """,
    "it": """
    il lo la gli un una di che non per con sono del della come oggi più nel alle tra i le è ed a
    da in su si al dal dalla dei degli delle ai dai sul sulla nella nei questo questa questi
    queste quello quella ma se anche ci mi ti vi ne suo sua suoi mio tuo nostro loro ha hanno
    essere stato stata può possono deve fare quando dove chi cosa perché dopo prima ora ore adesso
    domani ieri qui molto tutto tutti ogni senza solo già ancora grazie
    """,
    "pt": """
    os as um uma de que não para com do da em você está hoje mais como ao são a é por no na dos
    das nos nas pelo pela se mas ou seu sua seus suas meu minha este esta isso isto esse essa ele
    ela eles foi ser tem têm pode podem deve fazer quando onde quem qual porque também já só muito
    todos todas entre depois antes agora amanhã ontem aqui hora horas sem sobre até obrigado
    ficheiro arquivo
    """,
    "nl": """
    de het een en is niet ik je van met voor op zijn dat maar ook naar om vandaag uur te in dit
    die er aan als bij door uit over tot of wordt worden werd heeft hebben had kan kunnen moet zal
    wil was waren geen wel nog al dan meer zo wat wie waar hoe waarom wanneer hier daar deze ze
    zij wij we hij haar hun mijn jouw uw onze alle alleen zonder onder tussen na morgen gisteren
    nu bent ben graag dank
    """,
    "sv": """
    och är att en ett det inte jag du för på med som av den till har idag klockan i om var han hon
    vi de sig så men från eller när kan ska vill vara blir blev hade sin sina sitt min din er ni
    nu här där vad vem hur varför alla mycket mer än efter före över under utan också bara kunde
    finns måste inga ingen något denna detta dessa imorgon igår tack
    """,
    "da": """
    og er at en et det ikke jeg du for på med som af den til har dag hvad klokken i om var han hun
    vi de sig så men fra eller når kan skal vil være blev bliver havde sin sine min din jer nu her
    der hvem hvordan hvorfor alle meget mere end efter før over under uden også kun kunne ingen
    noget denne dette disse morgen går tak ud op blevet eksisterer mig dig os hvis
    """,
    "nb": """
    og er at en et det ikke jeg du for på med som av den til har dag hva klokka i om var han hun
    vi de seg så men fra eller når kan skal vil være ble blir hadde sin sine min din dere nå her
    der hvem hvordan hvorfor alle mye mer enn etter før over under uten også bare kunne ingen noe
    denne dette disse morgen går takk ut opp blitt meg deg oss hvis
    """,
    "fi": """
    ja on ei se että hän minä sinä mitä kun niin mutta oli olen tänään kello ovat tai jos kuin
    myös vain jo nyt en et emme eivät ole olla tämä tämän tässä sen siitä joka jotka mikä missä
    miten miksi kuka kaikki hyvin vielä enää voi voit voidaan pitää täytyy kanssa ilman ennen
    jälkeen alle yli huomenna eilen kiitos voitu käytä
    """,
    "pl": """
    na nie jest się do to że jak jesteś dzień dziś po czy ma są godzinie i od za dla przez przy
    przed pod nad bez ale lub oraz ten ta te tego tej tym co kto gdzie kiedy dlaczego który która
    które być był była było będzie może można mam masz jego jej ich mój twój już jeszcze tylko też
    tak bardzo wszystko każdy jutro wczoraj teraz tutaj dziękuję
    """,
    "cs": """
    je na se že to do jak máš dnes ve po ale jsem není jsou si hodin a od za pro při před pod nad
    bez nebo který která které být byl byla bylo bude může musí mám má jeho její jejich můj tvůj
    už ještě jen také tak velmi všechno každý zítra včera teď tady co kdo kde kdy proč tento tato
    toto této podle pokud než děkuji
    """,
    "sk": """
    je na sa že to do ako máš dnes vo po ale som nie sú si hodín a od za pre pri pred pod nad bez
    alebo ktorý ktorá ktoré byť bol bola bolo bude môže musí mám má jeho jej ich môj tvoj už ešte
    len tiež tak veľmi všetko každý zajtra včera teraz tu čo kto kde kedy prečo tento táto toto
    podľa keď ak než ďakujem
    """,
    "hu": """
    az és van nem egy hogy ez de meg ma mi vagy már csak ön jó órakor a is el ki be fel le ha mint
    volt lesz lehet kell után előtt alatt felett között nélkül szerint ezt azt ezek azok itt ott
    most holnap tegnap mit hol mikor miért hogyan minden nagyon még nincs sem vannak voltak én te
    ő ti ők köszönöm
    """,
    "ro": """
    și este nu un în de la cu pe ce mai din ești pentru să azi ora sunt a al ai ale cea cel care
    ca dar sau dacă când unde cine cum prin după înainte sub peste fără între acest această acesta
    aceasta fi fost era va vor poate trebuie are au am lui ei lor meu tău foarte toate toți doar
    acum mâine ieri aici mulțumesc se
    """,
    "tr": """
    ve bir bu için ile değil mi ne çok var bugün nasılsın saat da de olarak şu ben sen biz siz
    onlar ama veya ya eğer gibi daha en her tüm hiç yok olan oldu olur olacak kadar sonra önce
    şimdi yarın dün burada nerede kim nasıl neden ki mu mı mü sadece yeni iyi lütfen teşekkürler
    """,
    "hr": """
    je na da se nije za što kako si danas su od sa bit će sati i do po pri pred pod nad bez ali
    ili koji koja koje biti bio bila bilo bude može mora imam ima njegov njezin njihov moj tvoj
    već još samo također tako vrlo sve svaki sutra jučer sada ovdje tko gdje kada zašto ovaj ova
    ovo ako nego hvala nisu ne iz
    """,
    "id": """
    dan yang di ini itu tidak untuk dengan anda apa hari saya ke dari akan pukul adalah pada dalam
    oleh sebagai atau juga bisa dapat harus sudah belum telah kita kami mereka dia ada jika karena
    saat setelah sebelum sekarang besok kemarin sini mana siapa bagaimana mengapa semua lebih
    sangat hanya lain tersebut terima kasih berkas bukan
    """,
    "sw": "na ya wa kwa ni katika la za hii leo habari yako saa sana kuwa",
    "ca": """
    el la els és un una de que no per amb del com avui molt està les dels i en a al als si més
    però aquest aquesta aquests això són ser ha han va pot poden cal quan on qui què perquè també
    ja només tot tots totes entre després abans ara demà ahir aquí hora hores sense sobre fins seu
    seva gràcies fitxer
    """,
    "et": """
    ja on ei see et ma sa mis kui aga täna kell oma ka oli või ning mida kes kus millal miks
    kuidas kõik väga veel juba nüüd siin seal enne pärast all üle ilma olla olema võib peab saab
    pole seda selle need neid ta te me nad homme eile palun tänan kas tuleb
    """,
    "lv": """
    un ir nav tas ka es tu kas ar no uz par šodien pulksten kā vai bet ja kad kur kurš kāpēc tā to
    tie šis šī ļoti vēl jau tikai arī pēc pirms zem virs bez var būt bija būs mēs jūs viņš viņa
    viņi rīt vakar tagad šeit paldies
    """,
    "lt": """
    ir yra nėra tai kad aš tu kas su iš šiandien kaip valandą ar bet jei kai kur kodėl į ant apie
    po prieš be per už nuo iki jis ji jie mes jūs šis ši tas ta buvo bus gali turi būti labai dar
    jau tik taip pat visi rytoj vakar dabar čia ačiū nepavyko
    """,
    "ru": "и в не на что как это вы по для из за от все сегодня если",
    "uk": "і в не на що як це ви по для із за від все сьогодні якщо та або у є",
    "bg": "и в не на че как това се по за от са ще да или е към при",
    "sr": "и у не на да како ово се по за од су је или са",
    "mk": "и во не на да како ова се по за од е или со",
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
