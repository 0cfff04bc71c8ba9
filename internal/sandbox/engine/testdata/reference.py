"""Log-probabilities and gradients of small models, by PyTorch in float64.

Usage: python reference.py        (needs torch; rewrites the .json files beside this script)

The weights are not stored: both sides compute them from the name and place of each number (see weight), so that the
reference shares nothing with the engine but the architecture.
"""
import json, math, os
import torch

torch.set_default_dtype(torch.float64)


def mix(z):
    m = (1 << 64) - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & m
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & m
    return z ^ (z >> 31)


def weight(name, index, scale):
    """A number in [-scale, scale), exact in float32 before scaling by a power of two."""
    h = 14695981039346656037
    for b in name.encode():
        h = ((h ^ b) * 1099511628211) & ((1 << 64) - 1)
    return (mix(h + index * 0x9E3779B97F4A7C15 & ((1 << 64) - 1)) >> 40) / (1 << 23) * scale - scale


def tensor(name, shape, scale, around=0.0):
    n = math.prod(shape)
    v = torch.tensor([around + weight(name, i, scale) for i in range(n)]).reshape(shape)
    return v.float().double().requires_grad_(True)


def ids(name, n, vocab):
    return [int((weight(name, i, 1) + 1) / 2 * vocab) for i in range(n)]


def rope(x, positions):
    half = x.shape[-1] // 2
    f = 10000.0 ** (-torch.arange(half).double() / half)
    a = positions[:, None].double() * f
    cos, sin = torch.cos(a), torch.sin(a)
    x1, x2 = x[..., :half], x[..., half:]
    return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], -1)


def rms(x, g):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * g


