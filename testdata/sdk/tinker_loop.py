"""The Tinker-compatible client of the official SDK, every call of it, against a sandbox that it starts itself:

    TRAINER=./trainer python testdata/sdk/tinker_loop.py sync|async [--torch]

It trains by each loss, samples what it has learned, saves and resumes, and gives back what it owns. A custom loss is
PyTorch's work; where that is not installed, standin/torch.py takes the derivative of the one that is used here, and --torch
refuses to do without."""
import pathlib
import sys
import warnings

try:
    import torch
except ImportError:
    if "--torch" in sys.argv:
        raise
    sys.path.append(str(pathlib.Path(__file__).parent / "standin"))
    import torch

import numpy
import together
import together.post_training.tinker as tinker
from tinker import TinkerError
from together.post_training import clients

from calls import Calls
from document import watch
from kinds import QUICK, TEXT, TINY, asynchronous, client, do, held, mode, raises, raw, run
from serving import sandbox

N = len(TEXT) - 1
ADAM = tinker.AdamParams(learning_rate=1e-2)


def datum(**tensors):
    """TEXT with its targets one token ahead; unless told otherwise cross-entropy's."""
    tensors = tensors or {"weights": [1.0] * N}
    inputs = {name: tinker.TensorData(values, dtype="float32") for name, values in tensors.items()}
    return tinker.Datum(model_input=tinker.ModelInput.from_ints(TEXT[:-1]), loss_fn_inputs={"target_tokens": tinker.TensorData(TEXT[1:], dtype="int64"), **inputs})


def narrow(values):
    """As the tensors of this client have them: float32."""
    return numpy.array(values, numpy.float32).tolist()


async def collected(future):
    return await future.result_async() if asynchronous else future.result(timeout=60)


async def answered(owner, name, *args, **kwargs):
    """Sampling calls: a future of the answer, or the answer awaited."""
    got = await do(owner, name, *args, **kwargs)
    return got if asynchronous else got.result()


async def lora(service, **kwargs):
    return await do(service, "create_lora_training_client", TINY, **kwargs)


async def score(training):
    """The loss of TEXT, and its log-probabilities."""
    out = await collected(await do(training, "forward", [datum()], "cross_entropy"))
    logprobs = list(out.loss_fn_outputs[0]["logprobs"].data)
    assert len(logprobs) == N and abs(out.metrics["loss:sum"] + sum(logprobs)) < 1e-3, out
    return out.metrics["loss:sum"], logprobs


async def step(training):
    future = await do(training, "optim_step", ADAM)
    assert future.id and await collected(future) is not None


