"""The surface of the generated client: each request by its method. See surface.py."""
import asyncio
import json
import pathlib
import tempfile
import uuid

import together
import together.post_training as pt

from kinds import ADAM, CROSS_ENTROPY, TEXT, TINY, asynchronous, client, logprobs, model_input, param, raises, raw, raw_later, sample


async def model_resources(url):
    async with client(url) as c:
        models = {m.base_model: m for m in (await raw(c.post_training.supported_models.get())).data}
        assert models[TINY].compute_configs[0].trainer_config.lora.max_rank == 64, models[TINY]
        api = c.post_training.model_resources
        body = {"base_model": "openai/gpt-oss-20b", "lora_enabled": True, "inactive_timeout": 600,
                "compute_config": {"num_generator_replicas": 2, "gpu_type": "B200-SXM"}, "optimizer_config": {"adam": {}}}
        dear, cheap = await raw(api.estimate_cost(**body)), await raw(api.estimate_cost(base_model="openai/gpt-oss-20b", compute_config={"num_generator_replicas": 0}))
        assert dear.currency == "USD" and dear.price_per_hour > cheap.price_per_hour > 0, (dear, cheap)
        one, two = await raw(api.create(**body)), await raw(api.create(base_model=TINY, base_weights_ref="together://ml_abc1"))
        assert one.status == "MODEL_RESOURCES_STATUS_PENDING" and one.compute_config.num_generator_replicas == 2, one
        assert two.base_weights_ref.startswith("together://ml_abc1@rv_"), "the revision is not pinned"
        ready = await raw(api.retrieve(one.id))
        assert ready.status == "MODEL_RESOURCES_STATUS_READY" and ready.inactive_timeout == 600, ready
        longer = await raw(api.extend_expiry(one.id, seconds=7200))
        assert (longer.expires_at - ready.expires_at).total_seconds() > 6000, (ready.expires_at, longer.expires_at)

        page = await raw(api.list(limit=1, created_by="me", status=["MODEL_RESOURCES_STATUS_READY", "MODEL_RESOURCES_STATUS_ERROR"]))
        assert [r.id for r in page.data] == [two.id] and page.meta.has_more, page
        rest = await raw(api.list(limit=1, after=page.meta.next_cursor))
        assert [r.id for r in rest.data] == [one.id] and not rest.meta.has_more, rest
        assert not (await raw(api.list(status=["MODEL_RESOURCES_STATUS_ERROR"]))).data

        session = await raw(c.post_training.sessions.create(model_resources_id=one.id))
        refused = await raises(together.BadRequestError, raw_later(api.stop, one.id))
        assert refused.body["error"]["code"] == "active_sessions", refused.body
        stopped = await raw(api.stop(one.id, force=True))
        assert stopped.status == "MODEL_RESOURCES_STATUS_STOPPING", stopped
        assert (await raw(c.post_training.sessions.retrieve(session.id))).status == "TRAINING_SESSION_STATUS_STOPPED"
        await raises(together.BadRequestError, raw_later(api.stop, one.id))
        await raw(api.stop(two.id))


async def sessions(url):
    async with client(url) as c:
        api = c.post_training.sessions
        resource = await raw(c.post_training.model_resources.create(base_model=TINY))
        lora = {"rank": 4, "alpha": 8, "dropout": 0.0, "seed": 7, "train_unembed": False}
        made = await raw(api.create(model_resources_id=resource.id, display_name="first", lora_config=lora,
                                    metadata={"wandb": {"project": "p", "url": "https://wandb.example/r"}}))
        assert made.status == "TRAINING_SESSION_STATUS_CREATING" and made.lora_config.rank == 4 and made.lora_config.seed == "7", made
        got = await raw(api.retrieve(made.id))
        assert got.status == "TRAINING_SESSION_STATUS_RUNNING" and got.step == "0" and got.policy_state.pending_publish is False, got
        renamed = await raw(api.update(made.id, display_name="second", metadata={"wandb": {"run_id": "r1", "url": ""}}))
        assert renamed.display_name == "second", renamed
        assert (renamed.metadata.wandb.project, renamed.metadata.wandb.run_id, renamed.metadata.wandb.url) == ("p", "r1", None), renamed
        page = await raw(api.list(model_resources_id=resource.id, status=["TRAINING_SESSION_STATUS_RUNNING"], created_by="me", limit=5))
        assert [s.id for s in page.data] == [made.id], page
        assert not (await raw(api.list(model_resources_id=resource.id, after=made.id))).data
        stopped = await raw(api.stop(made.id))
        assert stopped.status == "TRAINING_SESSION_STATUS_STOPPING", stopped
        await raw(c.post_training.model_resources.stop(resource.id))


