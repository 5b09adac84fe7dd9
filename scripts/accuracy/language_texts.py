"""Texts of five languages, generated from the word lists and templates of grammar/LANGUAGE.txt.

A file of the grammar has classes: a line `[name]`, and entries behind it, one on each line or several with ` | ` between
them. An entry is a template:

    {person}   an entry of the class; {person2} is another one that differs from it
    {person.1} the second form of the same entry, whose forms stand with `/` between them (cases, tenses, opposites)
    {3-98}     a number of that range
    <a|b|c>    a in a statement, b where it is negated, c in a question; {a|b|c} chooses a slot in the same way

Each entry of the class `short` makes a post, of `sentence` a sentence of a longer text, of `report` a text of numbers.
The slots of a post or a report are kept in a Draft, so that an edit can draw one of them again.
"""

import pathlib
import re

LANGUAGES = {"ja": "Japanese", "th": "Thai", "ko": "Korean", "ru": "Russian", "ar": "Arabic"}
STOP = {"ja": "。", "th": "", "ko": ".", "ru": ".", "ar": "."}
QUESTION = {"ja": "。", "th": "", "ko": "?", "ru": "?", "ar": "؟"}
BETWEEN = {"ja": "", "th": " ", "ko": " ", "ru": " ", "ar": " "}
NUMBERS = {"count", "money", "degree", "low", "percent", "score"}
# Classes whose forms are two sides of one matter, of which a draft takes either.
SIDES = {"opposite", "side", "right", "twin"}
RANGE = re.compile(r"\{(\d+)-(\d+)\}")
SLOT = re.compile(r"\{([a-z]+\d*)(?:\.(\d))?\}")
MOOD = re.compile(r"<([^<>]*)\|([^<>]*)\|([^<>]*)>")
MOOD_SLOT = re.compile(r"\{([\w.]+)\|([\w.]+)\|([\w.]+)\}")
NICKS = ["anna_k", "blue_sky", "cafe24", "dario77", "eva", "fox_news_fan", "green_tea", "hiro", "ivan1990", "jazzcat", "kuma"]
STATEMENT, NEGATION, QUESTION_MOOD = 0, 1, 2


class Grammar:
    """The classes of one language, and how its sentences are put together."""

    def __init__(self, language):
        self.language = language
        self.classes = {"views": ["{0-9}", "{10-99}", "{100-999}", "{1000-99999}"], "nick": NICKS}
        path = pathlib.Path(__file__).parent / "grammar" / f"{language}.txt"
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("[") and line.endswith("]"):
                entries = self.classes.setdefault(line[1:-1], [])
            elif line and not line.startswith("#"):
                entries += [line] if "<" in line else line.split(" | ")

    def draw(self, name, random, topic=None):
        """The forms of one entry of a class. The entries of a topic are a part of the class that the topic chooses."""
        entries = self.classes[name]
        if topic is not None and len(entries) > 8:
            if name not in topic:
                topic[name] = random.sample(entries, len(entries) * 2 // 5)
            entries = topic[name]
        entry = random.choice(entries)
        return Draft(self, entry, random, topic).filled().split("/")

    def sentence(self, random, topic=None):
        """One sentence of a longer text, with the mark that ends it."""
        return Draft(self, random.choice(self.classes["sentence"]), random, topic).text()

    def finished(self, text, stop):
        """Particles in the form that the word before asks for, a capital at the beginning, and the mark of the end."""
        if self.language == "ko":
            text = with_particles(text)
        if self.language == "ru":
            text = re.sub(r"^(\W*)(\w)", lambda found: found[1] + found[2].upper(), text)
            text = re.sub(r"\. (\w)", lambda found: ". " + found[1].upper(), text)
        return text + stop


def with_particles(text):
    """Korean: `책을(를)` becomes `책을` and `지도을(를)` becomes `지도를`, by the last consonant of the syllable before."""

    def chosen(found):
        last = (ord(found[1]) - 0xAC00) % 28 if "가" <= found[1] <= "힣" else 0
        if found[2] == "(으)로":
            return found[1] + ("으로" if last not in (0, 8) else "로")
        closed, opened = found[2][0], found[2][2]
        return found[1] + (closed if last else opened)

    return re.sub(r"(\S)(을\(를\)|이\(가\)|은\(는\)|과\(와\)|\(으\)로)", chosen, text)


class Draft:
    """A template and what stands in its slots."""

    def __init__(self, grammar, template, random, topic=None):
        self.grammar, self.mood = grammar, STATEMENT
        self.template = RANGE.sub(lambda found: str(random.randint(int(found[1]), int(found[2]))), template)
        self.slots, self.flipped = {}, set()
        for name in self.names():
            self.redraw(name, random, topic)
            if kind(name) in SIDES and random.random() < 0.5:
                self.flipped.add(name)

    def copy(self):
        other = object.__new__(Draft)
        other.__dict__.update(self.__dict__, slots=dict(self.slots), flipped=set(self.flipped))
        return other

    def names(self):
        """The slots in the order of the template, each once."""
        alternatives = MOOD_SLOT.sub(lambda found: "".join("{%s}" % name for name in found.groups()), self.template)
        return list(dict.fromkeys(name for name, _form in SLOT.findall(alternatives)))

    def redraw(self, name, random, topic=None):
        """Draws a slot anew, other than it was and other than the other slots of its class."""
        taken = [forms for other, forms in self.slots.items() if kind(other) == kind(name)]
        for _ in range(50):
            self.slots[name] = self.grammar.draw(kind(name), random, topic)
            if self.slots[name] not in taken:
                return

    def filled(self):
        """The template with its slots filled."""
        template = MOOD.sub(lambda found: found[self.mood + 1], self.template)
        template = MOOD_SLOT.sub(lambda found: "{%s}" % found[self.mood + 1], template)
        return SLOT.sub(self.slot_text, template)

    def slot_text(self, found):
        name, form = found.groups()
        forms = self.slots[name]
        return forms[int(form) if form else int(name in self.flipped)]

    def text(self):
        stop = QUESTION if self.mood == QUESTION_MOOD else STOP
        return self.grammar.finished(self.filled().replace("\\n", "\n"), stop[self.grammar.language])

    def has_moods(self):
        return "<" in self.template


def kind(name):
    """The class of a slot: `person` of `person2`."""
    return name.rstrip("0123456789")
