"""Edits of a generated document, each of a kind of which it is known whether a reader would call one text superfluous.

An edit is a function of a random generator and a Document. It returns the text of the variant, or None where the
document has nothing to edit. SAME and DIFFERENT list the kinds, the lengths that they apply to and, where they do not
apply to all of them, the languages.
"""

import dataclasses
import re
import unicodedata

from language_texts import BETWEEN, NEGATION, NUMBERS, QUESTION_MOOD, SIDES, STATEMENT, Grammar, kind


@dataclasses.dataclass
class Document:
    """A text and what it was made of.

    A short text or a report has a draft, any other text has sentences. A text in a frame has a head and a foot as well,
    and the counter of a page is a draft that stands behind the text.
    """

    grammar: Grammar
    length: str
    draft: object = None
    sentences: tuple = ()
    head: str = ""
    foot: str = ""
    counter: object = None

    @property
    def language(self):
        return self.grammar.language

    def text(self, sentences=None):
        if self.draft is not None:
            return self.draft.text()
        counter = "\n" + self.counter.filled() if self.counter else ""
        return self.head + joined(self.language, sentences or self.sentences) + counter + self.foot


def joined(language, sentences):
    """Sentences as paragraphs of five."""
    paragraphs = [sentences[start : start + 5] for start in range(0, len(sentences), 5)]
    return "\n".join(BETWEEN[language].join(paragraph) for paragraph in paragraphs)


def gaps(text):
    """Places between two letters, neither of them a combining mark, a digit or of the Latin alphabet."""
    plain = [unicodedata.category(c)[0] == "L" and not c.isascii() and c not in "ำะาๅ" for c in text]
    return [i for i in range(1, len(text)) if plain[i - 1] and plain[i] and text[i - 1] not in "เแโใไ"]


def with_inserted(text, places, pieces):
    """The text with a piece in front of each place."""
    for place, piece in sorted(zip(places, pieces), reverse=True):
        text = text[:place] + piece + text[place:]
    return text


