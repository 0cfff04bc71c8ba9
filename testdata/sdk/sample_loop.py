"""Sampling with the official SDK: a session learns a sentence, and its generators give the sentence back once the weights are
published. What comes out must be the same for the same call, with the log-probabilities of the trainer, and a checkpoint must
arrive as real files."""
import json
import os
import pathlib
import struct
import tempfile

import together
from together.post_training import (
    AdamParams,
    ComputeConfig,
    LossConfig,
    ModelResourcesClient,
    SamplingParams,
    download_checkpoint,
)

SENTENCE = list(b"the capital of france is paris")
PROMPT, ANSWER = SENTENCE[:25], SENTENCE[25:]
STEPS = 60


def model_input(tokens):
    return {"chunks": [{"encoded_text": {"tokens": list(tokens)}}]}


def sample_of(tokens):
    """Every position counts."""
    return {
        "model_input": model_input(tokens[:-1]),
        "loss_fn_inputs": {
            "target_tokens": {"data": tokens[1:], "dtype": "int64"},
            "weights": {"data": [1.0] * (len(tokens) - 1), "dtype": "float32"},
        },
    }


def tokens_of(sequence):
    return [int(t) for t in sequence.tokens]


def shape(result):
    return [(tokens_of(s), list(s.logprobs)) for s in result.sequences]


loss = LossConfig(type="LOSS_TYPE_CROSS_ENTROPY")
greedy = SamplingParams(temperature=0.0, max_tokens=len(ANSWER))
warm = SamplingParams(temperature=1.0, max_tokens=8)

with ModelResourcesClient.create(
    base_model="sandbox/bytes-tiny", compute_config=ComputeConfig(num_generator_replicas=1)
) as resources:
    with resources.create_session() as session:
        generator, trainer = session.generator, session.trainer
        before = generator.sample(model_input(PROMPT), sampling_params=greedy)
        assert [s.version for s in before.policy_segments] == [0], before.policy_segments
        for _ in range(STEPS):
            trainer.forward_backward(samples=[sample_of(SENTENCE)], loss=loss)
            trainer.optim_step(adam_params=AdamParams(learning_rate=1e-2))
        stale = generator.sample(model_input(PROMPT), sampling_params=greedy)
        assert shape(stale) == shape(before), "an optim_step published by itself"
        synced = trainer.weights_sync()
        assert int(synced.weights_version) == STEPS, synced

        answer = generator.sample(model_input(PROMPT), sampling_params=greedy)
        assert tokens_of(answer.sequences[0]) == ANSWER, bytes(tokens_of(answer.sequences[0]))
        assert [(s.version, s.start_token) for s in answer.policy_segments] == [(STEPS, 0)], answer.policy_segments
        print("greedy after training:", bytes(tokens_of(answer.sequences[0])).decode())

        one = generator.sample(model_input(PROMPT), num_samples=4, sampling_params=warm)
        two = generator.sample(model_input(PROMPT), num_samples=4, sampling_params=warm)
        assert shape(one) == shape(two), "the same call twice differs"
        batch = generator.sample_batch(
            [model_input(PROMPT), model_input(SENTENCE[:5])], num_samples=4, sampling_params=warm
        )
        assert len(batch) == 2 and all(len(r.sequences) == 4 for r in batch)
        assert shape(batch[0]) == shape(one), "a neighbour changed the samples"

        stopped = generator.sample(
            model_input(PROMPT), sampling_params=SamplingParams(temperature=0.0, max_tokens=20, stop=["ri"])
        )
        assert stopped.sequences[0].stop_reason == "STOP_REASON_STOP", stopped
        assert bytes(tokens_of(stopped.sequences[0])) == b"pari", stopped

        scored = trainer.forward(samples=[sample_of(SENTENCE)], loss=loss)
        own = scored.loss_fn_outputs[0].tensors["logprobs"].data
        prompt = generator.compute_logprobs(model_input(SENTENCE))
        assert prompt[0] == 0 and list(prompt[1:]) == list(own), "the generator scores otherwise than the trainer"
        assert list(answer.sequences[0].logprobs) == list(own[-len(ANSWER):]), "sampled log-probabilities differ"
        many = generator.compute_logprobs_batch([model_input(SENTENCE), model_input(PROMPT)])
        assert list(many[0]) == list(prompt) and list(many[1]) == list(prompt[: len(PROMPT)])
        top = generator.sample(model_input(SENTENCE), sampling_params=greedy, prompt_logprobs=True, topk_prompt_logprobs=3)
        assert len(top.topk_prompt_logprobs) == len(SENTENCE) and top.topk_prompt_logprobs[25].token_ids[0] == ANSWER[0]

        checkpoint = session.create_inference_checkpoint()
        client = together.Together(api_key=os.environ["TOGETHER_API_KEY"], base_url=os.environ["TOGETHER_BASE_URL"])
        for variant, weights, tensor in [
            ("CHECKPOINT_VARIANT_ADAPTER", "adapter_model.safetensors", "base_model.model.lm_head.lora_A.weight"),
            ("CHECKPOINT_VARIANT_MERGED", "model.safetensors", "model.embed_tokens.weight"),
        ]:
            with tempfile.TemporaryDirectory() as folder:
                download_checkpoint(client, checkpoint.id, variant=variant, output_dir=folder)
                data = (pathlib.Path(folder) / weights).read_bytes()
                (length,) = struct.unpack("<Q", data[:8])
                header = json.loads(data[8 : 8 + length])
                assert tensor in header, sorted(header)
                end = max(t["data_offsets"][1] for name, t in header.items() if name != "__metadata__")
                assert len(data) == 8 + length + end, "the file is cut"
                print(f"{variant}: {len(header) - 1} tensors in {len(data)} bytes")
