"""The sandbox's model in eager PyTorch, on so many threads of the CPU: what BenchmarkEngine compares the engine with.

usage: python peer.py WEIGHTS.safetensors [--form same|dense] [--lora RANK] [--threads N]      (python with torch)
It reads one JSON request a line and answers each with one: {"do": "check", "input": [[ids]], "targets": [[ids]]} gives the
log-probabilities; {"do": "batch", ...} keeps a batch; "train", "forward" and {"do": "sample", "prompt": [ids], "n": N, "new": N,
"temperature": T, "top_p": P} give the seconds that one took, of wall and of CPU. A dense form has a softmax over the whole vocabulary
where the engine has two levels, with weights of its own.
"""
import argparse
import json
import math
import struct
import sys
import time

import torch
import torch.nn.functional as F

args = argparse.ArgumentParser()
args.add_argument("weights")
args.add_argument("--form", choices=["same", "dense"], default="same")
args.add_argument("--lora", type=int, default=0)
args.add_argument("--threads", type=int, default=2)
a = args.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(1)


def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8 : 8 + n])
    meta, data = head.pop("__metadata__"), bytearray(raw[8 + n :])
    get = lambda e: torch.frombuffer(data, dtype=torch.float32, offset=e["data_offsets"][0], count=math.prod(e["shape"]))
    return json.loads(meta["config"]), {k: get(e).view(e["shape"]).clone() for k, e in head.items()}


c, W = read(a.weights)
D, H, L, V = c["Dim"], c["Heads"], c["Layers"], c["Vocab"]
HD = D // H
TWO = "model.embed_tokens.high.weight" in W
if TWO and a.form == "dense":
    W = {k: w for k, w in W.items() if ".high." not in k and ".low." not in k and "given" not in k}
    W["model.embed_tokens.weight"] = torch.randn(V, D) * 0.45 / math.sqrt(D)
    TWO = False
if TWO:
    HIGH, LOW = len(W["model.embed_tokens.high.weight"]), len(W["model.embed_tokens.low.weight"])
pairs = {}
if a.lora:
    for k, w in W.items():
        if "proj" in k or "embed_tokens" in k:
            pairs[k] = [torch.randn(a.lora, w.shape[1]) / math.sqrt(w.shape[1]), torch.zeros(w.shape[0], a.lora)]
trained = [p for pair in pairs.values() for p in pair] or list(W.values())
for p in trained:
    p.requires_grad_(True)
