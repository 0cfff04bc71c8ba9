"""Writes the small tokenizers of internal/tokenizer/testdata and what the reference makes of strings: NAME/tokenizer.json, NAME.jsonl.
The reference is tokenizers 0.23.3, for ranks tiktoken 0.14.0. Run it there: python made.py FOLDER."""

import base64
import json
import os
import sys

import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import corpus
import reference

TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
UPPER_NO_HAN, LOWER_NO_HAN = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
QWEN3 = CONTRACTED + "|" + BEFORE + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
QWEN35 = CONTRACTED + "|" + BEFORE + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL
LLAMA3 = CONTRACTED + "|" + BEFORE + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
O200K = f"{BEFORE}{UPPER}*{LOWER}+{CONTRACTED}?|{BEFORE}{UPPER}+{LOWER}*{CONTRACTED}?" + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL
TEKKEN = f"{BEFORE}{UPPER}*{LOWER}+|{BEFORE}{UPPER}+{LOWER}*" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL
KIMI = r"[\p{Han}]+|" + f"{BEFORE}{UPPER_NO_HAN}*{LOWER_NO_HAN}+{CONTRACTED}?|{BEFORE}{UPPER_NO_HAN}+{LOWER_NO_HAN}*{CONTRACTED}?" + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]


def flags(content, **on):
    usual = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return AddedToken(content, **(usual | on))


CHAT = [flags("<|im_start|>"), flags("<|im_end|>"), flags("<think>", special=False), flags("</think>", special=False), flags("<|fim_prefix|>", special=False)]
ODD = [
    flags("<s>"),
    flags("<left>", lstrip=True),
    flags("<right>", rstrip=True),
    flags("<both>", lstrip=True, rstrip=True, normalized=True, special=False),
    flags("alone", single_word=True, special=False),
    flags("é", normalized=True, special=False),
    flags("Ǆ", normalized=True, special=False),
    flags(" a", normalized=True, special=False),
    flags("<｜User｜>", normalized=True, special=False),
    flags("<|", special=False),
    flags("\n\n", special=False),
]
HOSTILE = ["<s>", "<left>", "<right>", " <both> ", "alone", "alone_", "éalone", "é", "e\u0301", "Ǆ", " a", "  <left>", "<right>  <s>", "<right> \n\n <right>", "<｜User｜>", "<|im_end|>", "<|fim_prefix|>", "</think>", "<|", "▁", "x", "Hello", " ", "\n", "ａ", "ﬁ"]


def training():
    maker = corpus.Maker(7)
    maker.files, maker.sentences = [], corpus.WORDS
    lines = [maker.words() for _ in range(300)] + ["the quick brown fox jumps over the lazy dog and then the other thing " * 3, "안녕하세요 세계 " * 4, "世界人民大团结 " * 4, "HelloWorld helloWorld HELLO world's WORLD'S " * 9]
    return [line for line in lines if "<" not in line]


def strings(seed, n=110):
    maker = corpus.Maker(seed)
    maker.files, maker.sentences = [], corpus.WORDS
    kinds = [maker.language, maker.emoji, maker.marks, maker.spaces, maker.digits, maker.controls, maker.anything, maker.assigned, maker.words]
    out = ["", " ", "a", "\n"] + [maker.mixed(HOSTILE, corpus.WORDS, 1, 12, 0.7) for _ in range(40)]
    while len(out) < n:
        out.append(maker.r.choice(kinds)()[:60])
    out[-4:] = [{"base64": base64.b64encode(b).decode()} for b in (b"a\xff\xe4\xb8b", b"\xf0\x9f\x98", b"\xed\xa0\x80<s>\xc3", b"\xf4\x90\x80\x80 \xe2\x82")]
    return out


def byte_level(split, normalizer=None, added=CHAT, ignore_merges=False, size=420, prefix=False, regex=False, trim=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    t.pre_tokenizer = pre_tokenizers.Sequence(split + [pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex, trim_offsets=trim)])
    t.decoder = decoders.ByteLevel()
    if normalizer:
        t.normalizer = normalizer
    t.train_from_iterator(training(), trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    t.add_tokens(added)
    return t


def isolated(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def spelt(fallback, fuse=True, size=330, normalizer=None, pre=None, decoder=None, added=ODD, rest=True):
    """A vocabulary of characters, as SentencePiece has."""
    first = ["<unk>"] + ([f"<0x{b:02X}>" for b in range(256)] if fallback else [])
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse, byte_fallback=fallback))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    t.train_from_iterator(training(), trainers.BpeTrainer(vocab_size=size + len(first), special_tokens=first, limit_alphabet=90, show_progress=False))
    raw = json.loads(t.to_str())
    raw["added_tokens"] = []
    t = Tokenizer.from_str(json.dumps(raw))
    t.pre_tokenizer = pre
    t.decoder = decoder
    t.add_tokens(added)
    return t


