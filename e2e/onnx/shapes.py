# SPDX-License-Identifier: Apache-2.0
"""Writes small ONNX models into a directory: one that works, and some that a runner has to refuse.

The score of the ones that work depends on the highest token id of a text.
"""

import os
import sys

import onnx
from onnx import TensorProto, helper

ANY = ["batch", "length"]


def model(name, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(m, os.path.join(sys.argv[1], name + ".onnx"))


def ids(name="input_ids", kind=TensorProto.INT64, shape=ANY):
    return helper.make_tensor_value_info(name, kind, shape)


def out(name="logits", shape=("batch", 2)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def number(name, x):
    return helper.make_tensor(name, TensorProto.FLOAT, [1, 1], [x])


def highest(source="input_ids"):
    """high: [batch, 1], the highest id of each row, as a float."""
    return [helper.make_node("Cast", [source], ["f"], to=TensorProto.FLOAT),
            helper.make_node("ReduceMax", ["f"], ["high"], axes=[1], keepdims=1)]


# logits = [0, high - 20000]: an injection is a text with a rare piece.
rare = highest() + [helper.make_node("Sub", ["high", "edge"], ["over"]),
                    helper.make_node("Sub", ["high", "high"], ["zero"]),
                    helper.make_node("Concat", ["zero", "over"], ["logits"], axis=1)]
edge = [number("edge", 20000.0)]
model("well", rare, [ids(), ids("attention_mask")], [out()], edge)
model("fixed", rare, [ids(shape=[1, 32])], [out(shape=[1, 2])], edge)
model("small-integers", rare, [ids(kind=TensorProto.INT32)], [out()], edge)
model("many-batches", rare, [ids(shape=[4, "length"])], [out(shape=[4, 2])], edge)
model("pictures", rare[:1] + rare[1:], [ids("input_ids"), ids("pixel_values")], [out()], edge)
model("no-ids", highest("attention_mask") + rare[2:], [ids("attention_mask")], [out()], edge)
model("floats", [helper.make_node("ReduceMax", ["input_ids"], ["high"], axes=[1], keepdims=1)] + rare[2:],
      [ids(kind=TensorProto.FLOAT)], [out()], edge)
model("one-output", highest() + [helper.make_node("Sub", ["high", "edge"], ["logits"])], [ids()], [out(shape=["batch", 1])], edge)
model("tokens", [helper.make_node("Cast", ["input_ids"], ["f"], to=TensorProto.FLOAT),
                 helper.make_node("Unsqueeze", ["f", "at"], ["logits"])], [ids()], [out(shape=["batch", "length", 1])],
      [helper.make_tensor("at", TensorProto.INT64, [1], [2])])
model("two-outputs", rare + [helper.make_node("Identity", ["logits"], ["copy"])], [ids()],
      [out("over", ["batch", 1]), out("copy")], edge)
# logits = [0, sqrt(20000 - high)]: no number for a text with a rare piece.
model("nan-sometimes", highest() + [helper.make_node("Sub", ["edge", "high"], ["below"]), helper.make_node("Sqrt", ["below"], ["root"]),
                                    helper.make_node("Sub", ["high", "high"], ["zero"]),
                                    helper.make_node("Concat", ["zero", "root"], ["logits"], axis=1)], [ids()], [out()], edge)
model("nan", highest() + [helper.make_node("Sub", ["high", "high"], ["zero"]), helper.make_node("Div", ["zero", "zero"], ["none"]),
                          helper.make_node("Concat", ["none", "none"], ["logits"], axis=1)], [ids()], [out()])
