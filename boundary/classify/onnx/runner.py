# SPDX-License-Identifier: Apache-2.0
"""Scores texts with an ONNX text classifier, one line of JSON for each question.

The first line of standard input holds the options; the answer is {"ready": ...} or
{"failed": code, "detail": ...}. Each further line is {"id": n, "text": "..."}; the answer is
{"id": n, "score": x}, where x is null if the model gave no finite number, or {"id": n, "failed": true}.
The end of standard input ends the program. Nothing here prints a text.
"""

import hashlib
import json
import math
import os
import sys

# Libraries may print to standard output. Only answers go to the pipe.
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
INTEGERS = {"tensor(int64)": "int64", "tensor(int32)": "int32"}


class Refused(Exception):
    def __init__(self, code, detail=""):
        super().__init__(code)
        self.code, self.detail = code, str(detail).replace("[ONNXRuntimeError] : ", "")[:256]


def answer(value):
    answers.write(json.dumps(value).encode("ascii") + b"\n")
    answers.flush()


def bound(options):
    """Bounds the memory of this process, and lets others go first where the options say so."""
    try:
        import resource
    except ImportError:  # Windows
        return
    most = options["memory"]
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ValueError, OSError):
        if sys.platform == "linux":
            raise
    if options["behind"]:
        os.nice(10)


def read(path, what, digest):
    """The bytes of a file, whose digest is checked before anything parses them."""
    try:
        with open(path, "rb") as f:
            b = f.read()
    except OSError as e:
        raise Refused(what + "-missing", e.strerror)
    is_ = "sha256:" + hashlib.sha256(b).hexdigest()
    if digest and digest != is_:
        raise Refused(what + "-digest", is_.removeprefix("sha256:"))
    return b, is_


def config_of(path):
    try:
        with open(path, "rb") as f:
            c = json.load(f)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        raise Refused("config-unreadable")
    return c if isinstance(c, dict) else {}


def session_of(model, options):
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    if hasattr(ort, "disable_telemetry_events"):
        ort.disable_telemetry_events()
    so = ort.SessionOptions()
    so.log_severity_level = 4
    so.intra_op_num_threads = options["threads"]
    so.inter_op_num_threads = 1
    try:
        return ort.InferenceSession(model, so, providers=["CPUExecutionProvider"])
    except MemoryError:
        raise
    except Exception as e:
        if "bad_alloc" in str(e) or "allocate" in str(e):
            raise Refused("memory")
        raise Refused("model", e)


def inputs_of(session):
    """The types of the inputs by name, and the length that the model has fixed; 0: any."""
    types, fixed = {}, 0
    for i in session.get_inputs():
        if i.name not in INPUTS:
            raise Refused("input-unknown", i.name)
        if i.type not in INTEGERS or len(i.shape) != 2:
            raise Refused("input-shape", "%s %s %s" % (i.name, i.type, list(i.shape)))
        batch, length = i.shape
        if isinstance(batch, int) and batch != 1 or isinstance(length, int) and length < 8:
            raise Refused("input-shape", "%s %s %s" % (i.name, i.type, list(i.shape)))
        if isinstance(length, int):
            fixed = length
        types[i.name] = INTEGERS[i.type]
    if "input_ids" not in types:
        raise Refused("input-missing", ", ".join(types))
    return types, fixed


def output_of(session):
    names = [o.name for o in session.get_outputs()]
    if "logits" in names:
        return "logits"
    if len(names) == 1:
        return names[0]
    raise Refused("outputs", ", ".join(names))


