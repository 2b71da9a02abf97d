"""Make the two vocabulary files that ship in ``reasoning_store/tokens/data``.

    python tools/make_vocabularies.py

Downloads a published package that carries tiktoken's own files (pip's settings decide
from where), checks their sha256, writes the compact form and proves that the compact
form gives the same bytes again. Run once for a vocabulary, never at build or run time.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from reasoning_store.tokens import vocabularies  # noqa: E402  (needs the line above)

# Any release will do that still carries the files: what is in them is checked.
CARRIER = "llama-index-core==0.14.25"
CARRIED_UNDER = "_static/tiktoken_cache/"
# tiktoken caches a file under the sha1 of the address it came from.
CARRIED_AS = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}


def download(requirement: str, folder: Path) -> Path:
    """Fetch the wheel of ``requirement``, without what it depends on."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--dest", str(folder), requirement], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def published_file(wheel: zipfile.ZipFile, name: str) -> bytes:
    """The ``.tiktoken`` file out of the wheel."""
    wanted = CARRIED_UNDER + CARRIED_AS[name]
    (member,) = (member for member in wheel.namelist() if member.endswith(wanted))
    return wheel.read(member)


def tokens_of(published: bytes) -> list[bytes]:
    """The tokens in rank order, which must be 0, 1, 2 and so on."""
    tokens = []
    for rank, line in enumerate(published.splitlines()):
        token, number = line.split()
        if int(number) != rank:
            raise SystemExit(f"rank {rank} is missing: the compact form cannot hold this file")
        tokens.append(base64.b64decode(token))
    return tokens


def halves(tokens: list[bytes]) -> list[tuple[int, int]]:
    """For each token but the 256 bytes, the ranks of two earlier tokens that make it up."""
    rank_of: dict[bytes, int] = {}
    found = []
    for rank, token in enumerate(tokens):
        if rank >= 256:
            pairs = (
                (rank_of[token[:at]], rank_of[token[at:]])
                for at in range(1, len(token))
                if token[:at] in rank_of and token[at:] in rank_of
            )
            # Any pair does; a common second half makes the smallest file.
            pair = min(pairs, key=lambda pair: pair[1], default=None)
            if pair is None:
                raise SystemExit(f"token {rank} is not made of two earlier ones")
            found.append(pair)
        elif len(token) != 1:
            raise SystemExit("the first 256 tokens are not the bytes")
        rank_of[token] = rank
    return found


def pack(tokens: list[bytes]) -> bytes:
    """The compact form, as ``reasoning_store.tokens.vocabularies`` describes it."""
    pairs = halves(tokens)
    runs = [
        bytes(pair[side] >> shift & 255 for pair in pairs)
        for side in (0, 1)
        for shift in (16, 8, 0)
    ]
    return zlib.compress(b"".join([*tokens[:256], *runs]), level=9)


def make(vocabulary: vocabularies.Vocabulary, published: bytes, folder: Path) -> None:
    """Write one compact file, once the package reads the published one back out of it."""
    if hashlib.sha256(published).hexdigest() != vocabulary.sha256:
        raise SystemExit(f"{vocabulary.name}: not the file that tiktoken expects")
    packed = pack(tokens_of(published))
    if vocabularies.published(vocabularies.unpack(packed, vocabulary.size)) != published:
        raise SystemExit(f"{vocabulary.name}: the compact form does not give the file again")
    target = folder / vocabulary.file_name
    target.write_bytes(packed)
    print(f"{target.name}: {len(packed)} bytes for {len(published)}")


def main() -> None:
    """Download, check, write, prove."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--carrier", default=CARRIER, help="the package to take them from")
    arguments = parser.parse_args()

    folder = ROOT / "reasoning_store" / "tokens" / vocabularies.DATA_FOLDER
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        wheel = zipfile.ZipFile(download(arguments.carrier, Path(scratch)))
        with wheel:
            for vocabulary in vocabularies.VOCABULARIES.values():
                make(vocabulary, published_file(wheel, vocabulary.name), folder)


if __name__ == "__main__":
    main()
