"""The documented batch loop: eight samples a step under a linear decay. It must learn, and a session resumed from its
training checkpoint must go on where the first one stood."""
from together.post_training import AdamParams, ComputeConfig, LossConfig, ModelResourcesClient

NUM_STEPS = 30


def row(i):
    """A sentence whose end follows from its beginning."""
    tokens = [500, 600 + i, 700 + i, 800 + i, 900 + i]
    weights = [0.0, 0.0] + [1.0] * 3
    return {
        "model_input": {"chunks": [{"encoded_text": {"tokens": tokens[:-1]}}]},
        "loss_fn_inputs": {
            "target_tokens": {"data": tokens[1:], "dtype": "int64"},
            "weights": {"data": weights[1:], "dtype": "float32"},
        },
    }


batch = [row(i) for i in range(8)]
trained = sum(sum(s["loss_fn_inputs"]["weights"]["data"]) for s in batch)
loss_config = LossConfig(type="LOSS_TYPE_CROSS_ENTROPY")

with ModelResourcesClient.create(
    base_model="Qwen/Qwen3.8-27B", compute_config=ComputeConfig(num_generator_replicas=0)
) as resources:
    with resources.create_session() as session:
        losses = []
        for step in range(NUM_STEPS):
            result = session.trainer.forward_backward(samples=batch, loss=loss_config)
            rate = 5e-3 * (1 - step / NUM_STEPS)
            done = session.trainer.optim_step(adam_params=AdamParams(learning_rate=rate))
            losses.append(result.loss / trained)
        assert int(done.step) == NUM_STEPS, done
        scored = session.trainer.forward(samples=batch, loss=loss_config)
        after = sum(-lp for out in scored.loss_fn_outputs for lp in out.tensors["logprobs"].data) / trained
        checkpoint = session.create_training_checkpoint()
        print(f"loss per trained token: {losses[0]:.3f} at the first step, {losses[-1]:.3f} at the last, {after:.3f} after it")
        assert losses[0] > 10, "an untrained model knows nothing"
        assert losses[-1] < losses[0] / 2, "nothing was learned"
        assert after <= losses[-1] * 1.05

    with resources.create_session(resume_from_checkpoint_id=checkpoint.id) as session:
        again = session.trainer.forward(samples=batch, loss=loss_config)
        resumed = sum(-lp for out in again.loss_fn_outputs for lp in out.tensors["logprobs"].data) / trained
        assert abs(resumed - after) < 1e-6, (resumed, after)
        print(f"resumed from {checkpoint.id}: {resumed:.3f}")
