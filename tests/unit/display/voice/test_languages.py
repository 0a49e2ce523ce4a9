"""The language of a sentence, guessed from its letters and small words."""

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from edge.display.voice.languages import UNKNOWN, language_of, parts

SENTENCES = [
    ("en", "The train leaves in ten minutes."),
    ("en", "Your meeting with Anna is at three."),
    ("de", "Der Zug fährt in zehn Minuten ab."),
    ("de", "Ich bin gleich da, und du?"),
    ("de", "Guten Morgen, wie geht es dir heute in München?"),
    ("fr", "Le train part dans dix minutes."),
    ("fr", "Vous avez un rendez-vous à quinze heures."),
    ("es", "El tren sale en diez minutos."),
    ("es", "¿Cómo está usted?"),
    ("it", "Il treno parte tra dieci minuti."),
    ("it", "Come sono le previsioni per oggi?"),
    ("pt", "O trem sai em dez minutos, não se atrase."),
    ("nl", "De trein vertrekt over tien minuten, en je hebt een kaartje."),
    ("sv", "Tåget går om tio minuter och du är inte här."),
    ("fi", "Juna lähtee kymmenen minuutin päästä, mutta se on myöhässä."),
    ("pl", "Pociąg odjeżdża za dziesięć minut."),
    ("cs", "Vlak odjíždí za deset minut, řekl průvodčí."),
    ("hu", "A vonat tíz perc múlva indul, és őr is van."),
    ("ro", "Trenul pleacă în zece minute și este plin."),
    ("tr", "Tren on dakika içinde kalkıyor, bugün çok dolu."),
    ("vi", "Tàu sẽ khởi hành trong mười phút nữa, bạn có vé không?"),
    ("id", "Kereta akan berangkat dalam sepuluh menit dari stasiun ini."),
    ("ru", "Поезд отправляется через десять минут."),
    ("ru", "Привет, мир! Как дела?"),
    ("uk", "Потяг відправляється за десять хвилин, їдьмо."),
    ("be", "Цягнік адпраўляецца праз дзесяць хвілін, ён поўны."),
    ("sr", "Воз полази за десет минута, ђаци већ чекају."),
    ("kk", "Пойыз он минуттан кейін жүреді, қайда екенін білемін."),
    ("mn", "Галт тэрэг арван минутын дараа хөдөлнө, түр хүлээнэ үү."),
    ("el", "Το τρένο φεύγει σε δέκα λεπτά."),
    ("hy", "Գնացքը մեկնում է տասը րոպեից։"),
    ("ka", "მატარებელი ათ წუთში გადის."),
    ("he", "הרכבת יוצאת בעוד עשר דקות."),
    ("ar", "يغادر القطار خلال عشر دقائق."),
    ("fa", "قطار ده دقیقه دیگر حرکت می‌کند، پس عجله کنید گفت."),
    ("ur", "ٹرین دس منٹ میں روانہ ہوگی۔"),
    ("hi", "ट्रेन दस मिनट में चलेगी।"),
    ("mr", "गाडी दहा मिनिटांत निघेल, वेळ झाली."),
    ("bn", "ট্রেন দশ মিনিটে ছাড়বে।"),
    ("pa", "ਰੇਲਗੱਡੀ ਦਸ ਮਿੰਟਾਂ ਵਿੱਚ ਚੱਲੇਗੀ।"),
    ("gu", "ટ્રેન દસ મિનિટમાં ઉપડશે."),
    ("ta", "ரயில் பத்து நிமிடங்களில் புறப்படும்."),
    ("te", "రైలు పది నిమిషాల్లో బయలుదేరుతుంది."),
    ("kn", "ರೈಲು ಹತ್ತು ನಿಮಿಷಗಳಲ್ಲಿ ಹೊರಡುತ್ತದೆ."),
    ("ml", "ട്രെയിൻ പത്ത് മിനിറ്റിനുള്ളിൽ പുറപ്പെടും."),
    ("si", "දුම්රිය මිනිත්තු දහයකින් පිටත් වේ."),
    ("th", "รถไฟจะออกในอีกสิบนาที"),
    ("lo", "ລົດໄຟຈະອອກໃນອີກສິບນາທີ"),
    ("km", "រថភ្លើងនឹងចេញក្នុងរយៈពេលដប់នាទី"),
    ("my", "ရထားသည် ဆယ်မိနစ်အတွင်း ထွက်ခွာမည်။"),
    ("am", "ባቡሩ በአስር ደቂቃ ውስጥ ይነሳል።"),
    ("zh", "火车十分钟后开。"),
    ("ja", "電車は十分後に出ます。"),
    ("ko", "기차는 십 분 후에 출발합니다."),
]
_ELSE = "zz"


