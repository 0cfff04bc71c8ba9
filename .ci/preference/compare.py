"""Three optimiser steps of every preference loss, and of forward_kl from rows, computed by PyTorch in float64, beside those of runs on
the sandbox.

    python compare.py WEIGHTS.safetensors PAIRS.jsonl LABELLED.jsonl TAUGHT.jsonl RUN…      (python with torch)

A RUN is the folder of a run of three steps of full weights, in file order, with Adam, of one of the losses. Nothing is shared with
what is compared but the weights at the start and the rows: tokens, masks, pairs, losses, gradients and steps are made here, the
gradients by autograd through a transformer of a few lines. Prints the largest difference and fails above 1e-6, relative to 1 + |x|,
of a difference to what it is one of.
"""
import json
import math
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

torch.set_num_threads(2)
BEGIN, END, USER, ASSISTANT = 256, 257, 259, 260
BATCH, STEPS, TOLERANCE = 4, 3, 1e-6
BETA = {"dpo": 0.1, "ipo": 0.1, "hinge": 0.1, "simpo": 2.0, "orpo": 0.1, "kto": 0.1}


def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8 : 8 + n])
    config, data = json.loads(head.pop("__metadata__")["config"]), bytearray(raw[8 + n :])
    at = lambda e: torch.frombuffer(data, dtype={"BF16": torch.bfloat16, "F32": torch.float32}[e["dtype"]], offset=e["data_offsets"][0], count=math.prod(e["shape"]))
    return config, {k: at(e).view(e["shape"]).double() for k, e in head.items()}


