"""What the Python library makes of strings: reference.py TOKENIZER_JSON prints for each line of its input, as corpus.py writes them,
{"text" or "base64": …, "ids": […], "ends": […], "decoded": …}. Ends are bytes of the text, and never go back; decoded is left out where
it is the text."""

import base64
import json
import sys

from tokenizers import Tokenizer


def places(text):
    """For each character of text, and its end, the byte in front of it."""
    out, at = [0], 0
    for c in text:
        at += len(c.encode())
        out.append(at)
    return out


def broken(raw):
    """raw as the library would be given it, and for each character the byte of raw in front of it."""
    text, out, at = "", [0], 0
    while at < len(raw):
        for size in range(1, 5):
            part = raw[at : at + size]
            try:
                text += part.decode()
                break
            except UnicodeDecodeError as e:
                if e.end < len(part) or len(part) < size or e.reason != "unexpected end of data":
                    size = max(1, e.end) if e.reason != "unexpected end of data" else len(part)
                    text += "\ufffd"
                    break
        at += size
        out.append(at)
    assert text == raw.decode("utf-8", "replace"), raw
    return text, out


def answer(tokenizer, lines, out):
    """Writes the answers for lines to out."""
    for i in range(0, len(lines), 1000):
        batch, offsets = [], []
        for line in lines[i : i + 1000]:
            text, at = (line, None) if isinstance(line, str) else broken(base64.b64decode(line["base64"]))
            batch.append(text)
            offsets.append(at)
        encodings = tokenizer.encode_batch(batch, add_special_tokens=False)
        decoded = tokenizer.decode_batch([e.ids for e in encodings], skip_special_tokens=False)
        for line, text, at, e, back in zip(lines[i : i + 1000], batch, offsets, encodings, decoded):
            at, ends, top = at or places(text), [], 0
            for _, end in e.offsets:
                top = max(top, at[end])
                ends.append(top)
            row = {"text": line} if isinstance(line, str) else dict(line)
            row |= {"ids": e.ids, "ends": ends}
            if back != text:
                row["decoded"] = back
            out.write(json.dumps(row) + "\n")


def tekken(path, lines, out):
    """The same of Mistral's library, which finds no control tokens in a text and gives no ends."""
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = Tekkenizer.from_file(path)
    names = [token["token_str"] for token in tokenizer._all_special_tokens]
    for line in lines:
        if not isinstance(line, str) or len(line) > 100_000 or any(name in line for name in names):
            continue
        out.write(json.dumps({"text": line, "ids": tokenizer.encode(line, bos=False, eos=False)}) + "\n")


def main():
    path, lines = sys.argv[1], [json.loads(line) for line in sys.stdin]
    if "tekken" in path:
        tekken(path, lines, sys.stdout)
    else:
        answer(Tokenizer.from_file(path), lines, sys.stdout)


if __name__ == "__main__":
    main()
