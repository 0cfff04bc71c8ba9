"""DPO as a loss of one's own, in PyTorch: write the value, and autograd makes the derivatives.

Use it by `command: [python3, torch_loss.py]`. All is float64: `trainer validate --check-loss` finds float32 too coarse.
"""
import json
import sys

import torch
import torch.nn.functional as F


def loss(rows, params):
    """rows have tensors of one dimension: logprobs, which have gradients, ref_logprobs and weights. Returns value and metrics."""
    gains = torch.stack([(r["weights"] * (r["logprobs"] - r["ref_logprobs"])).sum() for r in rows])
    margins = params["beta"] * (gains[::2] - gains[1::2])
    return -F.logsigmoid(margins).mean(), {"accuracy": (margins > 0).double().mean(), "margin": margins.mean()}


def answer(asked, params):
    for row in asked["rows"]:
        for name in ("logprobs", "ref_logprobs", "weights"):
            if name in row:
                row[name] = torch.tensor(row[name], dtype=torch.float64)
        row["logprobs"].requires_grad_()
    value, metrics = loss(asked["rows"], params)
    value.backward()
    grads = [row["logprobs"].grad for row in asked["rows"]]
    return {
        "loss": value.item(),
        "grads": [torch.zeros_like(r["logprobs"]).tolist() if g is None else g.tolist() for r, g in zip(asked["rows"], grads)],
        "metrics": {name: float(v) for name, v in metrics.items()},
    }


def main():
    torch.use_deterministic_algorithms(True)  # so that a run which is killed and resumed ends with the same weights
    torch.set_num_threads(1)
    params = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["type"] == "hello":
            params = asked["params"]
            reply = {"v": 1, "type": "ready", "name": "dpo in PyTorch"}
        else:
            reply = {"v": 1, "id": asked["id"]}
            try:
                reply.update(answer(asked, params))
            except Exception as e:  # the run stops with this text
                reply["error"] = repr(e)
        print(json.dumps(reply), flush=True)


main()
