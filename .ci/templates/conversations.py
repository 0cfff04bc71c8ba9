"""The conversations that templates are compared on: what data sets hold, what they should not hold, and random ones.

Each case is a dict of name, messages, tools, documents, add_generation_prompt, continue, kwargs: the arguments of
apply_chat_template, as plain JSON.
"""
import random

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a \"city\" & <district>",
    "parameters": {"type": "object", "properties": {
        "location": {"type": "string", "description": "City, such as Zürich or 東京"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7}}, "required": ["location"]}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "Search.\nIt isn't one line",
    "parameters": {"type": "object", "properties": {
        "q": {"type": "string"},
        "opts": {"type": "object", "properties": {"limit": {"type": "number"}, "deep": {"type": "boolean"}}, "required": ["limit"],
                 "additionalProperties": False},
        "tags": {"type": "array", "items": {"type": "string"}}, "maybe": {"type": ["string", "null"]}}, "required": ["q"]},
    "strict": True}}
NOOP = {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}}
NUMBERS = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {
    "x": {"type": "number", "default": 1.0, "minimum": 1e-5, "maximum": 1e16, "multipleOf": 0.1},
    "y": {"type": "integer", "default": 10**22}, "z": {"type": "boolean", "default": False}}}}}
TOOLS = [WEATHER, SEARCH]
CODE = "def f(x):\n\tif x < 1:\n\t\treturn \"a\\nb\"\n\n    # done\r\n"


def user(content):
    return {"role": "user", "content": content}


def system(content):
    return {"role": "system", "content": content}


def assistant(content, **rest):
    return {"role": "assistant", "content": content, **rest}


def tool(content, id="call00001", name="get_weather"):
    return {"role": "tool", "content": content, "tool_call_id": id, "name": name}


