"""Supervised fine-tuning on a task that no base knows, a word backwards in capitals, from random weights and from pretrained ones.

The loss falls from both. Only the pretrained base, which can reverse and can write capitals, finds the rule: it answers words that
were never trained. The random one learns what answers look like.

usage: python sft_loop.py [SEED]"""
import random
import string
import sys
import time

from byte_chat import SOON, answer, exact_match, prompt, row
from together.post_training import AdamParams, ComputeConfig, LossConfig, ModelResourcesClient

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
STEPS, BATCH = 60, 32
LOSS = LossConfig(type="LOSS_TYPE_CROSS_ENTROPY")

rng = random.Random(SEED)
words = list(dict.fromkeys("".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 5))) for _ in range(1200)))
questions = {f"Shout {w} backwards.": w[::-1].upper() for w in words}
held_out = dict(list(questions.items())[:100])
trained = list(questions.items())[100:]


def loss_of(trainer, pairs):
    """Nats per trained token."""
    rows = [row(prompt(q), answer(a)) for q, a in pairs]
    return trainer.forward(samples=rows, loss=LOSS, **SOON).loss / sum(len(answer(a)) for _, a in pairs)


def learn(base_model):
    start = time.monotonic()
    draw = random.Random(SEED)
    with ModelResourcesClient.create(
        base_model=base_model, compute_config=ComputeConfig(num_generator_replicas=1), **SOON
    ) as resources, resources.create_session(lora_config={"rank": 16, "alpha": 32, "seed": SEED}, **SOON) as session:
        trainer, generator = session.trainer, session.generator
        first, before = loss_of(trainer, held_out.items()), exact_match(generator, held_out)
        for step in range(STEPS):
            rows = [row(prompt(q), answer(a)) for q, a in draw.sample(trained, BATCH)]
            trainer.forward_backward(samples=rows, loss=LOSS, **SOON)
            trainer.optim_step(adam_params=AdamParams(learning_rate=5e-3 * (1 - step / STEPS)), **SOON)
        trainer.weights_sync(**SOON)
        last, after = loss_of(trainer, held_out.items()), exact_match(generator, held_out)
    print(
        f"sft from {base_model}: held-out loss {first:.2f} to {last:.2f}, exact match {before:.2f} to {after:.2f},"
        f" {STEPS} steps, {time.monotonic() - start:.0f} s"
    )
    return first, last, before, after


first, last, before, after = learn("sandbox/bytes-tiny")
assert first > 5.2 and last < 0.7 * first, "nothing was learned from random weights"
assert before == 0 and after < 0.1, "the task does not tell the bases apart"
first, last, before, after = learn("sandbox/pretrained-tiny")
assert before < 0.05 and last < 0.4 and after > 0.55, "the pretrained base did not find the rule"
