# SPDX-License-Identifier: Apache-2.0
"""Trains the deep model on the rows that 'pellucid-lab deep-rows' has written.

    train.py --rows DIR --vectors FILE --out NET [--leave GROUPS] [--scores FILE]

--leave leaves groups of rows out, and --scores writes the logit of every row that the model
has not seen. The same machine, versions and options give the same bytes; another processor
gives other last digits of each sum, and so other weights.
"""
import argparse, collections, gzip, json, os, random, time
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import numpy as np
import torch
import torch.nn.functional as F
import model

BEGIN, END, UNKNOWN = 0, 1, 2


def options():
    p = argparse.ArgumentParser()
    for name, default in (("rows", ""), ("vectors", ""), ("out", ""), ("scores", ""), ("leave", "")):
        p.add_argument("--" + name, default=default)
    for name, default in (("width", 128), ("layers", 2), ("inner", 512), ("window", 96), ("stride", 72),
                          ("epochs", 4), ("cap", 3), ("tokens", 3200), ("seed", 1)):
        p.add_argument("--" + name, type=int, default=default)
    for name, default in (("rate", 1.5e-3), ("smooth", .01), ("lost", .02), ("decay", .05), ("own", .4), ("splice", .5)):
        p.add_argument("--" + name, type=float, default=default)
    return p.parse_args()


def windows(n, size, stride):
    """[begin, end) over n pieces; the last one reaches the end."""
    if n <= size:
        return [(0, n)]
    return [(i, i + size) for i in range(0, n - size, stride)] + [(n - size, n)]


def load(o):
    leave = set(filter(None, o.leave.split(",")))
    seen, unseen = [], []
    with gzip.open(os.path.join(o.rows, "rows.jsonl.gz"), "rt") as f:
        for line in f:
            r = json.loads(line)
            r["pieces"] = r["pieces"] or []
            r["windows"] = windows(len(r["pieces"]), o.window, o.stride)
            out = r["group"] in leave or r.get("held") and "held" in leave or not r["free"]
            # An innocent request says nothing by itself: such attacks are measured, not learned.
            skip = r["attack"] and r["family"].startswith(("ipi-bipia-payload-only", "tool-poison-asb", "taxonomy-"))
            (unseen if out else seen).append(r)
            if skip and not out:
                seen.pop()
    return seen, unseen


def batch(o, items, device, lose=None):
    long = max(b - a for _, (a, b) in items) + 2
    long = (long + 7) // 8 * 8 if long < o.window + 2 else long
    long = min(long, o.window + 2)
    ids = torch.zeros(len(items), long, dtype=torch.long)
    mask = torch.zeros(len(items), long, dtype=torch.bool)
    for i, (r, (a, b)) in enumerate(items):
        p = r["pieces"][a:b]
        ids[i, 0], ids[i, len(p) + 1] = BEGIN, END
        ids[i, 1:len(p) + 1] = torch.as_tensor(p, dtype=torch.long)
        mask[i, :len(p) + 2] = True
    if lose is not None:
        ids[(torch.rand(ids.shape, generator=lose) < o.lost) & (ids > UNKNOWN)] = UNKNOWN
    return ids.to(device), mask.to(device)


def score(o, net, items, device):
    """The logit of each window."""
    out = np.zeros(len(items), np.float32)
    order = sorted(range(len(items)), key=lambda i: items[i][1][1] - items[i][1][0])
    net.eval()
    with torch.no_grad():
        for i in range(0, len(order), 64):
            at = order[i:i + 64]
            out[at] = net(*batch(o, [items[j] for j in at], device)).float().cpu().numpy()
    net.train()
    return out


def weights(rows):
    """By the root of the size of what a row belongs to, so that a large collection does not decide."""
    kind = lambda r: (r["weigh"], r["attack"])
    count = collections.Counter(kind(r) for r in rows)
    w = {k: n ** -.5 for k, n in count.items()}
    for attack in (False, True):
        mean = sum(w[k] * n for k, n in count.items() if k[1] == attack) / max(1, sum(n for k, n in count.items() if k[1] == attack))
        for k in count:
            if k[1] == attack:
                w[k] = min(4., max(.4, w[k] / mean))
    for r in rows:
        r["weight"] = w[kind(r)]


# Honest texts of these groups and families ask for something, as their user may: they are
# not put into other texts, where the same words would be an order.
ASKING = ("notinject", "deepset", "openclay", "piguard", "topical-benign-questions", "cyberseceval", "own-ask", "own-mail", "own-direct", "own-requests")


def splice(o, rows, items, R):
    """Puts short texts into honest ones, so that an order is learned wherever it stands. Of honest texts
    half as many, so that the seam is no sign."""
    hosts = [r for r in rows if not r["attack"] and len(r["pieces"]) >= 24 and r["group"] not in ASKING and r["family"] not in ASKING]
    by = collections.defaultdict(list)
    for r in hosts:
        by[r.get("language") or r["group"]].append(r)
    kinds = sorted(by)
    for i, (r, (a, b)) in enumerate(items):
        n = b - a
        if n > o.window * 5 // 8 or R.random() >= (o.splice if r["attack"] else o.splice / 2):
            continue
        if not r["attack"] and (r["group"] in ASKING or r["family"] in ASKING):
            continue
        same = by.get(r.get("language"))
        host = R.choice(same if same and R.random() < .8 else by[R.choice(kinds)])["pieces"]
        room = R.randint(8, o.window - n)
        at = R.randrange(max(1, len(host) - room + 1))
        part = host[at:at + room]
        seam = R.randint(0, len(part))
        pieces = part[:seam] + r["pieces"][a:b] + part[seam:]
        items[i] = (dict(r, pieces=pieces), (0, len(pieces)))


