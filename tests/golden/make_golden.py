#!/usr/bin/python3
"""Write nn.json and optim.json: what an independent framework (PyTorch, in double) makes
of every op, loss and optimizer. Debian: apt-get install python3-torch; then run this file.

A case holds its model, its data and its results. Parameters and table rows follow from
`pseudo`, which tests/unit/nn_case.c has too, so they are not stored.
"""
import json
import math
import os

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
M32 = (1 << 32) - 1


def pseudo(a, b, c):
    """A number in [-0.5, 0.5), exact in a float."""
    x = (a * 0x9E3779B1 + b * 0x85EBCA77 + c * 0xC2B2AE3D + 0x27D4EB2F) & M32
    x = ((x ^ (x >> 15)) * 0x2C1B3C6D) & M32
    x = ((x ^ (x >> 12)) * 0x297A2D39) & M32
    x ^= x >> 15
    return (x >> 8) / (1 << 24) - 0.5


def emb(name, table, slots, pooling="concat"):
    return {"name": name, "op": "embedding", "table": table, "slots": slots, "pooling": pooling}


def dense(name, of, units, act="linear", bias=True):
    layer = {"name": name, "op": "dense", "inputs": [of], "units": units, "activation": act}
    if not bias:
        layer["bias"] = False
    return layer


def concat(name, *of):
    return {"name": name, "op": "concat", "inputs": list(of)}


def cut(name, of, begin, size):
    return {"name": name, "op": "slice", "inputs": [of], "begin": begin, "size": size}


def cosine(name, a, b):
    return {"name": name, "op": "cosine", "inputs": [a, b]}


def negatives(name, table, count, pooling="concat"):
    return {"name": name, "op": "negatives", "table": table, "count": count, "pooling": pooling}


def model(name, slots, n_dense, tables, layers, loss, **more):
    return {"name": name, "inputs": {"slots": slots, "dense": n_dense},
            "tables": [{"name": n, "dim": d, "rows": r} for n, d, r in tables],
            "layers": layers, "loss": dict(more, kind=loss[0], inputs=list(loss[1:]))}


SIGMOID = ("sigmoid_cross_entropy", "out")
SOFTMAX = ("softmax_cross_entropy", "out")


def models():
    # One op or loss at a time.
    for pooling in ("sum", "mean", "concat"):
        yield model("embedding-" + pooling, 3, 0, [("t", 4, 7)],
                    [emb("e", "t", [2, 0, 1], pooling), dense("out", "e", 1)], SIGMOID)
    for act in ("linear", "relu", "sigmoid", "tanh"):
        yield model("dense-" + act, 2, 3, [("t", 5, 9)],
                    [emb("e", "t", [0, 1]), concat("in", "dense", "e"),
                     dense("h", "in", 7, act), dense("out", "h", 1)], SIGMOID)
    yield model("dense-features", 0, 5, [],
                [dense("h", "dense", 19, "tanh", bias=False), cut("s", "dense", 1, 3),
                 concat("both", "h", "s"), dense("out", "both", 2, bias=False)], SOFTMAX)
    yield model("cosine", 4, 0, [("t", 6, 11)],
                [emb("a", "t", [0, 1], "sum"), emb("b", "t", [2, 3], "mean"),
                 cosine("c", "a", "b"), dense("out", "c", 1)], SIGMOID)
    yield model("slices", 3, 0, [("t", 6, 0)],
                [emb("e", "t", [0, 1, 2]), cut("left", "e", 0, 7), cut("right", "e", 5, 13),
                 cut("mid", "right", 1, 6), dense("h", "left", 6, "tanh"),
                 cosine("c", "mid", "h"), concat("in", "left", "mid", "c", "h"),
                 dense("out", "in", 1)], SIGMOID)
    # Readers in many places, a layer that travels far, tables and layers shared.
    yield model("tangle", 5, 4, [("big", 3, 13), ("small", 5, 4)],
                [emb("e", "big", [0, 1, 2]), emb("f", "small", [3, 4], "sum"),
                 emb("e2", "big", [2, 3], "mean"), concat("in", "e", "dense", "f", "e2"),
                 dense("h", "in", 21, "sigmoid"), concat("in2", "h", "in", "f"),
                 dense("g", "in2", 5, "tanh"), dense("d5", "dense", 5), cosine("c", "g", "f"), cosine("cc", "f", "d5"),
                 cut("s", "h", 2, 9), concat("last", "c", "s", "g", "cc", "e2"),
                 dense("out", "last", 2)], SOFTMAX)
    yield model("negatives", 2, 0, [("t", 4, 10)],
                [emb("e", "t", [0, 1], "sum"), negatives("n", "t", 3, "mean"),
                 negatives("n2", "t", 2, "sum"), cosine("pos", "e", "n2"),
                 cosine("neg", "e", "n")], ("hinge", "pos", "neg"), margin=0.8)
    # The four models, narrow.
    yield model("ctrdnn", 4, 3, [("emb", 3, 17)],
                [emb("emb", "emb", [0, 1, 2, 3]), concat("in", "emb", "dense"),
                 dense("fc1", "in", 8, "relu"), dense("fc2", "fc1", 8, "relu"),
                 dense("fc3", "fc2", 8, "relu"), dense("out", "fc3", 2)], SOFTMAX)
    yield model("matchnet", 5, 3, [("user", 3, 17), ("item", 3, 11)],
                [emb("uemb", "user", [0, 1]), dense("u1", "uemb", 8, "relu"),
                 dense("u2", "u1", 5, "relu"), emb("iemb", "item", [2, 3, 4]),
                 concat("iin", "iemb", "dense"), dense("i1", "iin", 8, "relu"),
                 dense("i2", "i1", 5, "relu"), cosine("pos", "u2", "i2"),
                 negatives("neg_emb", "item", 4), dense("n1", "neg_emb", 8, "relu"),
                 dense("n2", "n1", 5, "relu"), cosine("neg", "u2", "n2")],
                ("hinge", "pos", "neg"), margin=0.8)
    yield model("2emb", 4, 3, [("big", 3, 23), ("small", 3, 5)],
                [emb("big", "big", [0, 1, 2, 3]), concat("in", "big", "dense"),
                 dense("fc1", "in", 8, "relu"), dense("fc2", "fc1", 5, "relu"),
                 emb("small", "small", [0, 1]), dense("sfc", "small", 6, "relu"),
                 concat("both", "fc2", "sfc"), dense("mix", "both", 2), dense("out", "mix", 2)],
                SOFTMAX)
    yield model("nce", 5, 0, [("context", 4, 23), ("target", 4, 19)],
                [emb("hidden", "context", [0, 1, 2, 3], "sum"), emb("out", "target", [4]),
                 negatives("noise", "target", 6)], ("nce", "hidden", "out", "noise"))


