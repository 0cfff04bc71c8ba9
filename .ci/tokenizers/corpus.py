"""Hostile strings for tokenizers, the same in every run: corpus.py N SEED prints N of them, a JSON string a line; a line that is an
object {"base64": …} is bytes that are no UTF-8. Where Django is installed its message catalogues give text of some ninety languages."""

import base64
import glob
import gettext
import json
import os
import random
import string
import sys
import unicodedata

SURROGATES = range(0xD800, 0xE000)
EVERY = [chr(c) for c in range(0x110000) if c not in SURROGATES]
ASSIGNED = [c for c in EVERY if unicodedata.category(c) not in ("Cn", "Co")]
MARKS = [c for c in ASSIGNED if unicodedata.category(c)[0] == "M"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2003", "\u200b", "\u2028", "\x85", "\x0b", "\x0c", "\u1680", "\u180e", "\ufeff", "\u202f", "\x1c", "\x1f"]
DIGITS = list(string.digits) + list("٠١٩०९²½Ⅳ㊿𝟘𝟗〇一௧①๓")
EMOJI = ["👨‍👩‍👧‍👦", "🏳️‍🌈", "👩🏽‍💻", "🇫🇷", "🇯🇵", "❤️‍🔥", "😀", "🤷🏿‍♂️", "1️⃣", "#️⃣", "☺️", "☺", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "⌛️", "\u200d", "\ufe0f", "\ufe0e"]
WORDS = ["hello", "World", "HTTPServer", "camelCase", "snake_case", "don't", "DON'T", "it'S", "we'LL", "'ſ", "x=1", "(a, b)", "naïve", "Straße", "Ångström", "мир", "Привет", "世界", "人民", "こんにちは", "カタカナ", "한국어", "가각", "שלום", "مرحبا", "नमस्ते", "ไทย", "ქართული", "ǅ", "ʰ", "龥", "龦", "々", "ﬁ", "Ａ", "ﷺ", "K", "İ"]
CONTROL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|start|>", "<|message|>", "<|channel|>", "<|return|>", "<|endofprompt|>", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<unused12>", "<s>", "</s>", "<unk>", "<pad>", "[INST]", "[/INST]", "<image_soft_token>", "<|reserved_special_token_3|>", "<|im_start", "im_end|>", "<|", "|>", "<table>", "</td>", "\n\n\n", "▁", "▁▁", ">▁</", "<mask>", "<0x0A>", "<0x41>", "<EOT>", "<META>", "<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|START_OF_TURN", "EOS_TOKEN>", "<|fim_prefix|>", "<SPECIAL_40>", "[TOOL_CALLS]"]
PUNCTUATION = list(string.punctuation) + list("…—–’“”«»。，！？、·•€£™©")


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read(200_000)
    except (OSError, UnicodeDecodeError):
        return ""


def texts():
    """Code and prose of the machine: Go's sources and Python's library."""
    roots = [os.popen("go env GOROOT").read().strip() + "/src", os.path.dirname(os.__file__)]
    found = []
    for root in roots:
        for ending in ("go", "py", "md", "txt", "s", "html", "json", "c", "h"):
            found += sorted(glob.glob(f"{root}/**/*.{ending}", recursive=True))[:4000]
    return found


