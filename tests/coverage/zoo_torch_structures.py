"""Models of points, graphs, tables and fields in plain PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

MODELS: dict[str, Callable[[], tuple[Any, ...]]] = {}
"""Name => a function that makes a model and the arguments of one call."""


def zoo(name: str) -> Callable[[Any], Any]:
    """Adds a function that makes a model and its arguments."""

    def register(function: Any) -> Any:
        MODELS[name] = function
        return function

    return register


class PointNet(nn.Module):
    """Shared layers over points and a learned transform."""

    def __init__(self) -> None:
        super().__init__()
        self.transform, self.fix = nn.Conv1d(3, 16, 1), nn.Linear(16, 9)
        self.a, self.b = nn.Conv1d(3, 16, 1), nn.Conv1d(16, 32, 1)
        self.norm, self.head = nn.BatchNorm1d(32), nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fix = self.fix(self.transform(x).relu().max(-1).values).view(-1, 3, 3) + torch.eye(3)
        x = self.b(self.a(fix @ x).relu())
        return self.head(self.norm(x).max(2)[0])


@zoo("pointnet")
def pointnet() -> tuple[Any, ...]:
    return PointNet(), torch.randn(2, 3, 20)


class PointGroups(nn.Module):
    """PointNet++: farthest points, nearest neighbours, grouped features."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = [torch.zeros(x.shape[0], dtype=torch.long)]
        away = torch.full(x.shape[:2], math.inf)
        for _ in range(3):
            last = x.gather(1, chosen[-1][:, None, None].expand(-1, 1, 3))
            away = torch.minimum(away, (x - last).square().sum(-1))
            chosen.append(away.argmax(1))
        index = torch.stack(chosen, 1)
        centers = x.gather(1, index[..., None].expand(-1, -1, 3))
        near = torch.cdist(centers, x).topk(4, largest=False).indices
        groups = x[torch.arange(x.shape[0])[:, None, None], near] - centers[:, :, None]
        return self.mlp(groups).amax(2)


@zoo("pointnet_plus")
def pointnet_plus() -> tuple[Any, ...]:
    return PointGroups(), torch.randn(2, 12, 3)


