# SPDX-License-Identifier: Apache-2.0
"""Writes a trained network as the file that package boundary/classify/deep reads.

    export.py --rows DIR --vectors FILE --net NET --out FILE [--numbers JSON] [--stride N]
"""
import argparse, hashlib, json, os, struct
import numpy as np
import torch
import model

NUMBERS = ("limit", "low", "high", "fast", "deep", "bias", "below", "above")
DEFAULT = dict(limit=.5, low=0, high=1, fast=0, deep=1, bias=0, below=-4, above=4)


def floats(x):
    return np.ascontiguousarray(x.detach().numpy(), "<f4").tobytes()


def rounded(w):
    """The scale of each row, and the row in 8 bits, as model.Rounded rounds it."""
    scale = w.abs().amax(1, keepdim=True).clamp_min(1e-8) / 127
    return floats(scale[:, 0]), (w / scale).round().clamp(-127, 127).to(torch.int8).numpy().tobytes()


def matrix(m):
    scale, rows = rounded(m.weight.detach())
    return scale + rows + floats(m.bias)


def norm(m):
    return floats(m.weight) + floats(m.bias)


def main():
    p = argparse.ArgumentParser()
    for name, default in (("rows", ""), ("vectors", ""), ("net", ""), ("out", ""), ("numbers", "")):
        p.add_argument("--" + name, default=default)
    p.add_argument("--stride", type=int, default=0)
    o = p.parse_args()
    d = torch.load(o.net)
    t = d["options"]
    lines = [line.rstrip("\n").split("\t", 2) for line in open(os.path.join(o.rows, "pieces.tsv"))]
    vectors = torch.from_numpy(np.load(o.vectors)[[int(l[0]) for l in lines]].astype(np.float32))
    net = model.Net(vectors, t["width"], t["layers"], t["inner"], t["window"])
    net.load_state_dict(d["state"], strict=False)
    numbers = dict(DEFAULT, **(json.load(open(o.numbers)) if o.numbers else {}))
    out = [b"PELLUCID-DEEP\0\0\0", struct.pack("<7I", 1, len(lines), t["width"], t["layers"], t["inner"], t["window"], o.stride or t["stride"]),
           struct.pack("<8f", *(numbers[n] for n in NUMBERS)), b"1".ljust(16, b"\0")]
    for _, _, piece in lines:
        b = json.loads(piece).encode()
        out.append(bytes([len(b)]) + b)
    out.append(np.array([float(l[1]) for l in lines], "<f4").tobytes())
    with torch.no_grad():
        out += rounded(net.project(net.vectors))
        out.append(floats(net.place))
        for l in net.layers:
            out += [norm(l.norm1), matrix(l.qkv), matrix(l.out), norm(l.norm2), matrix(l.up), matrix(l.down)]
        out += [norm(net.norm), floats(net.head.weight[0]), floats(net.head.bias)]
    b = b"".join(out)
    with open(o.out, "wb") as f:
        f.write(b)
    print(hashlib.sha256(b).hexdigest(), len(b), "bytes")


if __name__ == "__main__":
    main()
