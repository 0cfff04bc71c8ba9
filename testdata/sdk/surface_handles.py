"""The surface of the handles: resources, sessions, trainers and generators. See surface.py."""
import asyncio
import warnings

from together.post_training import clients

from kinds import ADAM, CROSS_ENTROPY, QUICK, TEXT, TINY, asynchronous, do, held, logprobs, model_input, sample


async def handles(url):
    resource = await do(clients.ModelResourcesClient, "create", base_model=TINY, base_url=url, api_key="any", inactive_timeout=900,
                        compute_config={"num_generator_replicas": 1}, lora_enabled=True, ready_timeout=60, **QUICK)
    async with held(resource):
        assert (await do(resource, "retrieve")).id == resource.model_resources_id
        assert (await do(resource, "extend_expiry", seconds=1800)).expires_at
        other = await do(clients.ModelResourcesClient, "attach", model_resources_id=resource.model_resources_id, base_url=url, api_key="any")
        if not asynchronous:
            assert other.run(other.retrieve_async()).status == "MODEL_RESOURCES_STATUS_READY"
        await do(other, "detach")
        session = await do(resource, "create_session", display_name="handles", lora_config={"rank": 4, "alpha": 8, "seed": 3}, **QUICK)
        async with held(session):
            same = await do(clients.SessionClient, "attach", session_id=session.session_id, base_url=url, api_key="any")
            assert same.has_generator and same.session_id == session.trainer.session_id == session.generator.session_id
            if asynchronous:
                assert (await same.run_async(same.retrieve_async())).display_name == "handles"
            else:
                assert same.run(same.retrieve_async()).display_name == "handles"
            await do(same, "detach")
            await train(session)
            await publish(session)
            saved = await do(session, "create_training_checkpoint", **QUICK)
            final = await do(session, "create_inference_checkpoint", **QUICK)
            assert int(saved.step) == int(final.step) == int((await do(session, "retrieve")).step) > 0, (saved, final)
            before = await do(session.trainer, "forward", samples=[sample(TEXT)], loss=CROSS_ENTROPY, **QUICK)
        resumed = await do(clients.SessionClient, "create", model_resources_id=resource.model_resources_id, base_url=url, api_key="any",
                           resume_from_checkpoint_id=saved.id, load_optimizer=True, **QUICK)
        after = await do(resumed.trainer, "forward", samples=[sample(TEXT)], loss=CROSS_ENTROPY, **QUICK)
        assert logprobs(after) == logprobs(before), "the resumed weights are others"
        assert (await do(resumed, "stop")).id == resumed.session_id
        await do(resource, "stop")
    async with held(await do(clients.ModelResourcesClient, "create", base_model=TINY, base_url=url, api_key="any", optimizer_config={"muon": {}},
                             compute_config={"num_generator_replicas": 0}, **QUICK)) as muon:
        async with held(await do(muon, "create_session", **QUICK)) as session:
            assert not session.has_generator
            try:
                session.generator
            except RuntimeError as error:
                assert "generator capability" in str(error), error
            else:
                raise AssertionError("a session without generators gave one")
            losses = []
            for _ in range(4):
                losses.append((await do(session.trainer, "forward_backward", samples=[sample(TEXT)], loss=CROSS_ENTROPY, **QUICK)).loss)
                await do(session.trainer, "optim_step", muon_params={"learning_rate": 0.02, "momentum": 0.9, "newton_schulz_steps": 5, "adam": {"learning_rate": 0.01}}, **QUICK)
            assert losses[-1] < losses[0], losses


