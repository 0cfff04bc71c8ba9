"""Encodes conversations with the tokenizers and templates of real models, for TestRealModels to compare.

    python masks.py MODELS TEMPLATES OUT

A line of OUT is a conversation under one model: its template, the ids of the whole and, where the template has generation
blocks, which of them the assistant is to learn; and the ids that sampling its last message starts from.
"""
import argparse
import datetime
import json
import pathlib

import transformers
from transformers.utils import chat_template_utils

PAIRS = {
    "qwen3": ["trl.qwen3", "trl.qwen3_training", "trl.qwen2_5", "trl.qwen2_5_training", "trl.qwen3_5_think", "trl.qwen3_8"],
    "llama3_1": ["trl.llama3", "trl.llama3_training", "trl.llama3_1"],
    "gptoss": ["trl.gptoss", "trl.gptoss_training"],
    "deepseek_v3": ["lenml.tokenizer-deepseek_v3"],
    "gemma3": ["trl.gemma3", "trl.gemma3_training"],
}

WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "Where"}}, "required": ["city"]}}}


class Noon(datetime.datetime):
    """The time at which every template is rendered."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 7, 4, 12, 0, 0)


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def conversations():
    texts = ["Hi", "2 + 2 is 4.", "é 日本 🤖", "def f(x):\n    return x\n", "  padded \n", "a\n\n\nb", "{\"a\": [1, 2]}", "x" * 300, "\u2028\u00a0", "<b>&amp;</b>"]
    for i, text in enumerate(texts):
        other = texts[(i + 3) % len(texts)]
        yield [user(text), assistant("So: " + other)], None
        yield [{"role": "system", "content": "Be brief."}, user(other), assistant("Yes. " + text)], None
        yield [user(text), assistant("one"), user(other), assistant("two " + text), user("and?"), assistant("three")], None
        yield [user(text), assistant("4", reasoning_content="two and two"), user(other), assistant("6", reasoning_content="three twice")], None
    call = {"id": "call00001", "type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich"}}}
    yield [user("Zürich?"), assistant("", tool_calls=[call]), {"role": "tool", "tool_call_id": "call00001", "name": "weather", "content": "sunny"},
           assistant("It is sunny.")], [WEATHER]


def token(config, name):
    v = config.get(name)
    return v["content"] if isinstance(v, dict) else v


def main():
    p = argparse.ArgumentParser()
    p.add_argument("models", type=pathlib.Path)
    p.add_argument("templates", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    a = p.parse_args()
    chat_template_utils.datetime = Noon
    n = 0
    with open(a.out, "w", encoding="utf-8") as out:
        for model, templates in PAIRS.items():
            folder = a.models / f"tokenizer-{model}" / "models"
            config = json.loads((folder / "tokenizer_config.json").read_bytes())
            special = {k: token(config, k) for k in ("bos_token", "eos_token", "pad_token", "unk_token") if token(config, k)}
            tok = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **special)
            for name in templates:
                path = a.templates / f"{name}.jinja"
                if not path.exists():
                    print(f"{name}: left out, as it was not fetched")
                    continue
                source = path.read_bytes().decode()
                generation = "generation %}" in source or "generation -%}" in source
                for messages, tools in conversations():
                    try:
                        whole = tok.apply_chat_template(messages, tools=tools, chat_template=source, return_dict=True, return_assistant_tokens_mask=generation)
                        prompt = tok.apply_chat_template(messages[:-1], tools=tools, chat_template=source, return_dict=True, add_generation_prompt=True)
                    except Exception:  # what transformers refuses is compared by .ci/templates
                        continue
                    row = {"model": str(folder), "name": f"{model} {name}", "template": source, "messages": messages, "tools": tools, "ids": whole["input_ids"],
                           "prompt": prompt["input_ids"], "mask": whole["assistant_masks"] if generation else None}
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
                    n += 1
    print(f"{n} conversations")


main()