class Classifier:
    def __init__(self, options):
        try:
            import numpy
            import onnxruntime  # noqa: F401
            import tokenizers
        except ImportError as e:
            raise Refused("packages", e.name or e)
        self.np = numpy
        model, self.model_digest = read(options["model"], "model", options["model_digest"])
        pieces, self.tokenizer_digest = read(options["tokenizer"], "tokenizer", options["tokenizer_digest"])
        config = config_of(options["config"])
        try:
            self.tokenizer = tokenizers.Tokenizer.from_buffer(pieces)
        except MemoryError:
            raise
        except BaseException as e:  # its panics are no Exception
            raise Refused("tokenizer", e)
        self.session = session_of(model, options)
        del model
        self.types, fixed = inputs_of(self.session)
        self.output = output_of(self.session)
        self.windows(options, config or {}, fixed)
        self.scoring(options["scores"], config, options["injection"])

    def windows(self, options, config, fixed):
        tokens, positions = options["max_tokens"], config.get("max_position_embeddings")
        if isinstance(positions, int) and 0 < positions < tokens:
            raise Refused("positions", positions)
        words, known = self.tokenizer.get_vocab_size(True), config.get("vocab_size")
        if isinstance(known, int) and known < words:
            raise Refused("vocabulary", "%d, %d" % (words, known))
        if fixed and fixed < tokens:
            raise Refused("length", fixed)
        own = self.tokenizer.num_special_tokens_to_add(False)
        if options["overlap"] >= tokens - own:
            raise Refused("overlap", tokens - own)
        self.tokenizer.enable_truncation(tokens, stride=options["overlap"])
        self.tokenizer.no_padding()
        if fixed:
            pad = config.get("pad_token_id")
            self.tokenizer.enable_padding(length=fixed, pad_id=pad if isinstance(pad, int) else 0)

    def scoring(self, scores, config, wanted):
        """Looks at what the model answers to a text of ours, and which outputs are meant."""
        out = self.run(self.tokenizer.encode("This is a text."))
        if out.ndim != 2 or out.shape[0] != 1 or not 1 <= out.shape[1] <= 1024:
            raise Refused("output-shape", list(out.shape))
        self.n = out.shape[1]
        self.scores = scores or ("sigmoid" if self.n == 1 else "softmax")
        if self.scores == "softmax" and self.n == 1:
            raise Refused("softmax")
        labels = (config or {}).get("id2label")
        labels = {v: int(k) for k, v in labels.items() if k.isdigit() and isinstance(v, str)} if isinstance(labels, dict) else {}
        self.wanted = []
        for label in wanted:
            at = labels.get(label)
            if at is None and label.isdigit() and len(label) < 5:
                at = int(label)
            if at is None and config is None:
                raise Refused("config-missing")
            if at is None:
                raise Refused("label", ", ".join(labels) or "no labels")
            if at >= self.n:
                raise Refused("index", self.n)
            self.wanted.append(at)
        if len(set(self.wanted)) == self.n > 1:
            raise Refused("all-labels", self.n)
        if self.score("This is a text.") is None:
            raise Refused("not-finite")

    def run(self, e):
        values = {"input_ids": e.ids, "attention_mask": e.attention_mask, "token_type_ids": e.type_ids}
        try:
            out = self.session.run([self.output], {n: self.np.array([values[n]], dtype=t) for n, t in self.types.items()})
        except MemoryError:
            raise
        except Exception as e:
            raise Refused("run", e)
        return self.np.asarray(out[0], dtype="float64")

    def score(self, text):
        """The highest score of the windows; None where one is not finite or no probability."""
        first = self.tokenizer.encode(text)
        best = 0.0
        # One at a time: padding or neighbours would change the scores of a quantised model.
        for e in [first] + first.overflowing:
            out = self.run(e)
            if out.shape != (1, self.n) or not self.np.isfinite(out).all():
                return None
            p = self.probability([float(x) for x in out[0]])
            if not 0 <= p <= 1 + 1e-6:
                return None
            best = max(best, min(p, 1.0))
        return best

    def probability(self, row):
        if self.scores == "sigmoid":
            return max(1 / (1 + math.exp(-max(-700.0, min(700.0, row[i])))) for i in self.wanted)
        if self.scores == "softmax":
            top = max(row)
            row = [math.exp(x - top) for x in row]
            whole = sum(row)
            row = [x / whole for x in row]
        picked = [row[i] for i in self.wanted]
        return math.nan if min(picked) < 0 else math.fsum(picked)


def main():
    options = json.loads(sys.stdin.buffer.readline())
    try:
        bound(options)
        classifier = Classifier(options)
    except Refused as e:
        return answer({"failed": e.code, "detail": e.detail})
    except MemoryError:
        return answer({"failed": "memory", "detail": ""})
    answer({"ready": {"model": classifier.model_digest, "tokenizer": classifier.tokenizer_digest,
                      "scores": classifier.scores, "outputs": classifier.n, "wanted": classifier.wanted}})
    for line in sys.stdin.buffer:
        question = json.loads(line)
        try:
            answer({"id": question["id"], "score": classifier.score(question["text"])})
        except Exception:  # its text may hold a part of the question
            answer({"id": question["id"], "failed": True})


try:
    main()
except (KeyboardInterrupt, BrokenPipeError):
    pass