class Gcn(nn.Module):
    """Graph convolutions by index_add with symmetric normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 12), nn.Linear(12, 3)

    def spread(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        degree = torch.ones(x.shape[0]).index_add(0, target, torch.ones(edges.shape[1]))
        scale = (degree[source] * degree[target]).rsqrt()
        return x / degree[:, None] + torch.zeros_like(x).index_add(
            0, target, x[source] * scale[:, None]
        )

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        return self.spread(self.b(self.spread(self.a(x), edges).relu()), edges).log_softmax(-1)


@zoo("gcn")
def gcn() -> tuple[Any, ...]:
    return Gcn(), torch.randn(7, 6), torch.randint(0, 7, (2, 15))


class Gat(nn.Module):
    """Graph attention: softmax over incoming edges by scatter_reduce."""

    def __init__(self) -> None:
        super().__init__()
        self.value, self.score = nn.Linear(6, 8), nn.Linear(16, 1)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        v = self.value(x)
        s = F.leaky_relu(self.score(torch.cat([v[source], v[target]], -1)), 0.2)[:, 0]
        top = torch.full((x.shape[0],), -math.inf).scatter_reduce(0, target, s, "amax")
        e = (s - top[target]).exp()
        total = torch.zeros(x.shape[0]).scatter_add(0, target, e)
        weight = (e / total[target].clamp(min=1e-9))[:, None] * v[source]
        return F.elu(torch.zeros_like(v).index_add(0, target, weight))


@zoo("gat")
def gat() -> tuple[Any, ...]:
    return Gat(), torch.randn(7, 6), torch.randint(0, 7, (2, 15))


class Message(nn.Module):
    """An equivariant network on positions, pooled by graph."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Embedding(5, 8)
        self.edge, self.node = nn.Linear(17, 8), nn.Linear(16, 8)
        self.move = nn.Linear(8, 1)

    def forward(
        self, kinds: torch.Tensor, place: torch.Tensor, edges: torch.Tensor, graph: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        source, target = edges
        h, apart = self.kinds(kinds), place[source] - place[target]
        distance = apart.square().sum(-1, keepdim=True)
        m = F.silu(self.edge(torch.cat([h[source], h[target], distance], -1)))
        place = place.index_add(0, target, apart * self.move(m).tanh())
        h = h + self.node(torch.cat([h, torch.zeros_like(h).index_add(0, target, m)], -1))
        pooled = torch.zeros(2, 8).scatter_reduce(
            0, graph[:, None].expand_as(h), h, "mean", include_self=False
        )
        return {"energy": pooled.sum(-1), "place": place}


@zoo("egnn")
def egnn() -> tuple[Any, ...]:
    graph = torch.tensor([0, 0, 0, 1, 1, 1])
    return (
        Message(),
        torch.randint(0, 5, (6,)),
        torch.randn(6, 3),
        torch.randint(0, 6, (2, 9)),
        graph,
    )


class TabTransformer(nn.Module):
    """Columns as tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.categories = nn.ModuleList(nn.Embedding(n, 8) for n in (3, 5, 9))
        self.scale = nn.Parameter(torch.randn(4, 8))
        self.shift = nn.Parameter(torch.randn(4, 8))
        self.cls = nn.Parameter(torch.randn(1, 1, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(8, 2)

    def forward(self, codes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        tokens = [e(codes[:, i]) for i, e in enumerate(self.categories)]
        columns = numbers[..., None] * self.scale + self.shift
        cls = self.cls.expand(codes.shape[0], -1, -1)
        x = torch.cat([cls, torch.stack(tokens, 1), columns], 1)
        return self.head(self.encoder(x)[:, 0])


@zoo("tab_transformer")
def tab_transformer() -> tuple[Any, ...]:
    return TabTransformer(), torch.randint(0, 3, (4, 3)), torch.randn(4, 4)


class Dlrm(nn.Module):
    """Recommendations: bags of ids and pairwise products of features."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(20, 8, mode="sum") for _ in range(3))
        self.below = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.above = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, dense: torch.Tensor, ids: list[torch.Tensor]) -> torch.Tensor:
        x = self.below(dense)
        stack = torch.stack([x, *(bag(i) for bag, i in zip(self.bags, ids))], 1)
        rows, columns = torch.tril_indices(4, 4, -1)
        pairs = (stack @ stack.mT)[:, rows, columns]
        return self.above(torch.cat([x, pairs], 1)).sigmoid()


@zoo("dlrm")
def dlrm() -> tuple[Any, ...]:
    return Dlrm(), torch.randn(4, 5), [torch.randint(0, 20, (4, 3)) for _ in range(3)]


class DeepFm(nn.Module):
    """Factorisation machine beside a deep network, with a cross network."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(60, 1), nn.Embedding(60, 6)
        self.register_buffer("offsets", torch.tensor([0, 20, 40]))
        self.deep = nn.Sequential(nn.Linear(18, 16), nn.ReLU(), nn.Linear(16, 1))
        self.cross = nn.Linear(18, 18)
        self.head = nn.Linear(18, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        ids = ids + self.offsets
        v = self.second(ids)
        pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(-1, keepdim=True)
        x = v.flatten(1)
        crossed = self.head(x * self.cross(x) + x)
        return (self.first(ids).sum(1) + pairs + self.deep(x) + crossed).sigmoid()


@zoo("deepfm")
def deepfm() -> tuple[Any, ...]:
    return DeepFm(), torch.randint(0, 20, (4, 3))


class Coupling(nn.Module):
    """Real NVP: affine couplings, there and back, with the likelihood."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 4)) for _ in range(4)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z, total = x, x.new_zeros(x.shape[0])
        for net in self.nets:
            a, b = z.chunk(2, -1)
            s, t = net(a).chunk(2, -1)
            z, total = torch.cat([b * s.tanh().exp() + t, a], -1), total + s.tanh().sum(-1)
        likelihood = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(-1) + total
        for net in reversed(self.nets):
            b, a = z.chunk(2, -1)
            s, t = net(a).chunk(2, -1)
            z = torch.cat([a, (b - t) * (-s.tanh()).exp()], -1)
        return likelihood, z