def call(name, arguments, id="call00001"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def step(arguments, content="", **rest):
    return assistant(content, tool_calls=[call("get_weather", arguments)], **rest)


PARIS = {"location": "Paris"}

# name: (messages, further arguments)
CASES = {
    "one question": ([user("Hello")], {}),
    "an empty question": ([user("")], {}),
    "white space around": ([user("  padded \n\n text\t ")], {}),
    "only white space": ([user(" \n ")], {}),
    "system": ([system("You are helpful."), user("Hi")], {}),
    "an empty system": ([system(""), user("Hi")], {}),
    "a padded system": ([system("  sys \n"), user("Hi")], {}),
    "only a system": ([system("You are helpful.")], {}),
    "two turns": ([user("a"), assistant("b"), user("c")], {}),
    "three turns and a system": ([system("s"), user("a"), assistant("b"), user("c"), assistant("d"), user("e")], {}),
    "ends in an answer": ([user("a"), assistant("b")], {}),
    "ends in a padded answer": ([system("S"), user("a"), assistant("  b \n")], {}),
    "an empty answer": ([user("a"), assistant(""), user("c")], {}),
    "an answer of None": ([user("a"), assistant(None), user("c")], {}),
    "an answer without content": ([user("a"), {"role": "assistant"}, user("c")], {}),
    "a question without content": ([{"role": "user"}], {}),
    "scripts and joiners": ([system("Système 日本語 🤖"), user("שלום עולם 👩‍👩‍👧 \u0301e"), assistant("Ünïcödé ﷺ \u200d"),
                             user("\u2028 \u00a0 x")], {}),
    "markup": ([user("<b>&amp; \"quotes\" 'single' </b> {{ x }} {% if %}"), assistant("<|im_end|> </s> [INST]"),
                user("\\n \\u00e9 \t")], {}),
    "code": ([user("Write f"), assistant("```python\n" + CODE + "```"), user("Thanks")], {}),
    "control characters": ([user("a\x00b\x07c\x1fd\x7f"), assistant("\x0b\x0c")], {}),
    "Windows lines": ([user("a\r\nb\r\n"), assistant("c\r\n")], {}),
    "reasoning_content": ([user("2+2?"), assistant("4", reasoning_content="Add 2 and 2."), user("3+3?"),
                           assistant("6", reasoning_content="Add three\n\nand three.")], {}),
    "reasoning last": ([user("2+2?"), assistant("4", reasoning_content="Think hard.\n")], {}),
    "reasoning inline": ([user("2+2?"), assistant("<think>\nfoo\n</think>\n\n4"), user("more"), assistant("<think>\nbar\n</think>\n\n5")], {}),
    "reasoning half open": ([user("x"), assistant("a</think>b"), user("y"), assistant("<think>a")], {}),
    "thinking": ([user("x"), assistant("y", thinking="hmm"), user("z")], {}),
    "reasoning": ([user("x"), assistant("y", reasoning="so"), user("z")], {}),
    "two kinds of reasoning": ([user("x"), assistant("y", thinking="hmm", reasoning_content="so")], {}),
    "empty reasoning": ([user("x"), assistant("y", reasoning_content=""), user("z")], {}),
    "reasoning of None": ([user("x"), assistant("y", reasoning_content=None, thinking=None), user("z")], {}),
    "reasoning and tools": ([user("q"), step(PARIS, reasoning_content="look it up"), tool("sunny"),
                             assistant("Sunny.", reasoning_content="done")], {"tools": TOOLS}),
    "tools": ([user("Weather?")], {"tools": TOOLS}),
    "tools and a system": ([system("Be brief."), user("Weather?")], {"tools": TOOLS}),
    "a tool without parameters": ([user("x")], {"tools": [NOOP]}),
    "tools with numbers": ([user("x")], {"tools": [NUMBERS]}),
    "no tools in a list": ([user("x")], {"tools": []}),
    "a bare tool": ([user("x")], {"tools": [WEATHER["function"]]}),
    "a call": ([user("Weather in Zürich?"), step({"location": "Zürich", "unit": "celsius", "days": 3}),
                tool('{"temp": 21.5, "ok": true}'), assistant("It is 21.5°C."), user("Thanks")], {"tools": TOOLS}),
    "a call without tools": ([user("Weather?"), step(PARIS), tool("sunny"), assistant("Sunny.")], {}),
    "a call last": ([user("Weather?"), step(PARIS)], {"tools": TOOLS}),
    "a call in text": ([user("Weather?"), step('{"location": "Paris"}'), tool("sunny")], {"tools": TOOLS}),
    "a call in broken text": ([user("Weather?"), step('{"location": "Par'), tool("sunny")], {"tools": TOOLS}),
    "a call with content None": ([user("Weather?"), step(PARIS, None), tool("sunny"), user("and?")], {"tools": TOOLS}),
    "a call without content": ([user("Weather?"), {"role": "assistant", "tool_calls": [call("get_weather", PARIS)]}, tool("sunny")],
                               {"tools": TOOLS}),
    "a call with text": ([user("Weather?"), step(PARIS, "Let me check."), tool("sunny"), assistant("Sunny!")], {"tools": TOOLS}),
    "a call without arguments": ([user("x"), assistant("", tool_calls=[call("noop", {})]), tool("ok", name="noop")], {"tools": [NOOP]}),
    "a bare call": ([user("x"), assistant("", tool_calls=[{"name": "get_weather", "arguments": PARIS}]), tool("ok")], {"tools": TOOLS}),
    "a call with a short id": ([user("x"), assistant("", tool_calls=[call("get_weather", PARIS, "c1")]), tool("ok", "c1")], {"tools": TOOLS}),
    "calls at once": ([user("W?"), assistant("", tool_calls=[
        call("get_weather", PARIS), call("search", {"q": "x", "opts": {"limit": 1.5, "deep": False}, "tags": ["a", "b"], "n": None}, "call00002")]),
        tool("r1"), tool("r2", "call00002", "search"), assistant("done")], {"tools": TOOLS}),
    "calls in steps": ([system("sys"), user("q"), assistant("", reasoning_content="need it", tool_calls=[call("search", {"q": "é \"q\" \\ \n"})]),
                        tool("res <b>&", name="search"), assistant("", reasoning_content="again", tool_calls=[call("search", {"q": "2"}, "call00003")]),
                        tool("res2", "call00003", "search"), assistant("final", reasoning_content="ok")], {"tools": TOOLS}),
    "nested arguments": ([user("q"), assistant("", tool_calls=[call("search", {
        "z": 1, "a": {"d": [1, 2.0, 1e-7, 1e20, -0.0, 12345678901234567890], "c": {}}, "m": [], "t": True, "u": "日本", "n": None})]),
        tool("ok", name="search")], {"tools": TOOLS}),
    "no calls in a list": ([user("q"), assistant("plain", tool_calls=[]), user("z")], {"tools": TOOLS}),
    "a result that is an object": ([user("q"), step(PARIS), tool({"a": 1, "b": [1, 2.0]})], {"tools": TOOLS}),
    "a result in parts": ([user("q"), step(PARIS), tool([{"type": "text", "text": "sunny"}])], {"tools": TOOLS}),
    "a result first": ([tool("sunny"), user("x")], {"tools": TOOLS}),
    "no thinking": ([user("x")], {"kwargs": {"enable_thinking": False}}),
    "thinking wanted": ([user("x"), assistant("y"), user("z")], {"kwargs": {"enable_thinking": True, "thinking": True}}),
    "effort": ([system("s"), user("x")], {"tools": TOOLS, "kwargs": {"reasoning_effort": "high", "model_identity": "You are X."}}),
    "builtin tools": ([user("x")], {"kwargs": {"builtin_tools": ["browser", "python"]}}),
    "a date": ([system("s"), user("x"), step(PARIS), {"role": "ipython", "content": "out"}],
               {"tools": TOOLS, "kwargs": {"tools_in_user_message": False, "date_string": "01 Jan 2025"}}),
    "another start token": ([user("x"), assistant("y")], {"kwargs": {"bos_token": "<B>", "eos_token": ""}}),
    "parts": ([user([{"type": "text", "text": "part one "}, {"type": "text", "text": "part two"}]), assistant([{"type": "text", "text": "ans"}]),
               user("next")], {}),
    "parts of a system": ([system([{"type": "text", "text": "sys part"}]), user([{"type": "text", "text": "hi"}])], {}),
    "an image": ([user([{"type": "image"}, {"type": "text", "text": "what?"}]), assistant("a cat")], {}),
    "no parts": ([user([]), assistant("x")], {}),
    "developer": ([{"role": "developer", "content": "Dev instr"}, user("x"), assistant("y"), user("z")], {}),
    "two users": ([user("a"), user("b"), assistant("c")], {}),
    "two assistants": ([user("a"), assistant("b"), assistant("c")], {}),
    "starts with an answer": ([assistant("hello"), user("x")], {}),
    "a late system": ([user("a"), assistant("b"), system("late"), user("c")], {}),
    "two systems": ([system("a"), system("b"), user("c")], {}),
    "an unknown role": ([user("a"), {"role": "critic", "content": "x"}], {}),
    "a role of None": ([user("a"), {"role": None, "content": "x"}], {}),
    "no role": ([{"content": "x"}], {}),
    "content that is a number": ([user(7), assistant(1.5)], {}),
    "content that is an object": ([user({"a": 1}), assistant({"b": None})], {}),
    "weights": ([user("a"), assistant("b", weight=0), user("c"), assistant("d", weight=1)], {}),
    "names": ([{"role": "user", "name": "bob", "content": "hi"}, assistant("yo", name="bot")], {}),
    "keys that are methods": ([{"role": "user", "content": "x", "items": "i", "get": "g", "keys": [1]}], {}),
    "documents": ([user("x")], {"documents": [{"title": "T", "text": "doc <1>"}, {"title": "é", "text": ""}]}),
    "nothing": ([], {}),
    "many messages": ([m for i in range(40) for m in (user(f"question {i} " * 2), assistant(f"answer {i} " * 3))], {}),
}

CONTINUED = {
    "continue": ([user("a"), assistant("The answer")], "content"),
    "continue padded": ([user("a"), assistant(" The answer \n")], "content"),
    "continue nothing": ([user("a"), assistant("")], "content"),
    "continue parts": ([user("a"), assistant([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])], "content"),
    "continue reasoning": ([user("a"), assistant("", reasoning_content="So")], "reasoning_content"),
    "continue thinking": ([user("a"), assistant("b", thinking="So")], "thinking"),
    "continue what is not there": ([user("a"), assistant(None)], "content"),
    "continue a number": ([user("a"), assistant(7)], "content"),
    "continue a user": ([user("a")], "content"),
    "continue what no template reads": ([user("a"), assistant("b", zzz="c")], "zzz"),
}

TEXTS = ["", " ", "\n", "hi", "  pad \n", "<think>\na\n</think>\n\nb", "</think>", "<think>open", "<|im_end|>", "</s>", "{{ x }}", "{%", "é日本🤖",
         "\u2028\u00a0\u200b\x1c\x85 z ", "&<>\"'", "\\n", "[TOOL_CALLS]", "<tool_response>\nx\n</tool_response>", "/think", "/no_think hello",
         "<|channel|>analysis<|message|>q", "null", '{"a": 1}', "[1, 2]", "0", "İıßΣσς", "\t", "'", "<b>", "a" * 50, "<image>", "\x00\x07\x7f"]
ROLES = ["user", "user", "assistant", "assistant", "assistant", "system", "tool", "developer", "ipython", "function", "observation", "critic"]
KWARGS = {"enable_thinking": [True, False], "reasoning_effort": ["low", "high", "none", "max"], "thinking": [True, False],
          "date_string": ["01 Jan 2025"], "builtin_tools": [["python"]], "tools_in_user_message": [True, False], "preserve_thinking": [True, False],
          "clear_thinking": [True, False], "custom_tools": [None], "xml_tools": [None], "thinking_budget": [0, 100, -1], "model_identity": ["M"],
          "add_vision_id": [True], "keep_all_reasoning": [True], "truncate_history_thinking": [True, False], "python_tools": [["f"]]}


class Random:
    """Conversations of random shape around the ones that templates know, many of them wrong."""

    def __init__(self, rng):
        self.rng = rng
        self.pick = rng.choice

    def text(self):
        return self.pick(TEXTS)

    def some(self, most, make):
        return [make() for _ in range(self.rng.randint(0, most))]

    def value(self, depth=0):
        k = self.rng.random()
        if k < 0.35 or depth > 2:
            return self.text()
        if k < 0.55:
            return self.pick([0, 1, -5, 10**20, 2**63, 0.0, -0.0, 1.5, 1e-7, 1e16, 1e22, 0.1, 3.0, 1e300])
        if k < 0.65:
            return self.pick([True, False, None])
        if k < 0.85:
            keys = ["type", "text", "a", "b", "name", "items", "é", "description", "properties", "required", "enum"]
            return {self.pick(keys): self.value(depth + 1) for _ in range(self.rng.randint(0, 3))}
        return self.some(3, lambda: self.value(depth + 1))

    def part(self):
        return self.pick([
            lambda: {"type": "text", "text": self.text()}, lambda: {"type": "text", "text": self.text()}, lambda: {"type": "image"},
            lambda: {"type": "image_url", "image_url": {"url": self.text()}}, lambda: {"type": "video"}, lambda: {"type": "audio", "audio": self.text()},
            lambda: {"text": self.text()}, lambda: {"type": "thinking", "thinking": self.text()},
            lambda: {"type": "tool_use", "id": self.text(), "name": self.text(), "input": self.value()}, self.text, self.value])()

    def content(self):
        k = self.rng.random()
        return self.text() if k < 0.7 else self.some(3, self.part) if k < 0.9 else self.value()

    def call(self):
        arguments = self.pick([lambda: {k: self.value() for k in self.rng.sample(["a", "b", "location", "é"], self.rng.randint(0, 3))}, self.text,
                               self.value])()
        f = {"name": self.pick(["f", "get_weather", self.text()]), "arguments": arguments}
        return f if self.rng.random() < 0.2 else {"id": self.pick(["call00001", "c"]), "type": "function", "function": f}

    def message(self, role=None):
        m = {"role": role or self.pick(ROLES), "content": self.content()}
        if self.rng.random() < 0.1:
            del m["content"]
        if m["role"] == "assistant" and self.rng.random() < 0.4:
            m["tool_calls"] = self.some(3, self.call)
        if self.rng.random() < 0.3:
            m[self.pick(["reasoning_content", "thinking", "reasoning"])] = self.pick([self.text(), None, self.value()])
        if m["role"] == "tool" and self.rng.random() < 0.6:
            m["tool_call_id"] = "call00001"
        if self.rng.random() < 0.2:
            m[self.pick(["name", "weight", "prefix", "tools", "citations", "items", "keys"])] = self.value()
        return m

    def property(self):
        return self.pick([
            lambda: {"type": self.pick(["string", "integer", "number", "boolean", "array", "object", ["string", "null"]]), "description": self.text(),
                     **({"enum": [self.text(), self.text()]} if self.rng.random() < 0.3 else {}),
                     **({"items": {"type": "string"}} if self.rng.random() < 0.3 else {}),
                     **({"default": self.value()} if self.rng.random() < 0.3 else {})},
            lambda: {"anyOf": [{"type": "string"}, {"type": "null"}]},
            lambda: {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            lambda: {"type": "array", "items": {"type": "object", "properties": {"q": {"type": "number", "description": self.text()}}}}, dict])()

    def tool(self):
        parameters = {"type": "object", "properties": {k: self.property() for k in self.rng.sample(["a", "b", "c", "z"], self.rng.randint(0, 3))}}
        if self.rng.random() < 0.6:
            parameters["required"] = self.rng.sample(["a", "b", "c"], self.rng.randint(0, 2))
        f = {"name": self.pick(["f", "g", self.text()]), "description": self.text(), "parameters": parameters}
        for key in ["description", "parameters"]:
            if self.rng.random() < 0.07:
                del f[key]
        return f if self.rng.random() < 0.1 else {"type": "function", "function": f}

    def messages(self):
        if self.rng.random() < 0.4:
            return [self.message() for _ in range(self.rng.randint(1, 6))]
        ms = [self.message("system")] if self.rng.random() < 0.4 else []
        for _ in range(self.rng.randint(1, 3)):
            ms += [self.message("user"), self.message("assistant")]
            if ms[-1].get("tool_calls"):
                ms += [tool(self.content(), name="f"), assistant(self.text())]
        return ms[:-1] if len(ms) > 1 and self.rng.random() < 0.5 else ms

    def case(self, name):
        kwargs = {k: self.pick(v) for k, v in KWARGS.items() if self.rng.random() < 0.12}
        tools = self.pick([None, None, [], self.some(3, self.tool)])
        return case(name, self.messages(), tools=tools, add_generation_prompt=self.rng.random() < 0.5, kwargs=kwargs)


def case(name, messages, **rest):
    return {"name": name, "messages": messages, "tools": None, "documents": None, "add_generation_prompt": False, "continue": None,
            "kwargs": {}, **rest}


def cases(drawn, seed=1):
    """All cases, and drawn random ones."""
    out = [case(f"{name}, prompt {prompt}", messages, add_generation_prompt=prompt, **rest)
           for name, (messages, rest) in CASES.items() for prompt in (False, True)]
    out += [case(name, messages, **{"continue": key}) for name, (messages, key) in CONTINUED.items()]
    rng = Random(random.Random(seed))
    return out + [rng.case(f"random {i}") for i in range(drawn)]
