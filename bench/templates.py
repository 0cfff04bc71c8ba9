"""How fast chat templates render, beside jinja2 and transformers: prints microseconds a rendering and their ratios.

    python bench/templates.py CORPUS        # a folder that .ci/templates/render.py wrote; the Python has transformers 5.24

Each program renders every conversation of the corpus that transformers renders, once, on one core; the best of three rounds
counts. jinja2's own rendering is what transformers does less the copying and checking of the messages.
"""
import json
import pathlib
import re
import subprocess
import sys
import time

from transformers.utils import chat_template_utils

ROUNDS = 3
TOKENS = {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "pad_token": "<pad>", "unk_token": "<unk>"}


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def best(jobs):
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for job in jobs:
            job()
        rounds.append(time.process_time() - started)
    return min(rounds) / len(jobs) * 1e6


def python(corpus):
    templates, cases = lines(corpus / "templates.jsonl"), lines(corpus / "cases.jsonl")
    bare, whole = [], []
    for a in lines(corpus / "answers.jsonl"):
        source, case = templates[a["template"]]["source"], cases[a["case"]]
        if "text" not in a or case["continue"]:
            continue
        args = {"tools": case["tools"], "documents": case["documents"], "add_generation_prompt": case["add_generation_prompt"],
                **TOKENS, **case["kwargs"]}
        compiled = chat_template_utils._compile_jinja_template(source)
        messages = chat_template_utils._normalize_chat_messages(case["messages"])
        aliased = chat_template_utils._alias_reasoning_fields(messages)
        bare.append(lambda c=compiled, m=aliased, a=args: c.render(messages=m, **a))
        whole.append(lambda m=messages, s=source, a=args: chat_template_utils.render_jinja_template([m], chat_template=s, **a))
    return best(bare), best(whole)


def ours(corpus):
    out = subprocess.run(["go", "test", "-run", "xxx", "-bench", "Render", "-benchtime", "1x", "-count", str(ROUNDS), "-cpu", "1",
                          "./internal/chat/hf", "-corpus", str(corpus.resolve())],
                         cwd=pathlib.Path(__file__).parent.parent, check=True, capture_output=True, text=True).stdout
    return min(float(x) for x in re.findall(r"([\d.]+) µs/render", out))


def main():
    corpus = pathlib.Path(sys.argv[1])
    bare, whole = python(corpus)
    go = ours(corpus)
    print(f"ours {go:.0f} µs, jinja2 {bare:.0f} µs ({bare / go:.1f} times), transformers {whole:.0f} µs ({whole / go:.1f} times)")


main()