@zoo("normalizing_flow")
def normalizing_flow() -> tuple[Any, ...]:
    return Coupling(), torch.randn(5, 4)


class Nerf(nn.Module):
    """A radiance field with encoded positions, composited along rays."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(27, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.density, self.color = nn.Linear(32, 1), nn.Linear(35, 3)

    def forward(self, origin: torch.Tensor, direction: torch.Tensor) -> tuple[torch.Tensor, ...]:
        depth = torch.linspace(0.5, 2.0, 8)
        place = origin[:, None] + direction[:, None] * depth[:, None]
        waves = place[..., None] * 2.0 ** torch.arange(4)
        encoded = torch.cat([place, waves.sin().flatten(-2), waves.cos().flatten(-2)], -1)
        h = self.trunk(encoded)
        gaps = torch.cat([depth.diff(), torch.tensor([1e3])])
        alpha = 1 - torch.exp(-self.density(h)[..., 0].relu() * gaps)
        clear = torch.cumprod(1 - alpha + 1e-10, -1).roll(1, -1)
        clear = torch.cat([torch.ones_like(clear[:, :1]), clear[:, 1:]], -1)
        weight = alpha * clear
        view = F.normalize(direction, dim=-1)[:, None].expand_as(place)
        color = self.color(torch.cat([h, view], -1)).sigmoid()
        return (weight[..., None] * color).sum(1), (weight * depth).sum(1)


@zoo("nerf")
def nerf() -> tuple[Any, ...]:
    return Nerf(), torch.randn(6, 3), torch.randn(6, 3)


class Siren(nn.Module):
    """A field of sines with its gradient by automatic differentiation."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 1)

    def field(self, x: torch.Tensor) -> torch.Tensor:
        return self.c((self.b((self.a(x) * 30).sin())).sin())[0]

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.vmap(self.field)(x), torch.vmap(torch.func.jacrev(self.field))(x)


@zoo("siren_gradient")
def siren() -> tuple[Any, ...]:
    return Siren(), torch.randn(5, 2)


class Moe(nn.Module):
    """A mixture of experts with a dispatch by sorting."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.up, self.down = (nn.Parameter(torch.randn(4, *s) / 4) for s in ((8, 16), (16, 8)))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weight, expert = self.gate(x).softmax(-1).topk(2)
        h = torch.einsum("nd,nkdf->nkf", x, self.up[expert]).relu()
        out = torch.einsum("nkf,nkfd,nk->nd", h, self.down[expert], weight)
        return out, F.one_hot(expert, 4).float().mean((0, 1))


@zoo("mixture_of_experts")
def moe() -> tuple[Any, ...]:
    return Moe(), torch.randn(6, 8)


class ActorCritic(nn.Module):
    """A policy with masked actions and its entropy, as a named tuple."""

    class Decision(NamedTuple):
        """What the policy says."""

        logits: torch.Tensor
        entropy: torch.Tensor
        value: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
        self.actor, self.critic = nn.Linear(16, 4), nn.Linear(16, 1)

    def forward(self, x: torch.Tensor, legal: torch.Tensor) -> ActorCritic.Decision:
        h = self.body(x)
        logits = self.actor(h).masked_fill(~legal, -1e9)
        entropy = torch.distributions.Categorical(logits=logits, validate_args=False).entropy()
        return self.Decision(logits, entropy, self.critic(h)[:, 0])


@zoo("actor_critic")
def actor_critic() -> tuple[Any, ...]:
    return ActorCritic(), torch.randn(3, 6), torch.tensor([[True, False, True, True]] * 3)


class NeuralOde(nn.Module):
    """Eight steps of Runge and Kutta."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 2))

    def slope(self, t: float, y: torch.Tensor) -> torch.Tensor:
        return self.net(torch.cat([y, torch.full_like(y[:, :1], t)], -1))

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        h = 0.125
        for i in range(8):
            t = i * h
            a = self.slope(t, y)
            b = self.slope(t + h / 2, y + h / 2 * a)
            c = self.slope(t + h / 2, y + h / 2 * b)
            y = y + h / 6 * (a + 2 * b + 2 * c + self.slope(t + h, y + h * c))
        return y