ACT = {"linear": lambda x: x, "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh}


class Rows:
    """A table whose rows come into being when they are read."""

    def __init__(self, number, spec):
        self.number, self.dim, self.rows, self.row = number, spec["dim"], spec["rows"], {}

    def get(self, key):
        if key not in self.row:
            v = [pseudo(7 + self.number, key & M32, d) * 2 for d in range(self.dim)]
            self.row[key] = torch.tensor(v, dtype=torch.float64, requires_grad=True)
        return self.row[key]


def pool(rows, how):
    if how == "concat":
        return torch.cat(rows)
    x = torch.stack(rows)
    return x.sum(0) if how == "sum" else x.mean(0)


def forward(m, data, tables, params):
    values = {"dense": torch.tensor(data["dense"], dtype=torch.float64)}
    n, used = len(data["label"]), 0
    for layer in m["layers"]:
        x = [values[i] for i in layer.get("inputs", [])]
        if layer["op"] in ("embedding", "negatives"):
            t = tables[[s["name"] for s in m["tables"]].index(layer["table"])]
            if layer["op"] == "negatives":
                keys = data["negatives"][layer["name"]]
            else:
                keys = [[r[s] % t.rows if t.rows else r[s] for s in layer["slots"]]
                        for r in data["key"]]
            y = torch.stack([pool([t.get(k) for k in row], layer["pooling"]) for row in keys])
        elif layer["op"] == "concat":
            y = torch.cat(x, 1)
        elif layer["op"] == "slice":
            y = x[0].narrow(1, layer["begin"], layer["size"])
        elif layer["op"] == "dense":
            size = x[0].shape[1] * layer["units"]
            w = params[used:used + size].view(x[0].shape[1], layer["units"])
            used += size
            z = F.linear(x[0], w.t())
            if layer.get("bias", True):
                z = z + params[used:used + layer["units"]]
                used += layer["units"]
            y = ACT[layer["activation"]](z)
        else:
            y = F.cosine_similarity(x[0], x[1], dim=1).unsqueeze(1)
        values[layer["name"]] = y
    assert used == len(params) and n == len(y)
    return values


def loss_of(m, values, label, rows):
    x = [values[i] for i in m["loss"]["inputs"]]
    kind, y = m["loss"]["kind"], torch.tensor(label, dtype=torch.float64)
    if kind == "sigmoid_cross_entropy":
        z = x[0].squeeze(1)
        return F.binary_cross_entropy_with_logits(z, y, reduction="sum"), torch.sigmoid(z)
    if kind == "softmax_cross_entropy":
        return (F.cross_entropy(x[0], y.long(), reduction="sum"),
                F.softmax(x[0], dim=1)[:, 1])
    if kind == "hinge":
        pos, neg = x[0].squeeze(1), x[1].squeeze(1)
        each = F.margin_ranking_loss(pos, neg, torch.ones_like(y), margin=m["loss"]["margin"],
                                     reduction="none")
        return (each * y).sum(), pos
    h, t, noise = x
    k = noise.shape[1] // h.shape[1]
    shift = math.log(k / rows)
    st = (h * t).sum(1)
    sn = torch.einsum("rd,rkd->rk", h, noise.reshape(len(y), k, -1))
    one = F.binary_cross_entropy_with_logits(st - shift, torch.ones_like(st), reduction="none")
    zero = F.binary_cross_entropy_with_logits(sn - shift, torch.zeros_like(sn),
                                              reduction="none").sum(1)
    return ((one + zero) * y).sum(), torch.sigmoid(st)


def count_params(m):
    cols, total = {"dense": m["inputs"]["dense"]}, 0
    dims = {t["name"]: t["dim"] for t in m["tables"]}
    for layer in m["layers"]:
        op, x = layer["op"], [cols[i] for i in layer.get("inputs", [])]
        if op in ("embedding", "negatives"):
            many = len(layer["slots"]) if op == "embedding" else layer["count"]
            c = dims[layer["table"]] * (many if layer["pooling"] == "concat" else 1)
        elif op == "dense":
            c = layer["units"]
            total += x[0] * c + (c if layer.get("bias", True) else 0)
        else:
            c = {"concat": sum(x), "slice": layer.get("size"), "cosine": 1}[op]
        cols[layer["name"]] = c
    return total


def short(tensor):
    return [float("%.9g" % v) for v in tensor.detach().flatten().tolist()]


def case(number, m):
    n = 7
    key = [[int((pseudo(number, r, 100 + s) + 0.5) * 40) for s in range(m["inputs"]["slots"])]
           for r in range(n)]
    data = {"key": key,
            "dense": [[pseudo(number, r, 200 + d) * 3 for d in range(m["inputs"]["dense"])]
                      for r in range(n)],
            "label": [1.0 if r % 3 else 0.0 for r in range(n)]}
    specs = {t["name"]: t for t in m["tables"]}
    data["negatives"] = {
        layer["name"]: [[int((pseudo(number, r, 300 + i) + 0.5) * specs[layer["table"]]["rows"])
                         for i in range(layer["count"])] for r in range(n)]
        for layer in m["layers"] if layer["op"] == "negatives"}
    params = torch.tensor([pseudo(3, i, number) * 1.5 for i in range(count_params(m))],
                          dtype=torch.float64, requires_grad=True)
    tables = [Rows(i, t) for i, t in enumerate(m["tables"])]
    values = forward(m, data, tables, params)
    noise_rows = specs[m["layers"][-1]["table"]]["rows"] if m["name"] == "nce" else 0
    loss, scores = loss_of(m, values, data["label"], noise_rows)
    loss.backward()
    result = {"loss": float("%.12g" % loss.item()), "scores": short(scores),
              "grads": short(params.grad) if len(params) else [],
              "row_grads": [{"table": t.number, "key": k, "grad": short(t.row[k].grad)}
                            for t in tables for k in sorted(t.row)]}
    # One step of the model's own kind: adam for the dense parameters, adagrad for rows.
    with torch.no_grad():
        for x in [params] + [r for t in tables for r in t.row.values()]:
            if x.grad is not None:
                x.grad /= n
    if len(params):
        torch.optim.Adam([params], lr=0.001).step()
        result["params_after"] = short(params)
    for t in tables:
        torch.optim.Adagrad(list(t.row.values()), lr=0.05, initial_accumulator_value=0.1).step()
    result["rows_after"] = [short(t.row[k]) for t in tables for k in sorted(t.row)]
    return {"number": number, "model": m, "data": data, "result": result}


def optim_case(kind, make):
    w = torch.tensor([pseudo(1, i, 0) * 4 for i in range(9)], dtype=torch.float64,
                     requires_grad=True)
    opt, steps, count = make([w]), [], 5
    for t in range(4):
        w.grad = torch.tensor([pseudo(2, i, t) * 8 for i in range(9)], dtype=torch.float64) / count
        opt.step()
        steps.append(short(w))
    return {"kind": kind, "count": count, "steps": steps}


def write(name, value):
    with open(os.path.join(HERE, name), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in value) + "\n]\n")


if __name__ == "__main__":
    write("nn.json", [case(i, m) for i, m in enumerate(models())])
    write("optim.json", [
        optim_case("sgd", lambda w: torch.optim.SGD(w, lr=0.1)),
        optim_case("adagrad", lambda w: torch.optim.Adagrad(w, lr=0.05, eps=1e-10,
                                                            initial_accumulator_value=0.1)),
        optim_case("adam", lambda w: torch.optim.Adam(w, lr=0.01))])