class Model:
    """Decoder-only: RMSNorm, rotary positions by halves, causal attention, SwiGLU, tied embeddings."""

    def __init__(self, path):
        self.c, self.w = read(path)
        for w in self.w.values():
            w.requires_grad_(True)

    def logprobs(self, ids):
        """Of every token of ids but the first, given those before it."""
        return self.distributions(ids)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]

    def distributions(self, ids):
        """Of every token of the vocabulary, in place of every token of ids but the first."""
        c, w = self.c, self.w
        dim, heads = c["Dim"], c["Heads"]
        size = dim // heads
        x = F.embedding(torch.tensor(ids[:-1]), w["model.embed_tokens.weight"])
        t = len(x)
        angle = torch.arange(t).double()[:, None] * 10000.0 ** (-torch.arange(size // 2).double() / (size // 2))
        cos, sin = angle.cos(), angle.sin()
        norm = lambda x, by: x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * by
        split = lambda y: y.view(t, heads, size).transpose(0, 1)

        def turn(y):
            p, q = y[..., : size // 2], y[..., size // 2 :]
            return torch.cat([p * cos - q * sin, q * cos + p * sin], -1)

        hidden = torch.ones(t, t).triu(1).bool()
        for i in range(c["Layers"]):
            of = lambda name: w[f"model.layers.{i}.{name}.weight"]
            h = norm(x, of("input_layernorm"))
            q, k, v = (split(h @ of(f"self_attn.{n}_proj").T) for n in "qkv")
            scores = (turn(q) @ turn(k).transpose(1, 2) / math.sqrt(size)).masked_fill(hidden, -math.inf)
            x = x + (scores.softmax(-1) @ v).transpose(0, 1).reshape(t, dim) @ of("self_attn.o_proj").T
            h = norm(x, of("post_attention_layernorm"))
            x = x + (F.silu(h @ of("mlp.gate_proj").T) * (h @ of("mlp.up_proj").T)) @ of("mlp.down_proj").T
        logits = norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T
        return logits.log_softmax(-1)


def conversation(prompt, answer):
    """Ids, and how many of them are the prompt."""
    given = [BEGIN, USER, *prompt.encode(), END, ASSISTANT]
    return given + [*answer.encode(), END], len(given)


def total(model, sequence):
    """The log-probability of the answer, and its length."""
    ids, given = sequence
    return model.logprobs(ids)[given - 1 :].sum(), len(ids) - given


def pair_loss(kind, c, r, ref):
    """c and r are (log-probability, tokens) of the sides, ref their log-probabilities under the reference."""
    (sc, nc), (sr, nr) = c, r
    beta = BETA.get(kind)
    gc, gr = sc - ref[0], sr - ref[1]
    if kind == "dpo":
        return -F.logsigmoid(beta * (gc - gr)), beta * gc, beta * gr
    if kind == "dpo_more":  # of means, with smoothing, a margin and a supervised term
        mc, mr = 0.2 * gc / nc, 0.2 * gr / nr
        x = mc - mr - 0.1
        return -0.9 * F.logsigmoid(x) - 0.1 * F.logsigmoid(-x) - 0.5 * sc / nc, mc, mr
    if kind == "simpo_more":
        return -F.logsigmoid(2.0 * (sc / nc - sr / nr) - 0.5) - 0.5 * sc / nc, 2.0 * sc / nc, 2.0 * sr / nr
    if kind == "ipo":
        return (gc / nc - gr / nr - 1 / (2 * beta)).square(), beta * gc, beta * gr
    if kind == "hinge":
        return F.relu(1 - beta * (gc - gr)), beta * gc, beta * gr
    if kind == "simpo":
        return -F.logsigmoid(beta * (sc / nc - sr / nr) - 0.5), beta * sc / nc, beta * sr / nr
    if kind == "slic":
        return F.relu(1 - sc + sr), sc, sr
    odds = lambda a: a - torch.log1p(-a.exp())
    ac, ar = sc / nc, sr / nr
    return -ac - beta * F.logsigmoid(odds(ac) - odds(ar)), beta * ac, beta * ar


def pair_step(kind, model, frozen, rows):
    values, chosen, rejected, sums = [], [], [], []
    for row in rows:
        sides = [conversation(row["prompt"], row[side]) for side in ("chosen", "rejected")]
        with torch.no_grad():
            ref = [total(frozen, s)[0] for s in sides]
        c, r = (total(model, s) for s in sides)
        value, rc, rr = pair_loss(kind, c, r, ref)
        values.append(value), chosen.append(rc), rejected.append(rr), sums.append((c[0], r[0]))
    mean = lambda xs: torch.stack([torch.as_tensor(x) for x in xs]).mean()
    return mean(values), {
        "rewards/chosen": mean(chosen), "rewards/rejected": mean(rejected), "rewards/margin": mean([c - r for c, r in zip(chosen, rejected)]),
        "rewards/accuracy": sum(bool(c > r) for c, r in zip(chosen, rejected)) / len(rows),
        "logps/chosen": mean([c for c, _ in sums]), "logps/rejected": mean([r for _, r in sums]),
    }


def kto_step(model, frozen, rows):
    beta = BETA["kto"]
    gain = lambda s: total(model, s)[0] - total(frozen, s)[0].detach()
    with torch.no_grad():
        others = [conversation(a["prompt"], b["completion"]) for a, b in zip(rows, rows[1:] + rows[:1])]
        z = max(0.0, float(torch.stack([gain(s) for s in others]).mean()))
        size = float(torch.stack([total(frozen, s)[0].abs() for s in others]).mean())  # of what z is a small difference of
    gains = [gain(conversation(r["prompt"], r["completion"])) for r in rows]
    values = [1 - torch.sigmoid(beta * (g - z) if r["label"] else beta * (z - g)) for g, r in zip(gains, rows)]

    def of(label):
        some = [(beta * g, beta * total(frozen, conversation(r["prompt"], r["completion"]))[0].abs()) for g, r in zip(gains, rows) if r["label"] == label]
        return tuple(torch.stack(x).mean() for x in zip(*some))

    return torch.stack(values).mean(), {"rewards/chosen": of(True), "rewards/rejected": of(False), "loss/kl": (z, size)}


def taught_step(model, rows):
    """The divergence by its definition, the teacher's likeliest tokens being all of its distribution; a mean over the positions."""
    values, entropies = [], []
    for row in rows:
        now = model.distributions(row["tokens"])
        for t, top in enumerate(row["teacher_topk"][1:]):
            if top:
                teacher = torch.distributions.Categorical(logits=torch.tensor([p for _, p in top]).double())
                values.append((teacher.probs * (teacher.logits - now[t, torch.tensor([v for v, _ in top])])).sum())
                entropies.append(teacher.entropy())
    kl, entropy = torch.stack(values).mean(), torch.stack(entropies).mean()
    return kl, {"train/loss": kl + entropy, "distill/teacher_entropy": entropy}


def compare(kind, run, weights, rows):
    model, frozen = Model(weights), Model(weights)
    optimizer = torch.optim.Adam(model.w.values(), lr=1, betas=(0.9, 0.95), eps=1e-4)
    metrics = [json.loads(line) for line in open(run / "metrics.jsonl")]
    worst = 0.0
    for step in range(STEPS):
        batch = rows[step * BATCH : (step + 1) * BATCH]
        if kind == "forward_kl":
            value, figures = taught_step(model, batch)
        else:
            value, figures = kto_step(model, frozen, batch) if kind == "kto" else pair_step(kind, model, frozen, batch)
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(list(model.w.values()), 1.0)
        got = next(m for m in metrics if m["step"] == step + 1)
        optimizer.param_groups[0]["lr"] = got["learning_rate"]
        optimizer.step()
        for name, want in {"distill/forward_kl" if kind == "forward_kl" else "train/loss": value, **figures}.items():
            want, size = map(float, want if isinstance(want, tuple) else (want, want))
            off = abs(got[name] - want) / (1 + abs(size))
            if not off <= TOLERANCE:
                sys.exit(f"{kind}, step {step + 1}: {name} is {got[name]}, PyTorch has {want}: {off:.1e} off")
            worst = max(worst, off)
    moved = abs(metrics[-1]["train/loss"] - metrics[0]["train/loss"])
    print(f"{kind}: {STEPS} steps, train/loss {metrics[0]['train/loss']:.6f} to {metrics[-1]['train/loss']:.6f}, at most {worst:.1e} off")
    if moved < 1e-3:
        sys.exit(f"{kind}: the loss has moved by {moved}, too little to compare steps by")


weights, pairs, labelled, taught, *runs = sys.argv[1:]
rows = {name: [json.loads(line) for line in open(path)] for name, path in (("pairs", pairs), ("labelled", labelled), ("taught", taught))}
for run in map(pathlib.Path, runs):
    kind = run.name.split("-")[0]
    compare(kind, run, weights, rows[{"kto": "labelled", "forward_kl": "taught"}.get(kind, "pairs")])