optimizer = torch.optim.AdamW(trained, lr=1e-3, betas=(0.9, 0.95), weight_decay=0, fused=True)
angle = torch.arange(512).double()[:, None] * 10000.0 ** (-torch.arange(HD // 2).double() / (HD // 2))
COS, SIN = torch.cos(angle).float(), torch.sin(angle).float()


def linear(x, name):
    y = F.linear(x, W[name])
    if name in pairs:  # alpha / rank is 2, as on the other side
        y = y + 2 * F.linear(F.linear(x, pairs[name][0]), pairs[name][1])
    return y


def rotate(x, at):
    cos, sin = COS[at : at + x.shape[2]], SIN[at : at + x.shape[2]]
    p, q = x[..., : HD // 2], x[..., HD // 2 :]
    return torch.cat([p * cos - q * sin, q * cos + p * sin], -1)


def embed(ids):
    if not TWO:
        return F.embedding(ids, W["model.embed_tokens.weight"])
    return F.embedding(ids // LOW, W["model.embed_tokens.high.weight"]) + F.embedding(ids % LOW, W["model.embed_tokens.low.weight"])


def body(ids, at=0, cache=None):
    """Hidden states [B][T][D] of ids, which begin at position at; cache is keys and values of every layer."""
    b, t = ids.shape
    x = embed(ids)
    heads = lambda y: y.view(b, t, H, HD).transpose(1, 2)
    for i in range(L):
        n = f"model.layers.{i}."
        h = F.rms_norm(x, (D,), W[n + "input_layernorm.weight"], 1e-5)
        q, k = rotate(heads(linear(h, n + "self_attn.q_proj.weight")), at), rotate(heads(linear(h, n + "self_attn.k_proj.weight")), at)
        v = heads(linear(h, n + "self_attn.v_proj.weight"))
        if cache is not None:
            cache[i][0][:, :, at : at + t], cache[i][1][:, :, at : at + t] = k, v
            k, v = cache[i][0][:, :, : at + t], cache[i][1][:, :, : at + t]
        m = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + linear(m.transpose(1, 2).reshape(b, t, D), n + "self_attn.o_proj.weight")
        h = F.rms_norm(x, (D,), W[n + "post_attention_layernorm.weight"], 1e-5)
        g = F.silu(linear(h, n + "mlp.gate_proj.weight")) * linear(h, n + "mlp.up_proj.weight")
        x = x + linear(g, n + "mlp.down_proj.weight")
    return F.rms_norm(x, (D,), W["model.norm.weight"], 1e-5)


def low_logits(h, high):
    z = linear(h + W["lm_head.given_high.weight"][high], "model.embed_tokens.low.weight")
    return z.masked_fill(high[:, None] * LOW + torch.arange(LOW) >= V, -math.inf)


def logprobs(ids, targets):
    h, t = body(ids).reshape(-1, D), targets.reshape(-1)
    if not TWO:
        return -F.cross_entropy(linear(h, "model.embed_tokens.weight"), t, reduction="none")
    high = t // LOW
    first = F.cross_entropy(linear(h, "model.embed_tokens.high.weight"), high, reduction="none")
    return -first - F.cross_entropy(low_logits(h, high), t % LOW, reduction="none")


def train(_):
    optimizer.zero_grad(set_to_none=True)
    (-logprobs(*batch).mean()).backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()


@torch.no_grad()
def forward(_):
    logprobs(*batch)


def choose(logits, r):
    """A token a row and its log-probability under the model itself."""
    own = torch.log_softmax(logits, -1)
    if r["temperature"] == 0:
        token = logits.argmax(-1, keepdim=True)
    elif r["top_p"] == 1:
        token = torch.multinomial(torch.softmax(logits / r["temperature"], -1), 1)
    else:
        p, order = torch.softmax(logits / r["temperature"], -1).sort(descending=True)
        p[p.cumsum(-1) - p >= r["top_p"]] = 0
        token = order.gather(1, torch.multinomial(p, 1))
    return token, own.gather(1, token)


def next_token(h, r):
    if not TWO:
        return choose(linear(h, "model.embed_tokens.weight"), r)
    high, first = choose(linear(h, "model.embed_tokens.high.weight"), r)
    low, second = choose(low_logits(h, high[:, 0]), r)
    return high * LOW + low, first + second


@torch.no_grad()
def sample(r):
    prompt, n, new = torch.tensor([r["prompt"]]), r["n"], r["new"]
    room = lambda b: [(torch.empty(b, H, prompt.shape[1] + new, HD), torch.empty(b, H, prompt.shape[1] + new, HD)) for _ in range(L)]
    one, cache, at = room(1), room(n), prompt.shape[1]
    h = body(prompt, 0, one)[:, -1].expand(n, D)
    for (k, v), (k1, v1) in zip(cache, one):
        k[:, :, :at], v[:, :, :at] = k1[:, :, :at], v1[:, :, :at]
    tokens, scores = [], []
    while True:
        token, score = next_token(h, r)
        tokens.append(token)
        scores.append(score)
        if len(tokens) == new:
            return torch.cat(tokens, 1).tolist(), torch.cat(scores, 1).tolist()
        h = body(token, at, cache)[:, -1]
        at += 1


print(json.dumps(f"torch {torch.__version__}"), flush=True)
for line in sys.stdin:
    r = json.loads(line)
    if r["do"] in ("check", "batch"):
        batch = torch.tensor(r["input"]), torch.tensor(r["targets"])
        answer = logprobs(*batch).view(batch[0].shape).tolist() if r["do"] == "check" else 0
    else:
        wall, cpu = time.perf_counter(), time.process_time()
        {"train": train, "forward": forward, "sample": sample}[r["do"]](r)
        answer = [time.perf_counter() - wall, time.process_time() - cpu]
    print(json.dumps(answer), flush=True)