def made():
    yield "qwen3", byte_level([isolated(QWEN3)], normalizers.NFC())
    yield "qwen35", byte_level([isolated(QWEN35)], normalizers.NFC())
    t = byte_level([isolated(LLAMA3)], ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|im_start|> $A", special_tokens=[("<|im_start|>", t.token_to_id("<|im_start|>"))])])
    yield "llama3", t
    yield "o200k", byte_level([pre_tokenizers.Split(Regex(O200K), "removed", invert=True)], ignore_merges=True)
    yield "nemo", byte_level([isolated(TEKKEN)])
    yield "kimi", byte_level([isolated(KIMI)])
    yield "deepseek", byte_level([isolated(p) for p in DEEPSEEK], added=ODD)
    yield "gpt2", byte_level([], prefix=True, regex=True, added=ODD)
    yield "digits", byte_level([pre_tokenizers.Digits(individual_digits=False)], normalizers.NFKC(), added=ODD, regex=True)
    yield "nfd", byte_level([isolated(QWEN3)], normalizers.NFD(), added=ODD)
    yield "nfkd", byte_level([pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Split("a", "contiguous"), pre_tokenizers.Split("e", "merged_with_previous"), pre_tokenizers.Split("x", "removed")], normalizers.NFKD(), added=ODD)
    llama = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    yield "llama2", spelt(True, normalizer=llama, decoder=decoders.Sequence(back + [decoders.Strip(" ", 1, 0)]))
    yield "gemma", spelt(True, normalizer=normalizers.Replace(" ", "▁"), pre=pre_tokenizers.Split(" ", "merged_with_previous"), decoder=decoders.Sequence(back))
    yield "first", spelt(True, pre=pre_tokenizers.Metaspace(prepend_scheme="first", split=False), decoder=decoders.Metaspace(prepend_scheme="first", split=False))
    yield "always", spelt(False, pre=pre_tokenizers.Metaspace(prepend_scheme="always", split=True), decoder=decoders.Metaspace())
    yield "unknown", spelt(False, fuse=False)


def ranks(t):
    """The vocabulary of t as ranks: its tokens in order."""
    letters = {c: b for b, c in enumerate(byte_letters())}
    tokens = sorted(t.get_vocab(with_added_tokens=False).items(), key=lambda x: x[1])
    return [bytes(letters[c] for c in token) for token, _ in tokens]


def byte_letters():
    out, extra = [], 256
    for b in range(256):
        if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174:
            out.append(chr(b))
        else:
            out.append(chr(extra))
            extra += 1
    return out


def ranked(folder, name, encoding, shift, rows):
    with open(f"{folder}/{name}.jsonl", "w") as out:
        for line in rows:
            text = line if isinstance(line, str) else base64.b64decode(line["base64"]).decode("utf-8", "replace")
            ids = encoding.encode(text, allowed_special="all")
            row = {"text": line} if isinstance(line, str) else dict(line)
            back = b"".join(encoding.decode_single_token_bytes(i) for i in ids).decode("utf-8", "replace")
            row |= {"ids": [i + shift if i < encoding.n_vocab else i for i in ids]}
            if back != text:
                row["decoded"] = back
            out.write(json.dumps(row) + "\n")


def main():
    folder = sys.argv[1]
    for seed, (name, t) in enumerate(made()):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        with open(f"{folder}/{name}/tokenizer.json", "w") as f:
            f.write(json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        with open(f"{folder}/{name}.jsonl", "w") as out:
            reference.answer(Tokenizer.from_file(f"{folder}/{name}/tokenizer.json"), strings(seed), out)
    tokens = ranks(byte_level([isolated(KIMI)], added=[]))
    n = len(tokens)
    os.makedirs(f"{folder}/tiktoken", exist_ok=True)
    with open(f"{folder}/tiktoken/tiktoken.model", "w") as f:
        f.writelines(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens))
    named = {"[BOS]": n, "[EOS]": n + 1, "<|im_end|>": n + 2, "<s>": n + 9}
    config = {"added_tokens_decoder": {str(i): {"content": c, "special": True} for c, i in named.items()}, "eos_token": "[EOS]", "tokenizer_class": "TikTokenTokenizer"}
    with open(f"{folder}/tiktoken/tokenizer_config.json", "w") as f:
        f.write(json.dumps(config) + "\n")
    special = {f"<|reserved_token_{n + i}|>": n + i for i in range(256) if n + i not in named.values()} | named
    ranked(folder, "tiktoken", tiktoken.Encoding("x", pat_str=KIMI, mergeable_ranks={t: i for i, t in enumerate(tokens)}, special_tokens=special), 0, strings(90) + ["[EOS]", f"a<|reserved_token_{n + 5}|>b"])
    tekken(folder, ranks(byte_level([isolated(TEKKEN)], added=[])))


def tekken(folder, tokens):
    shift = 30
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    config = {"pattern": TEKKEN, "num_vocab_tokens": len(tokens), "default_vocab_size": shift + len(tokens) - 20, "default_num_special_tokens": shift, "version": "v13"}
    raw = {
        "config": config,
        "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)],
        "special_tokens": [{"rank": i, "token_str": name, "is_control": True} for i, name in enumerate(names)],
    }
    os.makedirs(f"{folder}/tekken", exist_ok=True)
    with open(f"{folder}/tekken/tekken.json", "w") as f:
        f.write(json.dumps(raw, separators=(",", ":")) + "\n")
    kept = {t: i + shift for i, t in enumerate(tokens[: len(tokens) - 20])}
    encoding = tiktoken.Encoding("x", pat_str=TEKKEN, mergeable_ranks=kept, special_tokens={name: i for i, name in enumerate(names)})
    ranked(folder, "tekken", encoding, 0, strings(91) + ["[INST]a[/INST]"])


main()
