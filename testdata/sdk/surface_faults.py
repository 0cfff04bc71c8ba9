"""What goes wrong on the surface: refusals as the SDK's exceptions, retries, waits that run out. See surface.py."""
import warnings

import together
from together.post_training import clients
from together.post_training._operations import OperationFailedError

from kinds import ADAM, CROSS_ENTROPY, QUICK, TEXT, TINY, client, do, held, param, raises, raw, raw_later, sample
from serving import sandbox


async def refusals(url, locked):
    async with client(locked, key="wrong") as c:
        error = await raises(together.AuthenticationError, raw_later(c.post_training.supported_models.get))
        assert error.body["error"]["type"] == "authentication_error", error.body
    async with client(locked, key="right") as c:
        assert (await raw(c.post_training.supported_models.get())).data
    async with client(url) as c:
        api = c.post_training
        error = await raises(together.BadRequestError, raw_later(api.model_resources.create, base_model="sandbox/none"))
        assert param(error) == "base_model" and "sandbox/none" in error.body["error"]["message"], error.body
        error = await raises(together.BadRequestError, raw_later(api.model_resources.create, base_model=TINY, inactive_timeout=1))
        assert param(error) == "inactive_timeout", error.body
        for lost in (api.model_resources.retrieve, api.sessions.retrieve, api.checkpoints.retrieve):
            assert param(await raises(together.NotFoundError, raw_later(lost, "nothing")))
        resource = await raw(api.model_resources.create(base_model=TINY))
        made = [await raw(api.sessions.create(model_resources_id=resource.id)) for _ in range(5)]
        error = await raises(together.RateLimitError, raw_later(api.sessions.create, model_resources_id=resource.id))
        assert error.body["error"]["code"] == "session_limit" and param(error) == "model_resources_id", error.body
        row = sample(TEXT)
        row["loss_fn_inputs"]["target_tokens"]["data"] = TEXT
        error = await raises(together.BadRequestError, raw_later(api.operations.forward_backward, made[0].id, idempotency_key="k", loss=CROSS_ENTROPY, samples=[row]))
        assert param(error) == "samples[0].loss_fn_inputs.target_tokens", error.body
        await raw(api.model_resources.stop(resource.id, force=True))
    await raises(together.NotFoundError, do(clients.ModelResourcesClient, "attach", model_resources_id="nothing", base_url=url, api_key="any"))


async def retries(document):
    """The SDK sends again under the same key, and everything is done once."""
    with sandbox("--fault", "server-error:on=optim-step,status=503,times=2", "--fault", "drop:on=forward-backward,when=after,times=1",
                 "--fault", "too-many-requests:on=get-optim-step,times=1,retry_after=1s") as url:
        async with held(await do(clients.ModelResourcesClient, "create", base_model=TINY, base_url=url, api_key="any", **QUICK)) as resource:
            async with held(await do(resource, "create_session", **QUICK)) as session:
                first = await do(session.trainer, "forward_backward", samples=[sample(TEXT)], loss=CROSS_ENTROPY, **QUICK)
                begun = len(document.requests_sent)
                done = await do(session.trainer, "optim_step", adam_params=ADAM, **QUICK)
                sent = [(headers["Idempotency-Key"], headers["x-stainless-retry-count"], status)
                        for method, path, headers, status in document.requests_sent[begun:] if method == "POST"]
                assert len({key for key, *_ in sent}) == 1 and [s[1:] for s in sent] == [("0", 503), ("1", 503), ("2", 200)], sent
                assert done.step == "1", done
                polls = [status for method, path, _, status in document.requests_sent[begun:] if method == "GET"]
                assert polls[:2] == [429, 200], polls
                again = await do(session.trainer, "forward", samples=[sample(TEXT)], loss=CROSS_ENTROPY, **QUICK)
                assert 0 < again.loss < first.loss, "the answer that was lost was trained on twice or never"
        async with client(url) as c:
            assert (await raw(c.post_training.sessions.retrieve(session.session_id))).step == "1"
    with sandbox("--fault", "server-error:on=list-models") as url:
        async with client(url, max_retries=1) as c:
            begun = len(document.requests_sent)
            error = await raises(together.InternalServerError, raw_later(c.post_training.supported_models.get))
            assert error.status_code == 500 and len(document.requests_sent) == begun + 2, "one retry was allowed"


async def waits():
    """A wait that runs out stops nothing at the server; one that must fail says how."""
    with sandbox("--op-time", "optim-step=600s", "--speed", "100", "--fault", "fail:on=forward-backward,code=NON_FINITE_LOSS,at=1") as url:
        async with held(await do(clients.ModelResourcesClient, "create", base_model=TINY, base_url=url, api_key="any", **QUICK)) as resource:
            async with held(await do(resource, "create_session", **QUICK)) as session:
                failed = await raises(OperationFailedError, do(session.trainer, "forward_backward", samples=[sample(TEXT)], loss=CROSS_ENTROPY, **QUICK))
                assert "NON_FINITE_LOSS" in str(failed), failed
                await raises(TimeoutError, do(session.trainer, "optim_step", adam_params=ADAM, timeout=0.05, interval=0.02))
                done = await do(session.trainer, "optim_step", adam_params=ADAM, timeout=60, interval=0.02)
                assert done.step == "2", "the step that nobody waited for was not taken"
    with sandbox("--provision", "1h") as url:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            await raises(TimeoutError, do(clients.ModelResourcesClient, "create", base_model=TINY, base_url=url, api_key="any", timeout=0.05, interval=0.02))
        assert any(w.category is FutureWarning for w in told), told
        async with client(url) as c:
            left = (await raw(c.post_training.model_resources.list())).data
            assert [r.status for r in left] == ["MODEL_RESOURCES_STATUS_STOPPED"], "what nobody waits for goes on billing"
    with sandbox("--fault", "resource-error:code=PROVISIONING_FAILED") as url:
        await raises(RuntimeError, do(clients.ModelResourcesClient, "create", base_model=TINY, base_url=url, api_key="any", **QUICK))
