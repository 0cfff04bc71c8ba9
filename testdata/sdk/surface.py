"""Every public call of the official SDK's reinforcement-learning surface, against sandboxes that it starts itself:

    TRAINER=./trainer python testdata/sdk/surface.py sync|async

Synchronous and asynchronous clients go through the same steps. What comes back is compared, not only received; every answer
is held to the OpenAPI document; and in the end no public method may have been left out."""
import pathlib

import together.post_training as pt
from together.post_training import clients
from together.resources import post_training as resources

from calls import Calls
from document import watch
from kinds import asynchronous, client, mode, raw, run
from serving import sandbox
from surface_client import model_resources, operations, sessions, wrapped
from surface_faults import refusals, retries, waits
from surface_handles import handles, large, together_at_once


def watch_calls():
    calls = Calls(pathlib.Path(__file__).parent.glob("surface*.py"))
    for name in ("PostTraining", "SupportedModels", "ModelResources", "Sessions", "Operations", "Checkpoints", "PrepareForFp4Inference"):
        calls.watch(getattr(resources, ("Async" if asynchronous else "") + name + "Resource"))
    of_mode = lambda name: (name.endswith("_async") or name in ("__aenter__", "__aexit__")) == asynchronous
    for handle in (clients.ModelResourcesClient, clients.SessionClient, clients.Trainer, clients.Generator):
        calls.watch(handle, lambda name: of_mode(name) or isinstance(vars(handle)[name], property))
    calls.watch(pt, lambda name: name.startswith("download_checkpoint") and of_mode(name))
    return calls


async def main():
    document, calls = watch(), watch_calls()
    with sandbox("--op-time", "prepare-for-fp4-inference=1h") as url, sandbox(key="right") as locked:
        await model_resources(url)
        await sessions(url)
        await operations(url)
        await wrapped(url)
        await handles(url)
        await large(url, document)
        await refusals(url, locked)
        await together_at_once(url)
        async with client(url) as c:
            left = (await raw(c.post_training.model_resources.list(limit=100))).data
            assert {r.status for r in left} == {"MODEL_RESOURCES_STATUS_STOPPED"}, left
    await retries(document)
    await waits()
    # So many names has the surface of SDK 3.1.1: a change of the SDK, or of what is watched, is to be looked at.
    want = {"sync": 92, "async": 91}[mode]
    assert len(calls.public) == want, f"{len(calls.public)} public names are watched, {want} were expected: {sorted(calls.public)}"
    assert not calls.left(), f"never called: {calls.left()}"
    missing = document.never_answered()
    assert not missing, f"never answered: {missing}"
    print(f"{mode}: {len(calls.public)} public names called, {sum(document.seen.values())} answers by the document")


run(main)