async def train(session):
    """Every loss moves the weights the way it says, and a custom gradient is worth the loss that it comes from."""
    trainer, row, n = session.trainer, sample(TEXT), len(TEXT) - 1
    losses = []
    for _ in range(8):
        losses.append((await do(trainer, "forward_backward", samples=[row], loss=CROSS_ENTROPY, **QUICK)).loss)
        await do(trainer, "optim_step", adam_params=ADAM, **QUICK)
    assert losses[-1] < losses[0] * 0.9, losses
    scored = await do(trainer, "forward", samples=[row], loss=CROSS_ENTROPY, return_loss_fn_outputs=True, **QUICK)
    now = logprobs(scored)[0]
    policy = sample(TEXT, logprobs=now, advantages=[1.0] * n, reference_logprobs=[l - 0.1 for l in now], mask=[1.0] * n)
    for loss in (
        {"type": "LOSS_TYPE_IMPORTANCE_SAMPLING"}, {"type": "LOSS_TYPE_PPO", "ppo_params": {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}},
        {"type": "LOSS_TYPE_CISPO", "cispo_params": {"clip_low_threshold": 0.0, "clip_high_threshold": 4.0}},
        {"type": "LOSS_TYPE_DRO", "dro_params": {"beta": 0.1}}, {"type": "LOSS_TYPE_DPPO", "dppo_params": {"delta_low": 0.15, "delta_high": 0.15}},
        {"type": "LOSS_TYPE_GRPO", "grpo_params": {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28, "beta": 0.01, "agg_type": "GRPO_LOSS_AGGREGATION_TYPE_TOKEN_MEAN",
                                                   "ratio_type": "GRPO_LOSS_RATIO_TYPE_TOKEN"}},
        {"type": "grpo"},
    ):
        before = sum(logprobs(await do(trainer, "forward", samples=[row], loss=CROSS_ENTROPY, **QUICK))[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of reference_logprobs, which most of them do not know
            got = await do(trainer, "forward_backward", samples=[policy], loss=loss, return_loss_fn_outputs=True, **QUICK)
        assert len(logprobs(got)[0]) == n and got.loss is not None, (loss, got)
        await do(trainer, "optim_step", adam_params={**ADAM, "learning_rate": 1e-3}, **QUICK)
        after = sum(logprobs(await do(trainer, "forward", samples=[row], loss=CROSS_ENTROPY, **QUICK))[0])
        assert after > before, f"{loss}: what had an advantage of 1 became less likely, {before} to {after}"
    assert await do(trainer, "custom_forward_backward", samples=[row], gradients=[{"data": [-1.0] * n}], **QUICK) is not None
    before = int((await do(session, "retrieve")).step)
    done = await do(trainer, "optim_step", adam_params={**ADAM, "learning_rate": 1e-3}, **QUICK)
    assert int(done.step) == before + 1, done
    gained = sum(logprobs(await do(trainer, "forward", samples=[row], loss=CROSS_ENTROPY, **QUICK))[0])
    assert gained > after, "the gradient of minus the log-probability made it less likely"


async def publish(session):
    """What the generators say is what the trainer says, of the version that was published."""
    trainer, generator = session.trainer, session.generator
    version = int((await do(session, "retrieve")).policy_state.trainer_step)
    for way in ("WEIGHT_SYNC_TYPE_BACKGROUND_PUBLISH", "WEIGHT_SYNC_TYPE_PIPELINE", "WEIGHT_SYNC_TYPE_SYNCHRONOUS"):
        assert int((await do(trainer, "weights_sync", weight_sync_type=way, **QUICK)).weights_version) == version
    own = logprobs(await do(trainer, "forward", samples=[sample(TEXT)], loss=CROSS_ENTROPY, **QUICK))[0]
    told = await do(generator, "compute_logprobs", model_input(TEXT), **QUICK)
    assert told[0] == 0 and list(told[1:]) == own, "generator and trainer differ"
    many = await do(generator, "compute_logprobs_batch", [model_input(TEXT), model_input(TEXT[:5])], **QUICK)
    assert [list(m) for m in many] == [list(told), list(told[:5])]
    params = {"max_tokens": 5, "temperature": 0.8, "top_p": 0.95, "top_k": 40}
    one = await do(generator, "sample", model_input(TEXT[:7]), num_samples=3, sampling_params=params, prompt_logprobs=True, topk_prompt_logprobs=2, **QUICK)
    assert len(one.sequences) == 3 and one.policy_segments[0].version == version and list(one.prompt_logprobs[1:]) == own[:6], one
    two = await do(generator, "sample_batch", [model_input(TEXT[:7]), model_input(TEXT)], num_samples=3, sampling_params=params, **QUICK)
    assert [s.tokens for s in two[0].sequences] == [s.tokens for s in one.sequences] and len(two) == 2, "the same call gave other samples"


async def large(url, document):
    """Bodies and answers that do not fit a request go by presigned addresses, and mean the same."""
    share, patient = 0.12345679104328156, {"interval": 0.1}
    rows = [[(i * 31 + t * 7) % 200 + 32 for t in range(780)] for i in range(128)]
    some = [sample(row, weights=[share] * 779) for row in rows[:26]]
    ups = lambda: document.seen["PUT", "presigned", 200]
    downs = lambda: document.seen["GET", "presigned", 200]
    async with held(await do(clients.ModelResourcesClient, "create", base_model=TINY, base_url=url, api_key="any", **QUICK)) as resource:
        async with held(await do(resource, "create_session", lora_config={"rank": 2, "seed": 1}, **QUICK)) as session:
            up, down = ups(), downs()
            whole = await do(session.trainer, "forward", samples=some, loss=CROSS_ENTROPY, **patient)
            assert (ups(), downs()) == (up + 1, down), "the body went inline, or the answer did not"
            assert len(logprobs(whole)) == 26 and abs(whole.loss / -sum(map(sum, logprobs(whole))) / share - 1) < 1e-6, whole.loss
            few = await do(session.trainer, "forward", samples=some[3:5], loss=CROSS_ENTROPY, **patient)
            assert ups() == up + 1 and logprobs(few) == logprobs(whole)[3:5], "the upload is other samples"
            trained = await do(session.trainer, "forward_backward", samples=some, loss=CROSS_ENTROPY, **patient)
            assert ups() == up + 2 and abs(trained.loss / whole.loss - 1) < 1e-6, trained
            await do(session.trainer, "custom_forward_backward", samples=some, gradients=[{"data": [share] * 779} for _ in some], **patient)
            assert ups() == up + 3
            # The gradients cancel one another: what is left moves nothing but by rounding.
            await do(session.trainer, "optim_step", adam_params={**ADAM, "eps": 1.0}, **QUICK)
            still = await do(session.trainer, "forward", samples=some[3:5], loss=CROSS_ENTROPY, **patient)
            assert abs(still.loss / few.loss - 1) < 1e-4, "the uploaded gradients are not those of the samples"
            prompts = [model_input([(i + t) % 100 + 100 for t in range(270)]) for i in range(500)]
            sampled = await do(session.generator, "sample_batch", prompts, sampling_params={"max_tokens": 1, "temperature": 0.0}, **patient)
            assert ups() == up + 4 and len(sampled) == 500 and all(len(s.sequences[0].tokens) == 1 for s in sampled)
            topped = await do(session.generator, "sample_batch", [model_input(TEXT * 20)] * 10, sampling_params={"max_tokens": 1}, prompt_logprobs=True, topk_prompt_logprobs=20, **patient)
            assert downs() == down + 1 and all(len(t.topk_prompt_logprobs) == len(TEXT) * 20 and len(t.topk_prompt_logprobs[9].token_ids) == 20 for t in topped)
            if asynchronous:
                return  # the answer to a forward is the same code, and costs seconds
            answer = await do(session.trainer, "forward", samples=[sample(row) for row in rows], loss=CROSS_ENTROPY, **patient)
            assert downs() == down + 2 and abs(answer.loss / -sum(map(sum, logprobs(answer))) - 1) < 1e-6 and len(logprobs(answer)) == 128


async def together_at_once(url):
    """Several handles at a time get what each of them gets alone."""
    async def lone(seed):
        async with held(await do(clients.ModelResourcesClient, "create", base_model=TINY, base_url=url, api_key="any", **QUICK)) as resource:
            async with held(await do(resource, "create_session", lora_config={"rank": 2, "seed": seed}, **QUICK)) as session:
                for _ in range(3):
                    await do(session.trainer, "forward_backward", samples=[sample(TEXT)], loss=CROSS_ENTROPY, **QUICK)
                    await do(session.trainer, "optim_step", adam_params=ADAM, **QUICK)
                return (await do(session.trainer, "forward", samples=[sample(TEXT)], loss=CROSS_ENTROPY, **QUICK)).loss

    alone = [await lone(seed) for seed in (1, 2, 3)]
    if asynchronous:
        assert await asyncio.gather(*map(lone, (1, 2, 3))) == alone
    assert len(set(alone)) == 3, alone
