#!/usr/bin/env python3
"""Writes curves.json: learning rates of whole runs, computed apart from the Go code.

The formulas are those of the projects named at each function, in their own form and step count (c counts from 0);
where ours differs it is said. Warm-up is ours: step c has (c + 1) / W. Usage: python3 curves.py > curves.json
"""
import json
import math


def linear(c, W, T):  # transformers get_linear_schedule_with_warmup
    return float(T - c) / float(max(1, T - W))


def cosine(c, W, T):  # transformers get_cosine_schedule_with_warmup, num_cycles 0.5
    p = float(c - W) / float(max(1, T - W))
    return 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * p))


def restarts(c, W, T, n):  # transformers get_cosine_with_hard_restarts_schedule_with_warmup, in exact fractions
    from fractions import Fraction
    p = Fraction(n * (c - W), max(1, T - W)) % 1
    return 0.5 * (1.0 + math.cos(math.pi * float(p)))


def polynomial(c, W, T, power):  # transformers get_polynomial_decay_schedule_with_warmup, lr_end 0
    return (1 - (c - W) / (T - W)) ** power


def inverse_sqrt(c, W):  # transformers get_inverse_sqrt_schedule
    scale = W or 10_000
    return 1.0 / math.sqrt((c + scale - W) / scale)


def step_lr(c, W, every, gamma):  # torch StepLR, chained: the rate is multiplied at every multiple of step_size
    rate = 1.0
    for i in range(1, c - W + 1):
        if i % every == 0:
            rate *= gamma
    return rate


def wsd(c, W, T, decay_steps, kind):  # transformers get_wsd_schedule
    stable = T - W - decay_steps
    if c < W + stable:
        return 1.0
    p = float(c - W - stable) / float(max(1, decay_steps))
    if kind == "linear":
        return 1.0 - p
    if kind == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * p))
    return 1.0 - math.sqrt(p)


def one_cycle(c, T, start, floor):
    # torch OneCycleLR with cosine annealing; ours peaks on a whole step and ends where step T + 1 would be
    def anneal(a, b, pct):
        return b + (a - b) / 2.0 * (math.cos(math.pi * pct) + 1)
    peak = math.floor(0.3 * T + 0.5)  # halves up
    if c < peak:
        return anneal(max(start, floor), 1.0, c / peak)
    return anneal(1.0, floor, (c - peak) / (T - peak))


def piecewise(c, W, points):  # numpy.interp by hand over the points, the peak at step W + 1 put before them
    if points[0][0] > W + 1:
        points = [[W + 1, 1.0]] + points
    k = c + 1
    for (a, fa), (b, fb) in zip(points, points[1:]):
        if a <= k <= b:
            return fa + (k - a) * (fb - fa) / (b - a)
    return points[-1][1] if k > points[-1][0] else points[0][1]


def scaled(f, floor):  # transformers get_cosine_with_min_lr_schedule_with_warmup, Megatron-LM
    return f * (1 - floor) + floor


def curve(kind, params, W, T, floor, peak=2e-4):
    def share(c):
        match kind:
            case "constant": return 1.0
            case "linear": return scaled(linear(c, W, T), floor)
            case "cosine": return scaled(cosine(c, W, T), floor)
            case "cosine_with_restarts": return scaled(restarts(c, W, T, params["num_cycles"]), floor)
            case "polynomial": return scaled(polynomial(c, W, T, params["power"]), floor)
            case "wsd": return scaled(wsd(c, W, T, params["decay_steps"], params["decay"]), floor)
            case "inverse_sqrt": return max(floor, inverse_sqrt(c, W))  # Megatron-LM
            case "step": return max(floor, step_lr(c, W, params["every"], params["gamma"]))
            case "piecewise": return max(floor, piecewise(c, W, params["points"]))
            case "exponential": return math.exp(math.log(floor or 0.01) * (c - W) / (T - W))
            case "one_cycle": return one_cycle(c - W, T - W, params["start_ratio"], floor)
    rates = [peak * (c + 1) / W * share(W) if c < W else peak * share(c) for c in range(T)]
    return {"kind": kind, "params": {k: v for k, v in params.items() if k != "decay_steps"}, "warmup": W,
            "steps": T, "floor": floor, "peak": peak, "rates": rates}


def main():
    shapes = [
        ("constant", {}), ("linear", {}), ("cosine", {}), ("inverse_sqrt", {}), ("exponential", {}),
        ("cosine_with_restarts", {"num_cycles": 1}), ("cosine_with_restarts", {"num_cycles": 3}),
        ("polynomial", {"power": 2.0}), ("polynomial", {"power": 0.5}),
        ("step", {"every": 7, "gamma": 0.5}), ("step", {"every": 1, "gamma": 0.9}),
        ("piecewise", {"points": [[10, 0.5], [20, 0.5], [35, 0.05]]}),
        ("piecewise", {"points": [[0, 1.0], [30, 0.2], [60, 0.1]]}),
        ("wsd", {"decay_ratio": 0.2, "decay": "linear"}), ("wsd", {"decay_ratio": 0.5, "decay": "cosine"}),
        ("wsd", {"decay_ratio": 0.25, "decay": "1-sqrt"}),
        ("one_cycle", {"start_ratio": 0.04}), ("one_cycle", {"start_ratio": 0.3}),
    ]
    curves = []
    for kind, params in shapes:
        for W, T, floor in [(0, 40, 0.0), (4, 40, 0.0), (5, 40, 0.1), (1, 7, 0.25)]:
            if kind == "wsd":
                params = dict(params, decay_steps=math.floor(params["decay_ratio"] * T + 0.5))
            curves.append(curve(kind, params, W, T, floor))
    print("[" + ",\n".join(json.dumps(c) for c in curves) + "]")


main()