@zoo("neural_ode")
def neural_ode() -> tuple[Any, ...]:
    return NeuralOde(), torch.randn(4, 2)


class GaussianProcess(nn.Module):
    """Regression by a kernel: Cholesky, triangular systems, the likelihood."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.noise = nn.Parameter(torch.tensor(0.5)), nn.Parameter(torch.tensor(0.3))

    def kernel(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.exp(-torch.cdist(a, b).square() / (2 * self.scale.square()))

    def forward(
        self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        lower = torch.linalg.cholesky(self.kernel(x, x) + self.noise * torch.eye(x.shape[0]))
        weight = torch.cholesky_solve(y[:, None], lower)
        cross = self.kernel(z, x)
        v = torch.linalg.solve_triangular(lower, cross.mT, upper=False)
        mean, variance = (cross @ weight)[:, 0], 1 - v.square().sum(0)
        fit = -0.5 * (y @ weight[:, 0]) - lower.diagonal().log().sum()
        return mean, variance, fit


@zoo("gaussian_process")
def gaussian_process() -> tuple[Any, ...]:
    return GaussianProcess(), torch.randn(6, 2), torch.randn(6), torch.randn(4, 2)


class Contrastive(nn.Module):
    """Two towers with a symmetric loss."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 6), nn.Linear(5, 6)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = F.normalize(self.a(x)) @ F.normalize(self.b(y)).T * self.scale.exp()
        wanted = torch.arange(len(x))
        return (F.cross_entropy(logits, wanted) + F.cross_entropy(logits.T, wanted)) / 2


@zoo("contrastive")
def contrastive() -> tuple[Any, ...]:
    return Contrastive(), torch.randn(4, 8), torch.randn(4, 5)


class Kan(nn.Module):
    """Kolmogorov-Arnold: B-splines of each input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("grid", torch.linspace(-2, 2, 10))
        self.weight, self.base = nn.Parameter(torch.randn(5, 3, 6)), nn.Linear(3, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u, g = x[..., None], self.grid
        basis = ((u >= g[:-1]) & (u < g[1:])).to(x.dtype)
        for k in range(1, 4):
            left = (u - g[: -(k + 1)]) / (g[k:-1] - g[: -(k + 1)]) * basis[..., :-1]
            right = (g[k + 1 :] - u) / (g[k + 1 :] - g[1:-k]) * basis[..., 1:]
            basis = left + right
        return self.base(F.silu(x)) + torch.einsum("nik,oik->no", basis, self.weight)


@zoo("kan")
def kan() -> tuple[Any, ...]:
    return Kan(), torch.randn(5, 3)


class DeepSets(nn.Module):
    """Sets of different sizes, padded, with a masked mean and attention pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.seed = nn.Linear(4, 12), nn.Parameter(torch.randn(1, 1, 12))
        self.pool = nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, x: torch.Tensor, length: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        absent = torch.arange(x.shape[1]) >= length[:, None]
        h = self.inner(x).relu()
        mean = h.masked_fill(absent[..., None], 0).sum(1) / length[:, None]
        seed = self.seed.expand(x.shape[0], -1, -1)
        out, weight = self.pool(seed, h, h, key_padding_mask=absent)
        return mean + out[:, 0], weight


@zoo("deep_sets")
def deep_sets() -> tuple[Any, ...]:
    return DeepSets(), torch.randn(3, 5, 4), torch.tensor([2, 5, 3])