def catalogues():
    """Sentences of many languages."""
    out = []
    for site in sys.path:
        for path in sorted(glob.glob(f"{site}/django/**/LC_MESSAGES/*.mo", recursive=True)):
            with open(path, "rb") as f:
                out += [v for v in gettext.GNUTranslations(f)._catalog.values() if isinstance(v, str) and len(v) > 3]
    return out


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.files = texts()
        self.sentences = catalogues() or WORDS

    def some(self, choices, low, high, join=""):
        return join.join(self.r.choice(choices) for _ in range(self.r.randint(low, high)))

    def mixed(self, often, rarely, low, high, share):
        return "".join(self.r.choice(often if self.r.random() < share else rarely) for _ in range(self.r.randint(low, high)))

    def code(self):
        text = read(self.r.choice(self.files)) or "empty"
        size = self.r.choice([40, 200, 800])
        at = self.r.randrange(max(1, len(text) - size))
        return text[at : at + size]

    def language(self):
        return self.some(self.sentences, 1, 4, self.r.choice([" ", "\n"]))

    def decomposed(self):
        return unicodedata.normalize(self.r.choice(["NFD", "NFKD"]), self.language())

    def emoji(self):
        return self.some(EMOJI + [" ", "a", "hello ", "\n", ".", "世界"], 1, 20)

    def marks(self):
        return "".join(self.r.choice("aeiouAEOUncsşǅÅéकনகかウ가각ﬁ①Ａﷺשׁ\u1112\u1161\u11ab") + self.some(MARKS, 0, self.r.choice([0, 1, 1, 2, 3, 40])) for _ in range(self.r.randint(1, 12)))

    def spaces(self):
        return self.mixed(SPACES, WORDS + PUNCTUATION, 1, 30, 0.6)

    def digits(self):
        return self.mixed(DIGITS, [" ", ",", ".", "-", "a", "%", "$", "\n"], 1, 50, 0.85)

    def controls(self):
        return self.mixed([chr(c) for c in range(32)], ["a", " ", "\x7f", "\x80", "\x9f", "é", ".", "\u202e", "\u2066", "\ufffd", "\ufffe", "\uffff", "\U0010ffff", "\ue000"], 1, 25, 0.4)

    def anything(self):
        return self.some(EVERY, 1, 30)

    def assigned(self):
        return self.mixed(ASSIGNED, [" ", "a", "A", "\n", "1", "'s", "/"], 1, 30, 0.7)

    def special(self):
        return self.mixed(CONTROL, WORDS + SPACES + ["user", "1"], 1, 16, 0.5)

    def words(self):
        return self.some(WORDS + PUNCTUATION + SPACES + CONTROL + MARKS[:40], 1, 25)

    def long(self):
        letters = self.r.choice(["a", "ab", "acgt", string.digits, string.ascii_lowercase, string.ascii_letters + string.digits + "+/", "世界人民大团结万岁的是不了在有", "=", "-", " ", "\n", "あいうえお", "🤣😀", string.punctuation, "กขคงจ", "\u0301"])
        return self.some(letters, 500, self.r.choice([1000, 4000]))

    def spliced(self):
        text = self.code() + self.language()
        at = self.r.randrange(len(text) + 1)
        return text[max(0, at - 60) : at] + self.r.choice(WORDS + CONTROL + SPACES) + self.r.choice(EVERY) + text[at : at + 60]

    def broken(self):
        raw = bytearray(self.spliced().encode()[:300])
        for _ in range(self.r.randint(1, 4)):
            if raw:
                raw[self.r.randrange(len(raw))] = self.r.randrange(128, 256)
        return {"base64": base64.b64encode(bytes(raw)).decode()}

    def one(self):
        kinds = [self.code, self.language, self.decomposed, self.emoji, self.marks, self.spaces, self.digits, self.controls, self.anything, self.assigned, self.special, self.words, self.spliced, self.broken]
        return self.long() if self.r.random() < 0.004 else self.r.choice(kinds)()


def every(size=32):
    """Each character of Unicode in three places."""
    for i in range(0, len(EVERY), size):
        block = EVERY[i : i + size]
        yield "".join(f"a{c}b" for c in block)
        yield "".join(f" {c}{c}" for c in block)
        yield "".join(f".{c}1\n" for c in block)


def main():
    wanted, seed = int(sys.argv[1]), int(sys.argv[2])
    edge = ["", " ", "a", "\u0301", "\ufeffhello", "\x00", "'", "''", "  \n  x", "   x", "\r\n\r\n  y", "a" * 1_000_000, "ab " * 1000]
    maker = Maker(seed)
    out = list(every()) if "every" in sys.argv[3:] else edge
    while len(out) < wanted:
        out.append(maker.one())
    sys.stdout.write("".join(json.dumps(text) + "\n" for text in out))


if __name__ == "__main__":
    main()
