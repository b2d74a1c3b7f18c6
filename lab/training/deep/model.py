# SPDX-License-Identifier: Apache-2.0
"""The network: the first layers of multilingual-e5-small with a head, in torch.

The word vectors are frozen int8 rows. The matrices are rounded to int8 rows in every forward pass, and the gradient
passes through: what is written at the end is what was trained.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F

WINDOW, STRIDE, PLACES, WIDTH, INNER, HEADS = 96, 72, 104, 384, 1536, 12
BEGIN, END, UNKNOWN = 0, 1, 2
MATRICES = {"qkv": (3 * WIDTH, WIDTH), "out": (WIDTH, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER)}


def rows8(w):
    """int8 rows of a matrix, and a scale for each."""
    s = np.maximum(np.abs(w).max(-1), np.float32(1e-8)) / np.float32(127)
    return np.clip(np.rint(w / s[:, None]), -127, 127).astype(np.int8), s.astype(np.float32)


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        s = w.abs().amax(-1, keepdim=True).clamp_min(1e-8) / 127
        return (w / s).round() * s

    @staticmethod
    def backward(ctx, g):
        return g


class Net:
    """base has the tensors of the wheel by name (pieces.py), words their rows."""

    def __init__(self, base, words, layers, device, seed=1, decay=.9):
        self.layers, self.device, self.drop = layers, device, .1
        self.word = rows8(words)
        q, s = self.word
        self.vectors = torch.from_numpy(q.astype(np.float32) * s[:, None]).to(device)
        self.p, self.rate = {}, {}

        def put(name, x, rate):
            self.p[name] = torch.from_numpy(np.array(x, np.float32)).to(device).requires_grad_()
            self.rate[name] = rate

        first = decay ** layers
        put("place", base["emb.pos"].reshape(-1, WIDTH)[:PLACES] + base["emb.type"].reshape(-1, WIDTH)[0], first)
        put("embed.gain", base["emb.ln.w"], first)
        put("embed.bias", base["emb.ln.b"], first)
        for l in range(layers):
            rate, of = decay ** (layers - 1 - l), lambda n: base[f"l{l}.{n}"]
            put(f"layer.{l}.qkv.weight", np.concatenate([of(c + ".w").reshape(WIDTH, WIDTH) for c in "qkv"]), rate)
            put(f"layer.{l}.qkv.bias", np.concatenate([of(c + ".b") for c in "qkv"]), rate)
            for ours, theirs in (("out", "ao"), ("up", "fi"), ("down", "fo")):
                put(f"layer.{l}.{ours}.weight", of(theirs + ".w").reshape(MATRICES[ours]), rate)
                put(f"layer.{l}.{ours}.bias", of(theirs + ".b"), rate)
            for ours, theirs in (("norm1", "aln"), ("norm2", "oln")):
                put(f"layer.{l}.{ours}.gain", of(theirs + ".w"), rate)
                put(f"layer.{l}.{ours}.bias", of(theirs + ".b"), rate)
        g = torch.Generator().manual_seed(seed)
        put("head.weight", (torch.randn(2 * WIDTH, generator=g) * .02).numpy(), 10.)
        put("head.bias", np.zeros(1), 10.)

    def linear(self, x, name):
        return F.linear(x, Rounded.apply(self.p[name + ".weight"]), self.p[name + ".bias"])

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.p[name + ".gain"], self.p[name + ".bias"], 1e-12)

    def forward(self, ids, lens, train):
        n, t = ids.shape
        drop = (lambda x: F.dropout(x, self.drop, True)) if train else (lambda x: x)
        x = drop(self.norm(self.vectors[ids] + self.p["place"][:t], "embed"))
        keep = torch.arange(t, device=ids.device)[None] < lens[:, None]
        bias = torch.zeros(n, 1, 1, t, device=ids.device).masked_fill(~keep[:, None, None], -1e4).expand(n, HEADS, t, t)
        for l in range(self.layers):
            at = f"layer.{l}."
            q, k, v = self.linear(x, at + "qkv").view(n, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).reshape(n, t, WIDTH)
            x = self.norm(x + drop(self.linear(a, at + "out")), at + "norm1")
            x = self.norm(x + drop(self.linear(F.gelu(self.linear(x, at + "up")), at + "down")), at + "norm2")
        mean = (x * keep[:, :, None]).sum(1) / lens.float()[:, None]
        most = x.masked_fill(~keep[:, :, None], -1e4).amax(1)
        return drop(torch.cat([mean, most], 1)) @ self.p["head.weight"] + self.p["head.bias"]

    def tensors(self, pieces):
        """What a file holds: pieces are their texts and scores."""
        texts = [b"" if i <= UNKNOWN else t.encode() for i, (_, t) in enumerate(pieces)]
        out = {"vocabulary.text": np.frombuffer(b"".join(texts), np.uint8), "vocabulary.length": np.array([len(t) for t in texts], np.uint8),
               "vocabulary.score": np.array([s for s, _ in pieces], np.float32), "word.weight": self.word[0], "word.scale": self.word[1]}
        for name, p in self.p.items():
            x = p.detach().cpu().numpy()
            if x.ndim == 2 and name.endswith(".weight"):
                out[name], out[name[:-7] + ".scale"] = rows8(x)
            else:
                out[name] = x
        return {k: np.ascontiguousarray(v) for k, v in out.items()}

    def shape(self):
        return dict(pieces=len(self.word[0]), width=WIDTH, layers=self.layers, inner=INNER, heads=HEADS, window=WINDOW, stride=STRIDE, places=PLACES)


def windows(n):
    """Begin and length of the windows of n pieces."""
    return [(0, n)] if n <= WINDOW else [(i, WINDOW) for i in range(0, n - WINDOW, STRIDE)] + [(n - WINDOW, WINDOW)]


def padded(lists, device):
    """ids and lengths of windows between their marks."""
    lens = [len(x) + 2 for x in lists]
    ids = np.zeros((len(lists), max(lens)), np.int64)
    for row, x in zip(ids, lists):
        row[1:len(x) + 1] = x
        row[0], row[len(x) + 1] = BEGIN, END
    return torch.from_numpy(ids).to(device), torch.tensor(lens, device=device)


def batches(lens, tokens):
    """Indices of windows of about equal length, with at most so many places together."""
    order, out = np.argsort(lens, kind="stable"), []
    i = 0
    while i < len(order):
        j = i + 1
        while j < len(order) and (j + 1 - i) * (lens[order[j]] + 2) <= tokens:
            j += 1
        out.append(order[i:j])
        i = j
    return out


def worst(net, rows, tokens=6144):
    """The logit of the worst window of each list of pieces."""
    parts, of = [], []
    for i, ids in enumerate(rows):
        for a, n in windows(len(ids)):
            parts.append(ids[a:a + n])
            of.append(i)
    out = np.full(len(rows), -math.inf, np.float32)
    with torch.no_grad():
        for b in batches(np.array([len(p) for p in parts]), tokens):
            logits = net.forward(*padded([parts[i] for i in b], net.device), False).float().cpu().numpy()
            for i, x in zip(b, logits):
                out[of[i]] = max(out[of[i]], x)
    return out
