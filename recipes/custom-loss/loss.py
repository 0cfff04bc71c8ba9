"""DPO as a loss of one's own, in plain Python.

The trainer sends a question a line and reads an answer a line. Keep nothing from one question to the next: after a crash a
question is asked again. Print to stderr; stdout is for answers.
"""
import json
import math
import sys


def loss(rows, params):
    """rows: chosen, rejected, chosen, ... Returns the value, its derivative by each log-probability, and metrics."""
    beta, pairs = params["beta"], len(rows) // 2
    value, margin, grads = 0.0, 0.0, []
    for chosen, rejected in zip(rows[::2], rows[1::2]):
        x = beta * (gain(chosen) - gain(rejected))
        # -log(sigmoid(x)), and its derivative by x, without overflow on either side
        value += max(-x, 0.0) + math.log1p(math.exp(-abs(x)))
        slope = -(math.exp(-x) / (1 + math.exp(-x)) if x > 0 else 1 / (1 + math.exp(x)))
        grads.append([beta * slope / pairs * w for w in chosen["weights"]])
        grads.append([-beta * slope / pairs * w for w in rejected["weights"]])
        margin += x
    wins = sum(gain(c) > gain(r) for c, r in zip(rows[::2], rows[1::2]))
    return value / pairs, grads, {"accuracy": wins / pairs, "margin": margin / pairs}


def gain(row):
    """How much likelier the sequence is than under the reference."""
    return sum(w * (now - ref) for w, now, ref in zip(row["weights"], row["logprobs"], row["ref_logprobs"]))


def main():
    params = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["type"] == "hello":
            params = asked["params"]
            reply = {"v": 1, "type": "ready", "name": "dpo in Python"}
        else:
            reply = {"v": 1, "id": asked["id"]}
            try:
                reply["loss"], reply["grads"], reply["metrics"] = loss(asked["rows"], params)
            except Exception as e:  # the run stops with this text
                reply["error"] = repr(e)
        print(json.dumps(reply), flush=True)


main()