async def operations(url):
    """Each operation by its own POST and GET, under keys of our own."""
    async with client(url) as c:
        api = c.post_training.operations
        resource = await raw(c.post_training.model_resources.create(base_model=TINY))
        session = (await raw(c.post_training.sessions.create(model_resources_id=resource.id, lora_config={"rank": 4, "seed": 1}))).id
        row = sample(TEXT)

        async def ended(kind, operation):
            while operation.status in ("TRAINING_OPERATION_STATUS_PENDING", "TRAINING_OPERATION_STATUS_RUNNING"):
                await asyncio.sleep(0.01) if asynchronous else None
                operation = await raw(getattr(api, "retrieve_" + kind)(operation.id, session_id=session))
            assert operation.status == "TRAINING_OPERATION_STATUS_COMPLETED", operation
            return operation.output

        async def run(kind, **body):
            post = getattr(api, "create_" + kind if kind.endswith("checkpoint") else kind)
            key = str(uuid.uuid4())
            operation = await raw(post(session, idempotency_key=key, **body))
            again = await raw(post(session, idempotency_key=key, **body))
            assert again.id == operation.id, f"{kind}: the same key made a second operation"
            return await ended(kind, operation), key

        scored, key = await run("forward_backward", loss=CROSS_ENTROPY, samples=[row], return_loss_fn_outputs=True)
        assert abs(scored.loss + sum(logprobs(scored)[0])) < 1e-3 and len(logprobs(scored)[0]) == len(TEXT) - 1, scored
        conflict = await raises(together.UnprocessableEntityError, raw_later(api.forward_backward, session, idempotency_key=key, loss=CROSS_ENTROPY, samples=[row, row]))
        assert param(conflict) == "Idempotency-Key", conflict.body
        gradients = [{"data": [-1.0] * (len(TEXT) - 1), "dtype": "D_TYPE_FLOAT32"}]
        await run("custom_forward_backward", samples=[row], gradients=gradients)
        stepped, _ = await run("optim_step", adam_params=ADAM)
        assert stepped.step == "1", "an operation that was sent twice is one"
        synced, _ = await run("weights_sync", weight_sync_type="WEIGHT_SYNC_TYPE_SYNCHRONOUS")
        assert synced.weights_version == "1", synced
        sampled, _ = await run("sample", model_inputs=[model_input(TEXT)], num_samples=2, prompt_logprobs=True, topk_prompt_logprobs=3,
                               return_routed_experts=False, sampling_params={"max_tokens": 4, "temperature": 1.0, "top_p": 0.9, "top_k": 50, "seed": 3, "stop": ["!"]})
        result = sampled.results[0]
        assert len(result.sequences) == 2 and len(result.prompt_logprobs) == len(TEXT) and len(result.topk_prompt_logprobs[1].token_ids) == 3, result
        assert all(len(s.tokens) == len(s.logprobs) <= 4 for s in result.sequences), result
        training, _ = await run("training_checkpoint")
        inference, _ = await run("inference_checkpoint")
        assert training.checkpoint.step == inference.checkpoint.step == "1", (training, inference)
        shown = await raw(c.post_training.sessions.retrieve(session))
        assert [k.id for k in shown.training_checkpoints] == [training.checkpoint.id] and shown.step == "1", shown
        await checkpoints(c, session, training.checkpoint, inference.checkpoint)
        await preparation(c, inference.checkpoint)
        await raw(c.post_training.model_resources.stop(resource.id, force=True))