def epoch(o, net, rows, number, R, device):
    """What one epoch learns from, in batches of about the same length."""
    items = []
    rows = [r for r in rows if not r.get("own") or r.get("author") or R.random() < o.own]
    many = [r for r in rows if r["attack"] and len(r["windows"]) > 1]
    if number:  # of a long attack, the window that looks most like one
        flat = [(r, w) for r in many for w in r["windows"]]
        s, at = score(o, net, flat, device), 0
        for r in many:
            n = len(r["windows"])
            items.append((r, r["windows"][int(s[at:at + n].argmax())]))
            at += n
    for r in rows:
        n = len(r["pieces"])
        if not r["attack"]:
            if len(r["windows"]) <= o.cap:
                items += [(r, w) for w in r["windows"]]
            else:
                items += [(r, (a, a + o.window)) for a in (R.randrange(n - o.window + 1) for _ in range(o.cap))]
        elif len(r["windows"]) == 1:
            items.append((r, r["windows"][0]))
    splice(o, rows, items, R)
    R.shuffle(items)
    batches = []
    for i in range(0, len(items), 1024):
        one, size = [], 0
        for item in sorted(items[i:i + 1024], key=lambda x: x[1][1] - x[1][0]):
            n = item[1][1] - item[1][0] + 2
            if one and (len(one) + 1) * n > o.tokens:
                batches.append(one)
                one = []
            one.append(item)
        batches.append(one)
    R.shuffle(batches)
    return batches


def main():
    o = options()
    torch.manual_seed(o.seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    R, lose = random.Random(o.seed), torch.Generator().manual_seed(o.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    seen, unseen = load(o)
    for r in seen:
        # Of our own texts, what an author wrote whole and what is read from packages count as collections
        # of their own; what the generator made is templates, and the largest: it counts as one.
        apart = r.get("author") or r["family"] in ("own-documentation", "own-translation", "own-source")
        r["weigh"] = r["group"] if not r.get("own") else r["family"] if apart else "own"
    weights(seen)
    rank = [int(line.split("\t", 1)[0]) for line in open(os.path.join(o.rows, "pieces.tsv"))]
    vectors = torch.from_numpy(np.load(o.vectors)[rank].astype(np.float32))
    net = model.Net(vectors, o.width, o.layers, o.inner, o.window).to(device)
    ema = {k: v.clone() for k, v in net.state_dict().items() if v.is_floating_point() and k != "vectors"}
    opt = torch.optim.AdamW(net.parameters(), lr=o.rate, weight_decay=o.decay)
    print(len(seen), "rows,", len(unseen), "left out,", sum(p.numel() for p in net.parameters()), "weights,", device, flush=True)
    begin, step, total = time.time(), 0, None
    for number in range(o.epochs):
        model.Linear.rounded = number == o.epochs - 1
        batches = epoch(o, net, seen, number, R, device)
        total = total or int(len(batches) * (o.epochs + .1))
        losses = []
        for items in batches:
            rate = o.rate * min(1, (step + 1) / 200) * max(.02, 1 - step / total)
            step += 1
            for g in opt.param_groups:
                g["lr"] = rate
            y = torch.tensor([float(r["attack"]) for r, _ in items], device=device) * (1 - 2 * o.smooth) + o.smooth
            w = torch.tensor([r["weight"] for r, _ in items], device=device)
            loss = (F.binary_cross_entropy_with_logits(net(*batch(o, items, device, lose)), y, reduction="none") * w).mean()
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.)
            opt.step()
            losses.append(loss.item())
            with torch.no_grad():
                keep = min(.998, step / (step + 20))
                now = net.state_dict()
                for k, v in ema.items():
                    v.lerp_(now[k], 1 - keep)
            if step % 200 == 0:
                print("epoch %d step %d of %d loss %.4f %d s" % (number, step, total, np.mean(losses[-200:]), time.time() - begin), flush=True)
        print("epoch %d done, loss %.4f, %d s" % (number, np.mean(losses), time.time() - begin), flush=True)
    net.load_state_dict(ema, strict=False)
    torch.save(dict(state={k: v.cpu() for k, v in net.state_dict().items() if k != "vectors"}, options=vars(o)), o.out)
    if o.scores:
        items = [(r, w) for r in unseen for w in r["windows"]]
        s, at = score(o, net, items, device), 0
        with open(o.scores, "w") as f:
            for r in unseen:
                n = len(r["windows"])
                f.write(json.dumps(dict(id=r["id"], family=r["family"], group=r["group"], language=r.get("language", ""),
                                        attack=r["attack"], logit=float(s[at:at + n].max()))) + "\n")
                at += n


if __name__ == "__main__":
    main()
