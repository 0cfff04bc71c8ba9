"""How fast texts are tokenized beside the library of Hugging Face: prints ratios to it, family by family, from one run.

    python bench/encode.py FOLDER...     # each with a tokenizer.json; the Python has tokenizers 0.23.3

Each program encodes the same documents, code and prose of the machine (a fifth in other languages where Django is installed), with
offsets, one call a document, on one core; the best of three rounds counts. Times are of the processor; load is opening the file; memory is what the process or
the heap grows by.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / ".ci/tokenizers"))
ROUNDS = 3
MEGABYTES = 4


def documents(path):
    import corpus

    maker, size = corpus.Maker(3), 0
    with open(path, "w") as out:
        while size < MEGABYTES * 1_000_000:
            if maker.r.random() < 0.2:
                text = maker.some(maker.sentences, 20, 30, " ")
            else:
                text = corpus.read(maker.r.choice(maker.files))
                at = maker.r.randrange(max(1, len(text) - 4000))
                text = text[at : at + 4000]
            size += len(text.encode())
            out.write(json.dumps(text) + "\n")


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def library(strings, tokenizer):
    """Runs in a process of its own: prints MB/s, load in ms, MiB."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer

    texts = [json.loads(line) for line in open(strings)]
    before, start = resident(), time.process_time()
    t = Tokenizer.from_file(tokenizer)
    load, held = (time.process_time() - start) * 1e3, resident() - before
    best = 0
    for _ in range(ROUNDS):
        start = time.process_time()
        for text in texts:
            t.encode(text, add_special_tokens=False)
        best = max(best, sum(len(text.encode()) for text in texts) / 1e6 / (time.process_time() - start))
    print(best, load, held)


def ours(binary, strings, tokenizer):
    best = {}
    for _ in range(ROUNDS):
        out = subprocess.run([binary, "-test.run", "xxx", "-test.bench", "Tokenizer", "-test.benchtime", "1x", "-test.cpu", "1", "-tokenizer", tokenizer, "-strings", strings], check=True, capture_output=True, text=True).stdout
        for value, unit in re.findall(r"([\d.]+) (MB/s|append-MB/s|load-ms|held-MiB)", out):
            better = max if unit.endswith("MB/s") else min
            best[unit] = better(best.get(unit, float(value)), float(value))
    return best


def main():
    with tempfile.TemporaryDirectory() as work:
        strings, binary = f"{work}/strings.jsonl", f"{work}/bench.test"
        documents(strings)
        subprocess.run(["go", "test", "-c", "-o", binary, "./bench"], check=True, cwd=pathlib.Path(__file__).parent.parent)
        print(f"{'':24}  speed  without offsets  load time  memory")
        for folder in sys.argv[1:]:
            path = f"{folder}/tokenizer.json"
            speed, load, held = map(float, subprocess.run([sys.executable, __file__, "--library", strings, path], check=True, capture_output=True, text=True).stdout.split())
            o = ours(binary, strings, path)
            name = re.sub(r".*tokenizer-|/models", "", folder.rstrip("/"))
            print(f"{name:24} {o['MB/s'] / speed:6.1f} {o['append-MB/s'] / speed:16.1f} {o['load-ms'] / load:10.2f} {o['held-MiB'] / held:7.2f}", flush=True)


if sys.argv[1] == "--library":
    library(*sys.argv[2:])
else:
    main()