async def checkpoints(c, session, training, inference):
    api = c.post_training.checkpoints
    got = await raw(api.retrieve(training.id))
    assert (got.type, got.base_model, got.session_id, got.lora_rank) == ("CHECKPOINT_TYPE_TRAINING", TINY, session, 4), got
    both = await raw(api.list(session_id=session, base_model=TINY, limit=10))
    assert [k.id for k in both.data] == [inference.id, training.id], both
    one = await raw(api.list(type="CHECKPOINT_TYPE_TRAINING", session_id=session))
    assert [k.id for k in one.data] == [training.id], one
    assert not (await raw(api.list(session_id=session, after=training.id))).data
    files = {f.filename: int(f.size) for f in (await raw(api.download(inference.id, variant="CHECKPOINT_VARIANT_ADAPTER"))).data}
    assert "adapter_model.safetensors" in files, files
    await raises(together.BadRequestError, raw_later(api.download, training.id, variant="CHECKPOINT_VARIANT_MERGED"))
    with tempfile.TemporaryDirectory() as folder:
        for variant, weights in (("CHECKPOINT_VARIANT_ADAPTER", "adapter_model.safetensors"), ("CHECKPOINT_VARIANT_MERGED", "model.safetensors")):
            download = pt.download_checkpoint_async if asynchronous else pt.download_checkpoint
            paths = await raw(download(c, inference.id, variant=variant, output_dir=pathlib.Path(folder) / variant))
            sizes = {p.name: p.stat().st_size for p in paths}
            assert sizes[weights] > 1000, sizes
            assert variant.endswith("MERGED") or sizes == files, (sizes, files)


async def preparation(c, checkpoint):
    """A job is priced, made, found, watched and cancelled."""
    api = c.post_training.prepare_for_fp4_inference
    inputs = {"model_object_id": checkpoint.registration.adapter.id, "model_revision_id": checkpoint.registration.adapter.revision_id}
    price = await raw(api.estimate_cost(inputs=inputs))
    assert price.price_usd == 0 and price.time_hours == 1, price  # the sandbox's own models cost nothing
    assert price.credit_limit > 0 and price.allowed_to_proceed is True, price
    job = await raw(api.create(inputs=inputs))
    assert job.id.startswith("shp-quant-") and job.job_type == "quantization" and job.status in ("pending", "queued", "running"), job
    assert job.params.inputs.model_object_id == inputs["model_object_id"] and job.params.configuration.base_model_name == TINY, job
    listed = await raw(api.list())
    assert listed.object == "list" and [j.id for j in listed.data] == [job.id], listed
    got = await raw(api.retrieve(job.id))
    assert got.id == job.id and got.created_at == job.created_at, got
    events = await raw(api.list_events(job.id))
    assert events.object == "list" and all(e.object == "shaping" and e.message for e in events.data), events
    cancelled = await raw(api.cancel(job.id))
    assert cancelled.id == job.id and cancelled.status in ("cancel_requested", "cancelled"), cancelled
    gone = await raises(together.NotFoundError, raw_later(api.retrieve, "shp-quant-none"))
    assert gone.body["error"]["message"], gone.body


async def wrapped(url):
    """The raw and the streaming form of a call of each kind, and the ways to them."""
    async with client(url) as c:
        everything = c.post_training
        for api, call in [(everything.supported_models, lambda a: a.get()), (everything.model_resources, lambda a: a.list()),
                          (everything.sessions, lambda a: a.list()), (everything.checkpoints, lambda a: a.list())]:
            response = await raw(call(api.with_raw_response))
            parsed = await raw(response.parse()) if asynchronous else response.parse()
            assert response.headers["content-type"] == "application/json" and parsed.data is not None, response
            if asynchronous:
                async with call(api.with_streaming_response) as stream:
                    text = "".join([part async for part in stream.iter_text()])
            else:
                with call(api.with_streaming_response) as stream:
                    text = "".join(stream.iter_text())
            assert json.loads(text)["data"] is not None, text
        for api in (everything, everything.operations, everything.prepare_for_fp4_inference):
            assert api.with_raw_response and api.with_streaming_response
        assert (await raw(everything.with_raw_response.model_resources.list())).status_code == 200
