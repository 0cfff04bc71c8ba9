"""One program for both kinds of clients, the synchronous and the asynchronous ones: what differs between them, and what the
programs beside it send."""
import asyncio
import sys

import together

mode = sys.argv[1]
asynchronous = {"sync": False, "async": True}[mode]
TINY, QUICK = "sandbox/bytes-tiny", {"interval": 0.01}
TEXT = list(b"the sandbox really trains")


def run(main):
    """The whole program: on a loop, or, where nothing has to be waited for, without one."""
    if asynchronous:
        asyncio.run(main())
        return
    try:
        main().send(None)
    except StopIteration:
        return
    sys.exit("something was waited for that does not belong to the synchronous surface")


async def do(owner, name, *args, **kwargs):
    """A method of a handle: name, or name_async awaited."""
    if asynchronous:
        return await getattr(owner, name + "_async")(*args, **kwargs)
    return getattr(owner, name)(*args, **kwargs)


async def raw(made):
    """What a method of the generated client returns: the value, or a coroutine of it."""
    return await made if asynchronous else made


async def raw_later(method, *args, **kwargs):
    """The same, when it is awaited."""
    return await raw(method(*args, **kwargs))


class held:
    """A with block around a handle."""

    def __init__(self, handle):
        self.handle = handle

    async def __aenter__(self):
        return await self.handle.__aenter__() if asynchronous else self.handle.__enter__()

    async def __aexit__(self, *error):
        return await self.handle.__aexit__(*error) if asynchronous else self.handle.__exit__(*error)


class client:
    """A generated client that does not try again unless it is told to."""

    def __init__(self, url, key="any", max_retries=0):
        made = together.AsyncTogether if asynchronous else together.Together
        self.made = made(api_key=key, base_url=url, max_retries=max_retries)

    async def __aenter__(self):
        return self.made

    async def __aexit__(self, *error):
        await raw(self.made.close())


async def raises(kind, made):
    """The error that awaiting made must end in."""
    try:
        got = await made
    except kind as error:
        assert type(error) is kind, f"{type(error)} is not {kind} itself"
        return error
    raise AssertionError(f"{got} came back, {kind.__name__} was due")


def param(error):
    return error.body["error"]["param"]


def model_input(tokens):
    return {"chunks": [{"encoded_text": {"tokens": list(tokens)}}]}


def sample(tokens, **tensors):
    """Targets one token ahead, and tensors of one value a position; cross-entropy's weights without any."""
    n = len(tokens) - 1
    if not tensors:
        tensors = {"weights": [1.0] * n}
    inputs = {name: {"data": values, "dtype": "float32"} for name, values in tensors.items()}
    return {"model_input": model_input(tokens[:-1]), "loss_fn_inputs": {"target_tokens": {"data": tokens[1:], "dtype": "int64"}, **inputs}}


CROSS_ENTROPY = {"type": "LOSS_TYPE_CROSS_ENTROPY"}
ADAM = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.0, "grad_clip_norm": 1.0}


def logprobs(result):
    return [list(out.tensors["logprobs"].data) for out in result.loss_fn_outputs]
