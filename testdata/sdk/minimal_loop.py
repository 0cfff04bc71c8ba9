"""The documented minimal loop of the official SDK, as its documentation has it; only the address and the key come from
the environment (TOGETHER_BASE_URL, TOGETHER_API_KEY)."""
from together.post_training import ComputeConfig, ModelResourcesClient
from together.post_training import AdamParams, LossConfig, Sample

# "The capital of France is" and " Paris." as Qwen3.8 token IDs
tokens = [760, 6511, 314, 9338, 369, 11751, 13]
mask = [0.0] * 5 + [1.0] * 2  # train only on the reply
sample: Sample = {
    "model_input": {"chunks": [{"encoded_text": {"tokens": tokens[:-1]}}]},
    "loss_fn_inputs": {
        "target_tokens": {"data": tokens[1:], "dtype": "int64"},
        "weights": {"data": mask[1:], "dtype": "float32"},
    },
}

# Create a model resource
with ModelResourcesClient.create(
    base_model="Qwen/Qwen3.8-27B",
    compute_config=ComputeConfig(num_generator_replicas=0),
) as resources:

    # Create a session
    with resources.create_session() as session:

        # Train on the sample
        session.trainer.forward_backward(
            samples=[sample], loss=LossConfig(type="LOSS_TYPE_CROSS_ENTROPY")
        )
        session.trainer.optim_step(adam_params=AdamParams(learning_rate=1e-4))

        # Save the checkpoint
        print(session.create_inference_checkpoint().id)
