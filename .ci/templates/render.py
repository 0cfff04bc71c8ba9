"""Renders every template of a folder on every conversation with Hugging Face transformers, for TestParity to compare.

    python render.py TEMPLATES CORPUS [--random N]

TEMPLATES has *.jinja; CORPUS becomes a folder of templates.jsonl, cases.jsonl and answers.jsonl. An answer is the text, or
the error, of a template on the case of the same number, and the spans of its generation blocks in characters.
"""
import argparse
import datetime
import json
import pathlib
import re

import tokenizers
import transformers
from transformers.utils import chat_template_utils

import conversations

TOKENS = {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "pad_token": "<pad>", "unk_token": "<unk>"}


class Noon(datetime.datetime):
    """The time at which every template is rendered."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 7, 4, 12, 0, 0)


def tokenizer():
    empty = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=empty, **TOKENS)


def answer(tok, source, case):
    try:
        text = tok.apply_chat_template(
            json.loads(json.dumps(case["messages"])), tools=case["tools"], documents=case["documents"], chat_template=source, tokenize=False,
            add_generation_prompt=case["add_generation_prompt"], continue_final_message=case["continue"] or False, **case["kwargs"])
    except Exception as e:
        return {"err": f"{type(e).__name__}: {e}"[:200]}
    out = {"text": text}
    if re.search(r"\{%[-+]?\s*generation", source) and not case["continue"]:
        _, spans = chat_template_utils.render_jinja_template(
            [chat_template_utils._normalize_chat_messages(case["messages"])], tools=case["tools"], documents=case["documents"], chat_template=source,
            return_assistant_tokens_mask=True, add_generation_prompt=case["add_generation_prompt"], **{**TOKENS, **case["kwargs"]})
        out["generation"] = spans[0]
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("templates", type=pathlib.Path)
    p.add_argument("corpus", type=pathlib.Path)
    p.add_argument("--random", type=int, default=0)
    a = p.parse_args()
    chat_template_utils.datetime = Noon
    tok, cases = tokenizer(), conversations.cases(a.random)
    a.corpus.mkdir(parents=True, exist_ok=True)

    def write(name, rows):
        with open(a.corpus / name, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)

    files = sorted(a.templates.glob("*.jinja"))
    templates = [{"name": f.stem, "source": f.read_bytes().decode()} for f in files]
    write("templates.jsonl", templates)
    write("cases.jsonl", cases)
    answers = [{"template": i, "case": j, **answer(tok, t["source"], c)} for i, t in enumerate(templates) for j, c in enumerate(cases)]
    write("answers.jsonl", answers)
    rendered = sum("text" in x for x in answers)
    print(f"{len(templates)} templates, {len(cases)} conversations: {rendered} rendered, {len(answers) - rendered} refused")


main()
