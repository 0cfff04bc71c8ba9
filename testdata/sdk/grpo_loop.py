"""GRPO as its users write it, on sandbox/pretrained-tiny: groups of samples, rewards in Python, advantages within the group, one
update under the loss grpo, new weights to the generators. The task is to copy words of eight letters; the base has met none above
seven, and never gets one right. The reward is the share of the letters that are in their places, so that there is a way up.

The sampled reward must rise, and so must the greedy exact match of words that are in no update. The sampler's log-probabilities are
the trainer's, so the ratio of an on-policy update is 1, not about 1.

usage: python grpo_loop.py [SEED]"""
import random
import statistics
import string
import sys
import time

from byte_chat import SOON, answer, exact_match, model_input, prompt, row
from together.post_training import AdamParams, ComputeConfig, GrpoLossParams, LossConfig, ModelResourcesClient, SamplingParams

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
STEPS, PROMPTS, GROUP = 30, 16, 8
LOSS = LossConfig(type="LOSS_TYPE_GRPO", grpo_params=GrpoLossParams(agg_type="GRPO_LOSS_AGGREGATION_TYPE_TOKEN_MEAN"))

rng = random.Random(SEED)
words = list(dict.fromkeys("".join(rng.choices(string.ascii_lowercase, k=8)) for _ in range(700)))
questions = {f"Copy: {w}": w for w in words}
held_out = dict(list(questions.items())[:100])
trained = list(questions.items())[100:]


def reward(completion, want):
    """The share of the tokens, the end's too, that are in their places."""
    completion, want = [int(t) for t in completion], answer(want)
    return sum(a == b for a, b in zip(completion, want)) / max(len(completion), len(want))


def advantages(rewards):
    """The reward less the group's mean, over its spread; None where all are equal, which teaches nothing."""
    spread = statistics.pstdev(rewards)
    return [(r - statistics.mean(rewards)) / spread for r in rewards] if spread > 0 else None


def rollouts(generator, batch):
    """A row for every completion of a group with a difference, and the mean reward of all."""
    results = generator.sample_batch(
        [model_input(prompt(q)) for q, _ in batch],
        num_samples=GROUP,
        sampling_params=SamplingParams(temperature=1.0, max_tokens=12),
        **SOON,
    )
    rows, all_rewards = [], []
    for (question, want), result in zip(batch, results):
        rewards = [reward(s.tokens, want) for s in result.sequences]
        all_rewards += rewards
        for s, advantage in zip(result.sequences, advantages(rewards) or []):
            tokens = [int(t) for t in s.tokens]
            rows.append(row(prompt(question), tokens, logprobs=s.logprobs, advantages=[advantage] * len(tokens)))
    return rows, statistics.mean(all_rewards)


start = time.monotonic()
with ModelResourcesClient.create(
    base_model="sandbox/pretrained-tiny", compute_config=ComputeConfig(num_generator_replicas=1), **SOON
) as resources, resources.create_session(lora_config={"rank": 8, "alpha": 16, "seed": SEED, "train_unembed": False}, **SOON) as session:
    trainer, generator = session.trainer, session.generator
    before = exact_match(generator, held_out)
    rewards = []
    for step in range(STEPS):
        rows, mean = rollouts(generator, rng.sample(trained, PROMPTS))
        rewards.append(mean)
        if rows:
            result = trainer.forward_backward(samples=rows, loss=LOSS, **SOON)
            assert result.metrics["loss/ratio/mean"] == 1.0, result.metrics
            trainer.optim_step(adam_params=AdamParams(learning_rate=4e-3), **SOON)
            trainer.weights_sync(**SOON)
        if step % 10 == 9:
            print(f"step {step + 1}: reward {statistics.mean(rewards[-10:]):.2f} over ten steps")
    after = exact_match(generator, held_out)

first, last = statistics.mean(rewards[:5]), statistics.mean(rewards[-5:])
print(
    f"grpo: sampled reward {first:.2f} to {last:.2f}, held-out greedy exact match {before:.2f} to {after:.2f},"
    f" {STEPS} steps, {time.monotonic() - start:.0f} s"
)
assert before < 0.05 and first < 0.4, "the base knew the task"
assert last > 0.9 and after > 0.85, "nothing was learned"