def white_space(random, document):
    text = document.text()
    if document.language in ("ja", "th"):
        places = gaps(text)
        places = random.sample(places, max(1, len(places) // random.randint(10, 30)))
        return with_inserted(text, places, [random.choice([" ", "\n", "\u3000", "\n\n"]) for _ in places])
    wider = lambda found: random.choice([" ", " ", "  ", "\n", "\u00a0", "\t", "\n\n"])
    return random.choice(["", " ", "\n"]) + re.sub(" ", wider, text) + random.choice(["\n", "  "])


def punctuation(random, document):
    text, draw = document.text(), document.grammar.draw
    way = random.randrange(3)
    if way == 0:
        return text.rstrip("。.") + draw("end", random)[0]
    if way == 1:
        opening, closing = draw("quotes", random)
        return opening + text + closing
    return re.sub(r"(?<=[^\W\d])([、،。.,])(?!\d)", lambda found: found[1] * random.randint(1, 3), text) + draw("end", random)[0]


def emoji(random, document):
    added = "".join(random.choices("😀😂😍👍🎉🔥🌸🙏😭🚀🐱🍜", k=random.randint(1, 4)))
    return document.text() + " " + added if random.random() < 0.7 else added + document.text()


def link(random, document):
    address = "https://%s/%s" % (
        random.choice(["t.co", "example.com/news", "bit.ly", "blog.example.org/2024"]),
        "".join(random.choices("abcdefghkmnpqrstuvwxyz23456789", k=8)),
    )
    return document.text() + random.choice([" ", "\n"]) + address


def case(random, document):
    return random.choice([str.upper, str.lower, str.title])(document.text())


def unicode_form(_random, document):
    """NFD; in Thai, where NFD changes nothing, the vowel ำ as its two parts."""
    return unicodedata.normalize("NFD", document.text()).replace("\u0e33", "\u0e4d\u0e32")


HALF = {unicodedata.normalize("NFKC", chr(code)): chr(code) for code in range(0xFF61, 0xFF9E)}
HALF.update({"\u3099": "\uff9e", "\u309a": "\uff9f"})


def width(random, document):
    """Japanese: katakana and marks of half width, or Latin letters, digits and signs of full width."""

    def halved(found):
        return "".join(HALF.get(c, c) for c in unicodedata.normalize("NFD", found[0]))

    text = document.text()
    wide = re.sub("[!-~]", lambda found: chr(ord(found[0]) + 0xFEE0), text)
    return wide if wide != text and random.random() < 0.4 else re.sub("[ァ-ー、。「」]+", halved, text)


def invisible(random, document):
    text = document.text()
    if document.language == "ar":
        parts = re.split("( )", text)
        for _ in range(random.randint(1, 6)):
            place = random.randrange(0, len(parts), 2)
            opening, closing = random.choice([("\u200f", ""), ("\u202b", "\u202c"), ("\u200e", ""), ("\ufeff", ""), ("\u2067", "\u2069")])
            parts[place] = opening + parts[place] + closing
        return "".join(parts)
    places = gaps(text)
    places = random.sample(places, min(len(places), random.randint(1, 8)))
    return with_inserted(text, places, [random.choice("\u200b\u200d\ufeff") for _ in places])


def optional_marks(random, document):
    """Russian: е for ё. Arabic: the vowel signs of some words."""
    text = document.text()
    if document.language == "ru":
        return text.replace("ё", "е").replace("Ё", "Е")
    marked = dict(entry.split("/") for entry in document.grammar.classes["marks"])
    return re.sub(r"\w+", lambda found: marked.get(found[0], found[0]), text)


def repost_head(random, document):
    return "RT @%s: " % document.grammar.draw("nick", random)[0] + document.text()


def repost_tail(random, document):
    return document.text() + " " + document.grammar.draw("tail", random)[0]


def sentence_cut(_random, document):
    return document.text(document.sentences[:-1])


def sentence_added(random, document):
    place = random.randrange(len(document.sentences) + 1)
    added = document.grammar.sentence(random)
    return document.text([*document.sentences[:place], added, *document.sentences[place:]])


def word_changed(random, document):
    """An adverb more in one sentence or, where words have spaces between them, a word less."""
    sentences, place = list(document.sentences), random.randrange(len(document.sentences))
    words = sentences[place].split(" ")
    inner = [i for i in range(1, len(words) - 1) if words[i].isalpha() and len(words[i]) > 3]
    adverb = document.grammar.draw("adverb", random)[0]
    if document.language in ("ja", "th"):
        sentences[place] = adverb + BETWEEN[document.language] + sentences[place]
    elif not inner:
        return None
    elif random.random() < 0.5:
        words.insert(random.choice(inner), adverb)
        sentences[place] = " ".join(words)
    else:
        del words[random.choice(inner)]
        sentences[place] = " ".join(words)
    return document.text(sentences)


def page_counters(random, document):
    """Other numbers in the counter of a page, which the original has already."""
    counter = document.counter.copy()
    for name in counter.names():
        counter.redraw(name, random)
    return dataclasses.replace(document, counter=counter).text()


DIGITS = {"ja": "０１２３４５６７８９", "ko": "０１２３４５６７８９", "ar": "٠١٢٣٤٥٦٧٨٩", "th": "๐๑๒๓๔๕๖๗๘๙"}


def digits(_random, document):
    return document.text().translate(str.maketrans("0123456789", DIGITS[document.language]))


def redrawn(random, document, wanted, how_many=1):
    """The document with slots of these classes drawn anew: one, or all where how_many is None."""
    draft = document.draft.copy()
    names = [name for name in draft.names() if kind(name) in wanted]
    if not names:
        return None
    for name in names if how_many is None else random.sample(names, how_many):
        draft.redraw(name, random)
    return draft.text()


def number(random, document):
    return redrawn(random, document, NUMBERS)


def date(random, document):
    return redrawn(random, document, {"date"})


def person(random, document):
    return redrawn(random, document, {"person"})


def place(random, document):
    return redrawn(random, document, {"city"})


def report_numbers(random, document):
    return redrawn(random, document, NUMBERS, None)


def other_report(random, document):
    return redrawn(random, document, NUMBERS | {"city", "date"}, None)


def in_mood(document, mood):
    draft = document.draft.copy()
    draft.mood = mood
    return draft.text() if draft.has_moods() else None


def negation(_random, document):
    return in_mood(document, NEGATION)


def question(_random, document):
    return in_mood(document, QUESTION_MOOD)


def flipped(document, wanted):
    draft = document.draft.copy()
    names = {name for name in draft.names() if kind(name) in wanted}
    draft.flipped ^= names
    return draft.text() if names else None


def opposite(_random, document):
    return flipped(document, SIDES - {"twin"})


def one_letter(_random, document):
    return flipped(document, {"twin"})


def subject_and_object(_random, document):
    draft = document.draft.copy()
    if "person2" not in draft.slots:
        return None
    draft.slots["person"], draft.slots["person2"] = draft.slots["person2"], draft.slots["person"]
    return draft.text()


def other_body(random, document):
    """Other sentences under the same navigation."""
    return document.text([document.grammar.sentence(random) for _ in document.sentences])


ALL = ("short", "medium", "long")
WITH_REPORTS = (*ALL, "report")
SAME = {
    "white space": (white_space, ALL, None),
    "punctuation": (punctuation, WITH_REPORTS, None),
    "emoji added": (emoji, WITH_REPORTS, None),
    "link added": (link, WITH_REPORTS, None),
    "case": (case, ALL, ("ru",)),
    "Unicode form": (unicode_form, ALL, None),
    "width of characters": (width, ALL, ("ja",)),
    "invisible characters": (invisible, ALL, None),
    "optional marks": (optional_marks, ALL, ("ru", "ar")),
    "repost head": (repost_head, WITH_REPORTS, None),
    "repost tail": (repost_tail, WITH_REPORTS, None),
    "digits of another script": (digits, ("short", "report", "long"), tuple(DIGITS)),
    "last sentence cut": (sentence_cut, ("long",), None),
    "sentence added": (sentence_added, ("long",), None),
    "word added or dropped": (word_changed, ("long",), None),
    "page counters": (page_counters, ("medium", "long", "frame"), None),
}
DIFFERENT = {
    "number": (number, ("short",), None),
    "date": (date, ("short",), None),
    "numbers of a report": (report_numbers, ("report",), None),
    "another report of the template": (other_report, ("report",), None),
    "negation": (negation, ("short",), None),
    "question": (question, ("short",), None),
    "opposite": (opposite, ("short",), None),
    "person": (person, ("short",), None),
    "place": (place, ("short",), None),
    "subject and object": (subject_and_object, ("short",), None),
    "one letter": (one_letter, ("short",), None),
    "other text in a frame": (other_body, ("frame",), None),
}
