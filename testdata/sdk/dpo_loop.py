"""DPO as a loss of one's own, on sandbox/pretrained-tiny: forward gives log-probabilities, the derivative of the DPO loss by them is
a line of Python, custom_forward_backward takes it. The base greets in two manners, each about every other time; the pairs prefer one.

The margin and the accuracy of held-out pairs must grow, and the preferred manner must be what is sampled. The log-probability of the
chosen is told beside them: a margin also grows where both manners become unlikely, and then the model has learned to say neither.

usage: python dpo_loop.py [SEED]
Source of the loss: Rafailov et al. 2023 (arXiv 2305.18290), eq. 7."""
import math
import random
import statistics
import sys
import time

from byte_chat import SOON, answer, model_input, prompt, row, text
from together.post_training import AdamParams, ComputeConfig, LossConfig, ModelResourcesClient, SamplingParams

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
STEPS, BATCH, BETA = 24, 32, 0.2
SCORE = LossConfig(type="LOSS_TYPE_CROSS_ENTROPY")

rng = random.Random(SEED)


def name():
    return "".join(rng.choice("bdfgklmnprstv") + rng.choice("aeiou") for _ in range(3)).capitalize()


names = list(dict.fromkeys(name() for _ in range(400)))[:300]
held_out, trained = names[:60], names[60:]


def chosen(who):
    return f"Good day, {who}."


def rejected(who):
    return f"Hello, {who}!"


def rows_of(who):
    """The rows of chosen and rejected."""
    asked = prompt(f"Greet {who}.")
    return row(asked, answer(chosen(who))), row(asked, answer(rejected(who)))


def score(trainer, people):
    """(chosen, rejected) log-probabilities of whole answers under the weights now, and the rows."""
    rows = [r for who in people for r in rows_of(who)]
    outputs = []
    for at in range(0, len(rows), 128):  # the most that a request may have
        outputs += trainer.forward(samples=rows[at : at + 128], loss=SCORE, **SOON).loss_fn_outputs
    sums = [sum(o.tensors["logprobs"].data) for o in outputs]
    return list(zip(sums[::2], sums[1::2])), rows


def margin(now, reference):
    return BETA * ((now[0] - reference[0]) - (now[1] - reference[1]))


def gradient(r, slope):
    """The derivative by each log-probability: slope where the answer is, 0 in the prompt."""
    return {"data": [slope * w for w in r["loss_fn_inputs"]["weights"]["data"]], "dtype": "D_TYPE_FLOAT32"}


def share(generator):
    """How many of the sampled greetings of held-out names are the chosen ones."""
    results = generator.sample_batch(
        [model_input(prompt(f"Greet {who}.")) for who in held_out],
        num_samples=8,
        sampling_params=SamplingParams(temperature=1.0, max_tokens=24),
        **SOON,
    )
    return statistics.mean(text(s.tokens) == chosen(who) for who, r in zip(held_out, results) for s in r.sequences)


def report(session, when):
    now, _ = score(session.trainer, held_out)
    margins = [margin(n, reference[who]) for who, n in zip(held_out, now)]
    figures = {
        "margin": statistics.mean(margins),
        "accuracy": statistics.mean(1.0 if m > 0 else 0.5 if m == 0 else 0.0 for m in margins),  # a tie is a half
        "chosen log-probability": statistics.mean(c for c, _ in now),
        "sampled": share(session.generator),
    }
    print(when + ": " + ", ".join(f"{k} {v:.2f}" for k, v in figures.items()))
    return figures


start = time.monotonic()
with ModelResourcesClient.create(
    base_model="sandbox/pretrained-tiny", compute_config=ComputeConfig(num_generator_replicas=1), **SOON
) as resources, resources.create_session(lora_config={"rank": 16, "alpha": 32, "seed": SEED}, **SOON) as session:
    trainer = session.trainer
    reference = dict(zip(names, score(trainer, names)[0]))  # before the first step the policy is the reference
    before = report(session, "before")
    for _ in range(STEPS):
        people = rng.sample(trained, BATCH)
        now, rows = score(trainer, people)
        gradients = []
        for who, n, one, other in zip(people, now, rows[::2], rows[1::2]):
            # loss = -log sigmoid(margin); by the chosen log-probabilities -beta sigmoid(-margin), by the others the opposite
            slope = BETA / (1 + math.exp(margin(n, reference[who]))) / BATCH
            gradients += [gradient(one, -slope), gradient(other, slope)]
        trainer.custom_forward_backward(samples=rows, gradients=gradients, **SOON)
        trainer.optim_step(adam_params=AdamParams(learning_rate=1e-4), **SOON)
    trainer.weights_sync(**SOON)
    after = report(session, "after")

print(
    "dpo: held-out "
    + ", ".join(f"{name} {before[name]:.2f} to {after[name]:.2f}" for name in before)
    + f", {STEPS} steps, {time.monotonic() - start:.0f} s"
)
assert before["margin"] == 0 and before["accuracy"] == 0.5, "the policy is not its reference before the first step"
assert 0.2 < before["sampled"] < 0.65, "the base prefers a manner"
assert after["margin"] > 0.25 and after["accuracy"] > 0.95 and after["sampled"] > 0.7, "nothing was learned"
assert after["chosen log-probability"] > before["chosen log-probability"], "the margin grew at the cost of the chosen"