async def learn(training):
    """Cross-entropy, with the operations sent ahead and collected later; then each policy loss."""
    begun, _ = await score(training)
    futures = []
    for _ in range(8):
        futures.append(await do(training, "forward_backward", [datum()], "cross_entropy"))
        futures.append(await do(training, "optim_step", ADAM))
    losses = [(await collected(f)).metrics["loss:sum"] for f in futures[::2]]
    for f in futures[1::2]:
        await collected(f)
    assert losses[0] == begun and all(b < a for a, b in zip(losses, losses[1:])), losses
    for loss, config in [("importance_sampling", None), ("ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}),
                         ("cispo", {"clip_low_threshold": 0.0, "clip_high_threshold": 4.0}), ("dro", {"beta": 0.05})]:
        before, now = await score(training)
        policy = datum(logprobs=now, advantages=[1.0] * N, mask=[1.0] * N)
        out = await collected(await do(training, "forward_backward", [policy], loss, config, return_loss_fn_outputs=True))
        assert len(out.loss_fn_outputs[0]["logprobs"].data) == N and "loss:sum" in out.metrics, (loss, out)
        await step(training)
        after, _ = await score(training)
        assert after < before, f"{loss}: what had an advantage became less likely"
    return begun, after


async def custom(service):
    """A custom loss is worth its derivative: minus the log-probabilities are cross-entropy."""
    def negative_log_likelihood(data, logprobs):
        total = -(logprobs[0] * torch.tensor([1.0] * N)).sum()
        return total, {"custom": total.item()}

    pair = [await lora(service, rank=4, seed=11) for _ in range(2)]
    await collected(await do(pair[0], "forward_backward", [datum()], "cross_entropy"))
    out = await collected(await do(pair[1], "forward_backward_custom", [datum()], negative_log_likelihood))
    begun, logprobs = await score(pair[1])
    assert abs(out.metrics["custom"] / begun - 1) < 1e-6 and list(out.loss_fn_outputs[0]["logprobs"].data) == logprobs, out
    for one in pair:
        await step(one)
    (whole, _), (by_hand, _) = await score(pair[0]), await score(pair[1])
    assert by_hand < begun and abs(by_hand / whole - 1) < 1e-6, (begun, whole, by_hand)
    for one in pair:
        await close(one)


async def close(training):
    await training.close_async() if asynchronous else training.close()


async def publish(training):
    sampling = await do(training, "save_weights_and_get_sampling_client")
    _, own = await score(training)
    told = await answered(sampling, "compute_logprobs", tinker.ModelInput.from_ints(TEXT))
    assert told[0] is None and narrow(told[1:]) == own, "the sampler scores otherwise than the trainer"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        got = await answered(sampling, "sample", tinker.ModelInput.from_ints(TEXT[:5]), num_samples=3, include_prompt_logprobs=True, topk_prompt_logprobs=2,
                             sampling_params=tinker.SamplingParams(max_tokens=4, temperature=0.7, top_k=20, top_p=0.9, stop=[5, 6]))
    assert any("token-id stops" in str(w.message) for w in warned), warned
    assert len(got.sequences) == 3 and all(0 < len(s.tokens) == len(s.logprobs) <= 4 for s in got.sequences), got
    assert narrow(got.prompt_logprobs[1:]) == own[:4], got
    await step(training)
    newer = await do(training, "save_weights_and_get_sampling_client", allow_stale=True, weight_sync_type="WEIGHT_SYNC_TYPE_BACKGROUND_PUBLISH")
    stale = await raises(RuntimeError, do(sampling, "sample", tinker.ModelInput.from_ints(TEXT), 1, tinker.SamplingParams(max_tokens=1)))
    assert "stale" in str(stale), stale
    await do(training, "save_weights_and_get_sampling_client")
    assert len((await answered(newer, "sample", tinker.ModelInput.from_ints(TEXT), 1, tinker.SamplingParams(max_tokens=1))).sequences) == 1


async def save_and_resume(service, training):
    trained, _ = await score(training)
    state = (await collected(await do(training, "save_state", "ignored"))).path
    weights = (await collected(await do(training, "save_weights_for_sampler", "ignored"))).path
    assert state and weights and state != weights
    if asynchronous:
        return  # the ways back have no asynchronous twin, and refuse to block a loop
    for create, begins in ((service.create_training_client_from_state, 0), (service.create_training_client_from_state_with_optimizer, 13)):
        with create(state) as resumed:
            loss, _ = await score(resumed)
            assert loss == trained, "the resumed weights are others"
            shown = resumed._session.retrieve()
            assert int(shown.step) == begins and shown.lora_config.rank == 8, shown
    error = await raises(ValueError, do(service, "create_training_client_from_state", weights))
    assert "CHECKPOINT_TYPE_TRAINING" in str(error), error


async def statuses(url):
    async with client(url) as c:
        resources = (await raw(c.post_training.model_resources.list())).data
        sessions = (await raw(c.post_training.sessions.list())).data
        return {r.id: r.status.rsplit("_STATUS_")[1] for r in resources}, {s.id: s.status.rsplit("_STATUS_")[1] for s in sessions}


def watch_calls():
    calls = Calls([__file__])
    of_mode = lambda name: (name.endswith("_async") or name in ("__aenter__", "__aexit__")) == asynchronous
    for owner in (tinker.ServiceClient, tinker.TrainingClient, tinker.SamplingClient):
        calls.watch(owner, of_mode)
    calls.watch(tinker.APIFuture, lambda name: of_mode(name) or name == "id")
    return calls


async def main():
    document, calls = watch(), watch_calls()
    with sandbox() as url:
        owner = tinker.ServiceClient(base_url=url, api_key="any")
        async with held(await lora(owner, rank=8, seed=5, train_unembed=False)) as training:
            begun, after = await learn(training)
            await publish(training)
            await save_and_resume(owner, training)
        resources, sessions = await statuses(url)
        assert set(resources.values()) == {"STOPPED"} and set(sessions.values()) == {"STOPPED"}, "what was owned goes on"

        lender = await do(clients.ModelResourcesClient, "create", base_model=TINY, base_url=url, api_key="any", **QUICK)
        borrower = tinker.ServiceClient(base_url=url, api_key="any", model_resources_id=lender.model_resources_id)
        training = await lora(borrower)
        await close(training)
        await custom(borrower)
        resources, sessions = await statuses(url)
        assert resources[lender.model_resources_id] == "READY" and set(sessions.values()) == {"STOPPED"}, "what was borrowed was stopped, or its sessions were not"
        if not asynchronous:
            try:
                borrower.create_rest_client()
            except TinkerError:
                pass
            else:
                raise AssertionError("there is no RestClient")
        await raises(ValueError, do(borrower, "create_lora_training_client", "Qwen/Qwen3.5-4B"))
        await do(lender, "stop")
        gone = await raises(together.BadRequestError, lora(borrower))
        assert gone.body["error"]["code"] == "model_resources_not_ready", gone.body
    want = {"sync": 18, "async": 15}[mode]
    assert len(calls.public) == want, f"{len(calls.public)} public names are watched, {want} were expected: {sorted(calls.public)}"
    assert not calls.left(), f"never called: {calls.left()}"
    print(f"{mode}: {len(calls.public)} names of the Tinker-compatible client called with {torch.__file__.rsplit('/', 2)[-2]}, {sum(document.seen.values())} answers by the document; "
          f"loss {begun:.1f} to {after:.1f}")


run(main)
