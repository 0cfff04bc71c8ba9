#!/usr/bin/env python3
"""A calculator as an environment: the model writes a sum, is told what it comes to, and answers with that.

It speaks version 1 of trainer's protocol: a JSON object a line on stdin and stdout; see docs/environments.md. Every row has a
target, the right answer. params, from the recipe:

  tools: true   offer a function, calculate(expression), to models whose template writes tool calls, and take the first turn
                without a call as the answer; without it the first turn is the expression
  say: "%s"     the message that then tells the result
"""
import ast
import json
import operator
import re
import sys

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
TOOL = {"type": "function", "function": {
    "name": "calculate", "description": "Evaluates an expression of whole numbers with +, - and *.",
    "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}}


ROMAN = {"i": 1, "v": 5, "x": 10}


def roman(text):
    """The value of a Roman numeral: a smaller one before a larger counts against it."""
    values = [ROMAN[c] for c in text]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))


def evaluate(text):
    """The value of an expression of whole numbers, or of Roman ones with p for plus; None for anything else. Nothing is run."""
    if re.fullmatch("[ivx]+(p[ivx]+)+", text.strip()):
        return sum(roman(n) for n in text.strip().split("p"))

    def value(node):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError(text)
    try:
        return value(ast.parse(text.strip()[:100], mode="eval").body)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


class Episode:
    """One conversation: an expression that comes to the target earns 0.1, the right answer behind it 0.9."""

    def __init__(self, request, params):
        self.target, self.params = str(request["target"]), params
        self.asked = request["prompt"][-1]["content"]
        self.calculated = False

    def step(self, request):
        message = request["message"]
        calls = message["tool_calls"]
        if calls:
            results = [self.call(c) for c in calls]
            return self.reply([{"role": "tool", "tool_call_id": c["id"], "name": c["function"]["name"],
                                "content": "not an expression" if r is None else str(r)} for c, r in zip(calls, results)], results[-1])
        text = message["content"].strip()
        if self.calculated or self.params.get("tools"):
            return {"reward": 0.9 if text == self.target else 0.0, "done": True}
        result = evaluate(text)
        if result is None:
            return self.reply([{"role": "user", "content": self.asked}], None)
        return self.reply([{"role": "user", "content": self.params.get("say", "%s") % result}], result)

    def call(self, call):
        try:
            return evaluate(str(json.loads(call["function"]["arguments"])["expression"]))
        except (ValueError, KeyError, TypeError):
            return None

    def reply(self, messages, result):
        """Goes on; the first result that is the target is paid."""
        pays = not self.calculated and str(result) == self.target
        self.calculated = self.calculated or result is not None
        return {"messages": messages, "reward": 0.1 if pays else 0.0, "done": False}


def main():
    params, episodes = {}, {}
    for line in sys.stdin:
        if not line.strip():
            continue
        request = json.loads(line)
        kind, name = request["type"], request.get("episode")
        if kind == "hello":
            params = request["params"]
            reply = {"type": "ready", "name": "calculator", "max_in_flight": 64}
        elif kind == "close":
            episodes.pop(name, None)
            continue
        elif kind == "reset":
            episodes[name] = Episode(request, params)
            reply = {"tools": [TOOL] if params.get("tools") else None, "done": False}
        else:
            reply = episodes[name].step(request)
        print(json.dumps({"v": 1, "id": request.get("id"), **reply}), flush=True)


if __name__ == "__main__":
    main()
