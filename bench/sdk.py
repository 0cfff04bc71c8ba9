"""The official SDK against the benchmarks' server: `loop` is the documented training loop, `cost` repeats one operation.

usage: python sdk.py loop|cost URL [--samples N] [--tokens N] [--steps N]      (python with together==3.1.1)
`cost` prints, as JSON, the seconds of CPU and of wall of each repetition, and the peak resident memory in KiB.
"""
import argparse
import json
import random
import resource
import time

from together.post_training import AdamParams, LossConfig, ModelResourcesClient, SessionClient

p = argparse.ArgumentParser()
p.add_argument("mode", choices=["loop", "cost"])
p.add_argument("url")
p.add_argument("--samples", type=int, default=8)
p.add_argument("--tokens", type=int, default=256)
p.add_argument("--steps", type=int, default=10)
a = p.parse_args()
rng = random.Random(1)
CE = LossConfig(type="LOSS_TYPE_CROSS_ENTROPY")


def sample(vocabulary):
    toks = [rng.randrange(vocabulary) for _ in range(a.tokens + 1)]
    weights = [0.0] * (a.tokens // 2) + [1.0] * (a.tokens - a.tokens // 2)
    return {
        "model_input": {"chunks": [{"encoded_text": {"tokens": toks[:-1]}}]},
        "loss_fn_inputs": {
            "target_tokens": {"data": toks[1:], "dtype": "int64"},
            "weights": {"data": weights, "dtype": "float32"},
        },
    }


def loop():
    batches = [[sample(256) for _ in range(a.samples)] for _ in range(4)]
    with ModelResourcesClient.create(api_key="k", base_url=a.url, base_model="sandbox/bytes-tiny", interval=0.1) as r:
        with r.create_session(interval=0.1) as s:
            for step in range(a.steps):
                s.trainer.forward_backward(samples=batches[step % 4], loss=CE)
                s.trainer.optim_step(adam_params=AdamParams(learning_rate=1e-4))


def cost():
    s = SessionClient.attach(session_id="ts", api_key="k", base_url=a.url)
    batch = [sample(151936) for _ in range(a.samples)]
    s.trainer.forward_backward(samples=batch, loss=CE)  # connections, imports, caches
    cpu, wall = [], []
    for _ in range(a.steps):
        c, t = time.process_time(), time.perf_counter()
        s.trainer.forward_backward(samples=batch, loss=CE)
        cpu.append(time.process_time() - c)
        wall.append(time.perf_counter() - t)
    print(json.dumps({"cpu": cpu, "wall": wall, "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


{"loop": loop, "cost": cost}[a.mode]()
