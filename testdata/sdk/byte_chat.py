"""What the loops beside this file share: chats as token ids of the sandbox's byte vocabulary (bytes are 0 to 255, control tokens
follow), rows for the trainer, and greedy answers. Operations are asked for every 20 ms, as the sandbox is near."""
from together.post_training import SamplingParams

BEGIN, END, USER, ASSISTANT = 256, 257, 259, 260
SOON = {"interval": 0.02}


def prompt(question):
    """The ids up to where the answer begins."""
    return [BEGIN, USER, *question.encode(), END, ASSISTANT]


def answer(text):
    return [*text.encode(), END]


def text(tokens):
    """The answer that the ids spell, None where its end is missing."""
    tokens = [int(t) for t in tokens]
    return bytes(tokens[:-1]).decode("latin-1") if tokens[-1:] == [END] and max(tokens[:-1], default=0) < 256 else None


def model_input(tokens):
    return {"chunks": [{"encoded_text": {"tokens": tokens}}]}


def row(asked, completion, **per_token):
    """A sample whose completion is trained. per_token are further tensors, one number for each token of the completion."""
    tokens = asked + completion
    blank = [0.0] * (len(asked) - 1)
    inputs = {"target_tokens": {"data": tokens[1:], "dtype": "int64"}}
    for name, values in {"weights": [1.0] * len(completion), **per_token}.items():
        inputs[name] = {"data": blank + list(values), "dtype": "float32"}
    return {"model_input": model_input(tokens[:-1]), "loss_fn_inputs": inputs}


def exact_match(generator, questions):
    """The share of the questions, {question: answer}, that greedy sampling answers to the letter."""
    results = generator.sample_batch(
        [model_input(prompt(q)) for q in questions],
        num_samples=1,
        sampling_params=SamplingParams(temperature=0.0, max_tokens=24),
        **SOON,
    )
    right = sum(text(r.sequences[0].tokens) == a for r, a in zip(results, questions.values()))
    return right / len(questions)