class Case:
    def __init__(self, name, config, lora, lengths):
        self.name, self.c, self.lora, self.lengths, self.p = name, config, lora, lengths, {}
        c = config
        self.two = c["Vocab"] > 1024
        if self.two:
            self.low = 16 * math.ceil(math.sqrt(c["Vocab"]) / 16)
            self.high = math.ceil(c["Vocab"] / self.low)
            self.add("model.embed_tokens.high.weight", (self.high, c["Dim"]), 0.5)
            self.add("model.embed_tokens.low.weight", (self.low, c["Dim"]), 0.5)
            self.add("lm_head.given_high.weight", (self.high, c["Dim"]), 0.5)
        else:
            self.add("model.embed_tokens.weight", (c["Vocab"], c["Dim"]), 0.5)
        for l in range(c["Layers"]):
            q = f"model.layers.{l}."
            self.add(q + "input_layernorm.weight", (c["Dim"],), 0.5, 1.0)
            self.add(q + "post_attention_layernorm.weight", (c["Dim"],), 0.5, 1.0)
            for n, o, i in [("self_attn.q_proj", c["Dim"], c["Dim"]), ("self_attn.k_proj", c["Dim"], c["Dim"]),
                            ("self_attn.v_proj", c["Dim"], c["Dim"]), ("self_attn.o_proj", c["Dim"], c["Dim"]),
                            ("mlp.gate_proj", c["Hidden"], c["Dim"]), ("mlp.up_proj", c["Hidden"], c["Dim"]),
                            ("mlp.down_proj", c["Dim"], c["Hidden"])]:
                self.add(q + n + ".weight", (o, i), 0.25)
                if lora:
                    self.pair(q + n, o, i)
        self.add("model.norm.weight", (c["Dim"],), 0.5, 1.0)
        if lora and lora["TrainUnembed"]:
            if self.two:
                self.pair("lm_head.high", self.high, c["Dim"])
                self.pair("lm_head.low", self.low, c["Dim"])
            else:
                self.pair("lm_head", c["Vocab"], c["Dim"])

    def add(self, name, shape, scale, around=0.0):
        self.p[name] = tensor(name, shape, scale, around)

    def pair(self, name, out, inn):
        name = "base_model.model." + name
        self.add(name + ".lora_A.weight", (self.lora["Rank"], inn), 0.25)
        self.add(name + ".lora_B.weight", (out, self.lora["Rank"]), 0.25)

    def linear(self, x, name, w):
        y = x @ w.T
        a = self.p.get(f"base_model.model.{name}.lora_A.weight")
        if a is not None:
            b = self.p[f"base_model.model.{name}.lora_B.weight"]
            y = y + self.lora["Alpha"] / self.lora["Rank"] * ((x @ a.T) @ b.T)
        return y

    def body(self, tokens):
        c, p = self.c, self.p
        t = torch.tensor(tokens)
        if self.two:
            x = p["model.embed_tokens.high.weight"][t // self.low] + p["model.embed_tokens.low.weight"][t % self.low]
        else:
            x = p["model.embed_tokens.weight"][t]
        n, hd = len(tokens), c["Dim"] // c["Heads"]
        mask = torch.full((n, n), -math.inf).triu(1)
        for l in range(c["Layers"]):
            q = f"model.layers.{l}."
            lin = lambda x, m: self.linear(x, q + m, p[q + m + ".weight"])
            heads = lambda y: y.view(n, c["Heads"], hd).transpose(0, 1)
            h = rms(x, p[q + "input_layernorm.weight"])
            pos = torch.arange(n)
            qq, kk = rope(heads(lin(h, "self_attn.q_proj")), pos), rope(heads(lin(h, "self_attn.k_proj")), pos)
            w = torch.softmax(qq @ kk.transpose(1, 2) / math.sqrt(hd) + mask, -1)
            a = (w @ heads(lin(h, "self_attn.v_proj"))).transpose(0, 1).reshape(n, c["Dim"])
            x = x + lin(a, "self_attn.o_proj")
            h = rms(x, p[q + "post_attention_layernorm.weight"])
            x = x + lin(torch.nn.functional.silu(lin(h, "mlp.gate_proj")) * lin(h, "mlp.up_proj"), "mlp.down_proj")
        return rms(x, p["model.norm.weight"])

    def logprobs(self, tokens, targets):
        h, t = self.body(tokens), torch.tensor(targets)
        if not self.two:
            z = self.linear(h, "lm_head", self.p["model.embed_tokens.weight"])
            return torch.log_softmax(z, -1).gather(1, t[:, None])[:, 0]
        hi, lo = t // self.low, t % self.low
        zh = self.linear(h, "lm_head.high", self.p["model.embed_tokens.high.weight"])
        zl = self.linear(h + self.p["lm_head.given_high.weight"][hi], "lm_head.low", self.p["model.embed_tokens.low.weight"])
        exists = hi[:, None] * self.low + torch.arange(self.low)[None, :] < self.c["Vocab"]
        zl = zl.masked_fill(~exists, -math.inf)
        return (torch.log_softmax(zh, -1).gather(1, hi[:, None]) + torch.log_softmax(zl, -1).gather(1, lo[:, None]))[:, 0]

    def run(self):
        vocab, out, total = self.c["Vocab"], [], 0
        for i, n in enumerate(self.lengths):
            tokens, targets = ids(f"input {i}", n, vocab), ids(f"target {i}", n, vocab)
            targets[-1] = vocab - 1
            lp = self.logprobs(tokens, targets)
            d = torch.tensor([weight(f"derivative {i}", t, 1) for t in range(n)]).float().double()
            total = total + (lp * d).sum()
            out.append([round(v, 9) for v in lp.tolist()])
        total.backward()
        train = [n for n in self.p if n.startswith("base_model.") == bool(self.lora)]
        grads = {}
        for n in sorted(train):
            # The whole tensor in two numbers that any wrong element changes: its norm, and its product with known numbers.
            g = self.p[n].grad.reshape(-1)
            probe = torch.tensor([weight("probe " + n, i, 1) for i in range(len(g))])
            grads[n] = {"norm": g.norm().item(), "probe": (g @ probe).item(), "head": g[:8].tolist()}
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, self.name + ".json"), "w") as f:
            json.dump({"config": self.c, "lora": self.lora, "lengths": self.lengths, "logprobs": out, "gradients": grads}, f, indent=1)
            f.write("\n")


shape = lambda vocab: {"Vocab": vocab, "Dim": 32, "Layers": 2, "Heads": 2, "Hidden": 48, "Context": 160}
lora = {"Rank": 5, "Alpha": 8.0, "TrainUnembed": True}
lengths = [1, 9, 70, 140]
Case("flat", shape(90), None, lengths).run()
Case("flat_lora", shape(90), lora, lengths).run()
Case("two_level", shape(1100), None, lengths).run()
Case("two_level_lora", shape(1100), lora, lengths).run()
