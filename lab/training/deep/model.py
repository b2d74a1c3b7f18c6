# SPDX-License-Identifier: Apache-2.0
"""The network: vectors of pieces, projected to a narrow width, and a few layers of attention."""
import torch
import torch.nn as nn
import torch.nn.functional as F

HEAD = 32  # width of one head


class Rounded(torch.autograd.Function):
    """Rounds the rows of a matrix to 8 bits; the gradient passes unchanged."""

    @staticmethod
    def forward(ctx, w):
        scale = w.abs().amax(1, keepdim=True).clamp_min(1e-8) / 127
        return (w / scale).round() * scale

    @staticmethod
    def backward(ctx, g):
        return g


class Linear(nn.Linear):
    rounded = False

    def forward(self, x):
        w = Rounded.apply(self.weight) if Linear.rounded else self.weight
        return F.linear(x, w, self.bias)


class Layer(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.heads = width // HEAD
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = Linear(width, 3 * width), Linear(width, width)
        self.up, self.down = Linear(width, inner), Linear(inner, width)

    def forward(self, x, bias, drop):
        n, t, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, HEAD).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).reshape(n, t, width)
        x = x + drop(self.out(a))
        return x + drop(self.down(F.relu(self.up(self.norm2(x)))))


class Net(nn.Module):
    """One logit for each window. vectors do not change while it is trained, so that pieces
    which the training texts do not hold keep their place among the others."""

    def __init__(self, vectors, width, layers, inner, window):
        super().__init__()
        self.register_buffer("vectors", F.layer_norm(vectors.float(), vectors.shape[1:]))
        self.project = nn.Linear(vectors.shape[1], width)
        self.place = nn.Parameter(torch.randn(window + 2, width) * .02)
        self.layers = nn.ModuleList(Layer(width, inner) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(2 * width, 1)
        self.drop = nn.Dropout(.1)
        for l in self.layers:
            for m in (l.out, l.down):
                nn.init.normal_(m.weight, std=.02 / (2 * layers) ** .5)
                nn.init.zeros_(m.bias)

    def table(self):
        """The projected vector of every piece, as the file holds it."""
        return Rounded.apply(self.project(self.vectors))

    def forward(self, ids, mask):
        x = self.project(self.vectors[ids])
        if Linear.rounded:
            x = Rounded.apply(x.view(-1, x.shape[-1])).view(x.shape)
        x = self.drop(x + self.place[:ids.shape[1]])
        bias = torch.zeros(mask.shape).to(x.device).masked_fill(~mask, -1e4)[:, None, None, :]
        for l in self.layers:
            x = l(x, bias, self.drop)
        x = self.norm(x)
        m = mask[..., None]
        mean = (x * m).sum(1) / m.sum(1)
        most = x.masked_fill(~m, -1e4).amax(1)
        return self.head(self.drop(torch.cat([mean, most], 1)))[:, 0]