@pytest.mark.parametrize(("language", "sentence"), SENTENCES)
def test_a_sentence_is_spoken_in_its_own_language(language, sentence):
    assert language_of(sentence, _ELSE) == language


@pytest.mark.parametrize(
    "sentence", ["", "15:30", "42 %", "…!?", "😀", "OK", "Anna Weber", "NASA 2026"]
)
def test_what_has_no_evidence_stays_in_the_language_before_it(sentence):
    assert language_of(sentence, "fr") == "fr"


def test_a_name_in_another_script_does_not_change_the_language():
    assert language_of("The word Привет is of Russian origin.", "de") == "en"
    assert language_of("Встреча с John в 15:30.", "en") == "ru"


def test_letters_shared_by_two_languages_leave_the_one_that_was_spoken():
    assert language_of("Добре, дякую", "uk") == "uk"
    assert language_of("Guten Tag", "de") == "de"
    assert language_of("på", "nb") == "nb"


def test_decomposed_accents_count_like_composed_ones():
    assert language_of("el tren estа\u0301 aqui\u0301".replace("а", "a"), _ELSE) == "es"


@given(st.text(max_size=200))
def test_any_text_has_a_language(text):
    assert language_of(text, "en")


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "Meeting with Иван (the new one) at 15:30.",
            ["Meeting with", "Иван (", "the new one) at 15:30."],
        ),
        ("5 € or 15:30", ["5 € or 15:30"]),
        ("15:30", ["15:30"]),
        ("電車は十分後に出ます。", ["電車は十分後に出ます。"]),
        ("火车十分钟后开。", ["火车十分钟后开。"]),
        ("комп\u02bcютер", ["комп\u02bcютер"]),
        ("नमस्ते John", ["नमस्ते", "John"]),
        ("Pay ٥٠ or Ⅷ", ["Pay", "٥٠", "or", "Ⅷ"]),
        ("ᏣᎳᎩ and 𐍈", ["ᏣᎳᎩ", "and", "𐍈"]),
    ],
)
def test_a_sentence_is_cut_where_its_script_changes(sentence, expected):
    assert list(parts(sentence)) == expected


def test_each_part_has_a_language_written_in_its_letters():
    """The language around it, else the configured one, else the commonest of that script."""
    assert language_of("John", "ru", "de") == "de"
    assert language_of("John", "fr", "de") == "fr"
    assert language_of("John", "ru", "el") == "en"
    assert language_of("Иван", "bg", "en") == "bg"
    assert language_of("ᏣᎳᎩ", "en") == UNKNOWN


@given(st.text(alphabet="ab 1.,éЖжя漢かع-", max_size=60))
def test_no_letter_is_lost_where_a_sentence_is_cut(text):
    assert "".join("".join(parts(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("de", "Wie geht es dir?"),
        ("de", "Das Taxi ist da."),
        ("fr", "Bonjour à tous"),
        ("es", "Buenos días, ¿qué tal?"),
        ("it", "Dove sono i bambini adesso?"),
        ("pt", "Onde está a minha mala?"),
        ("nl", "Waar is mijn koffer?"),
        ("da", "Hej, hvad laver du?"),
        ("nb", "Hei, hva gjør du?"),
        ("pl", "Dzień dobry"),
        ("cs", "Ne, to je v pořádku"),
        ("id", "Di mana anda sekarang?"),
    ],
)
def test_a_few_words_of_a_person_are_enough(language, sentence):
    assert language_of(sentence, "en") == language


def test_english_text_stays_english_next_to_so_many_lists_of_words():
    """The documents of this project, also those parts of sentences that are left without code."""
    text = "\n\n".join(
        path.read_text(encoding="utf-8") for path in sorted(Path("docs").glob("*.md"))
    )
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found = re.split(r"(?<=[.!?])\s+|\n\n", re.sub(r"`[^`]*`|\|", "", text))
    pieces = [piece for piece in found if 15 < len(piece) < 200]
    assert len(pieces) > 500
    wrong = [piece for piece in pieces if language_of(piece, "en") != "en"]
    assert len(wrong) < len(pieces) / 200, wrong
    silent = [piece for piece in pieces if language_of(piece, "de") != "en"]
    assert len(silent) < len(pieces) / 5
