#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second verifier of Pellucid's evidence (docs/spec/evidence.md, version 0.1; cases: 0.2).

    verify.py log DIRECTORY VKEY [WITNESS-VKEY...]   an exported log
    verify.py proof FILE VKEY [WITNESS-VKEY...]      the proof of one record
    verify.py case [--unsigned] FILE VKEY [WITNESS-VKEY...]
                                                     everything about one decision; --unsigned accepts a
                                                     file without a head, which may lack a part

It needs Python 3.8 and nothing else, and opens no network. What is wrong is printed,
a line each; the exit code is then 1. The openings of a log are passed over, those of a case are checked.
"""
import base64, hashlib, hmac, json, re, struct, sys
from pathlib import Path

PAYLOAD = "application/vnd.in-toto+json"
PREDICATE = "https://github.com/pellucid-mcp/pellucid/evidence/v0.1"
CASE = "https://github.com/pellucid-mcp/pellucid/case/v0."
FAULTS = OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError
LABEL = r"[A-Za-z0-9@][A-Za-z0-9@._/:+-]{0,127}"
wrong = []
def problem(place, what):
    wrong.append(place)
    print(f"{place}: {what}")
def need(true, what):
    if not true:
        raise ValueError(what)

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493  # of Ed25519 (RFC 8032)
D = -121665 * pow(121666, P - 2, P) % P
def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P

def decode_point(b):
    y = int.from_bytes(b, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if (v * x * x - u) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    need((v * x * x - u) % P == 0, "no point of the curve")
    x = x if x & 1 == sign else P - x
    return x, y, 1, x * y % P
def encode_point(p):
    z = pow(p[2], P - 2, P)
    return (p[1] * z % P | (p[0] * z % P & 1) << 255).to_bytes(32, "little")
BASE = decode_point(b"\x58" + b"\x66" * 31)

def ed25519(key, message, sig):
    s = int.from_bytes(sig[32:], "little")
    k = int.from_bytes(hashlib.sha512(sig[:32] + key + message).digest(), "little") % L
    x, y, _, xy = decode_point(key)
    a, r = (P - x, y, 1, P - xy), (0, 1, 1, 0)
    table = None, BASE, a, add(BASE, a)
    for i in reversed(range(253)):  # r = s*BASE - k*key
        r = add(r, r)
        which = (s >> i & 1) | (k >> i & 1) << 1
        r = add(r, table[which]) if which else r
    return len(sig) == 64 and s < L and encode_point(r) == sig[:32]

def b64(s):
    raw = base64.b64decode(s, validate=True)
    need(base64.b64encode(raw).decode() == s, "base64 in another spelling")
    return raw

class Key:
    def __init__(self, vkey, kind=1):
        need(vkey.count("+") >= 2, "no key: want NAME+ID+KEY")
        name, digits, material = vkey.split("+", 2)
        self.vkey, self.name, self.id, raw = vkey, name, name + "+" + digits, b64(material)
        self.public = raw[1:]
        need(raw[0] == kind and len(raw) == 33 and digits == hashlib.sha256(name.encode() + b"\n" + raw).hexdigest()[:8], "no such key")

def split_checkpoint(text):
    m = re.fullmatch(r"((\S+)\n(0|[1-9][0-9]*)\n(\S{44})\n)\n((?:\u2014 \S+ \S+\n)+)", text)
    body, origin, size, root, sigs = need(m, "is not a checkpoint") or m.groups()
    return body, origin, int(size), b64(root), [line.split(" ")[1:] for line in sigs.splitlines()]

def check_checkpoint(text, keys, in_force, witnesses):
    (body, origin, _, _, sigs), signed = split_checkpoint(text), set()
    for name, sig in sigs:
        raw = b64(sig)
        for k in keys + witnesses:
            if k.id == name + "+" + raw[:4].hex():
                need(k.id not in signed, "is signed twice by one key")
                prefix, value = b"", raw[4:]
                if k in witnesses:
                    prefix, value = b"cosignature/v1\ntime %d\n" % struct.unpack(">Q", value[:8]), value[8:]
                need(ed25519(k.public, prefix + body.encode(), value), "has a wrong signature")
                signed.add(k.id)
    need(any(k.id in signed and k.name == origin for k in in_force), "is not signed by the key in force")
    need(all(w.id in signed for w in witnesses), "is not cosigned by every witness")

def leaf_hash(b):  # RFC 6962
    return hashlib.sha256(b"\0" + b).digest()
def tree_hash(h):
    if len(h) < 2:
        return h[0] if h else hashlib.sha256(b"").digest()
    k = 1 << (len(h) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + tree_hash(h[:k]) + tree_hash(h[k:])).digest()

def read_record(envelope):
    e = json.loads(envelope)
    need(json.dumps(e, separators=(",", ":"), sort_keys=True).encode() == envelope, "has another spelling")
    sig, = e["signatures"]
    need(set(e) == {"payload", "payloadType", "signatures"} and set(sig) == {"keyid", "sig"}
         and e["payloadType"] == PAYLOAD, "is no envelope of this format")
    body = b64(e["payload"])
    s = json.loads(body)
    need(json.dumps(s, separators=(",", ":"), sort_keys=True).encode() == body, "has a statement in another spelling")
    need(set(s) == {"_type", "predicate", "predicateType", "subject"} and s["_type"] == "https://in-toto.io/Statement/v1"
         and s["predicateType"] == PREDICATE and s["subject"], "has no statement of this format")
    need(all(re.fullmatch(LABEL, v) for k, v in s["predicate"].items() if isinstance(v, str) and k != "key"), "holds no label")
    return body, s, sig["keyid"], b64(sig["sig"])
def signed_by(k, body, keyid, sig):
    pae = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(body), body)
    return keyid == k.id and ed25519(k.public, pae, sig)

def path_of(directory, n, width):
    index = "/".join(("x" if i else "") + f"{n // 1000**i % 1000:03}" for i in reversed(range(max(1, (len(str(n)) + 2) // 3))))
    return f"{directory}/{index}" + (f".p/{width}" if width < 256 else "")

def check_log(root, trusted, witnesses):
    kept, files = {}, {f.relative_to(root).as_posix() for f in Path(root).rglob("*") if f.is_file() and Path(root, "openings") not in f.parents}
    def read(path):
        files.discard(path)
        return kept.setdefault(path.split(".p/")[0], Path(root, path).read_bytes())
    checkpoint = read("checkpoint").decode()
    _, _, size, want, _ = split_checkpoint(checkpoint)
    leaves, keys, ids = [], [], set()
    for n in range((size + 255) // 256):
        width = min(256, size - n * 256)
        path, bundle = path_of("tile/entries", n, width), b""
        try:
            bundle, entries = read(path), []
            while bundle:
                end = 2 + struct.unpack(">H", bundle[:2])[0]
                need(len(bundle) >= end, "is cut")
                entries.append(bundle[2:end])
                bundle = bundle[end:]
            need(len(entries) == width, "is not of that many entries")
        except (OSError, ValueError, struct.error) as e:
            problem(path, e)
            break
        for i, envelope in enumerate(entries):
            leaves.append(leaf_hash(envelope))
            try:
                body, s, keyid, sig = read_record(envelope)
                named = [Key(s["predicate"]["key"])] if s["predicate"]["kind"] == "key-installed" else []
                need(keys or named, "does not name the first key")
                need(signed_by((keys or named)[-1], body, keyid, sig), "is not signed by the key in force")
                need(s["predicate"]["id"] not in ids, "has the id of an earlier record")
                ids.add(s["predicate"]["id"])
                keys += named
            except FAULTS as e:
                problem(f"record {n * 256 + i}", e)
    level, hashes = 0, leaves
    while len(leaves) == size and hashes:
        for n in range((len(hashes) + 255) // 256):
            part = hashes[n * 256:n * 256 + 256]
            path = path_of(f"tile/{level}", n, len(part))
            if path not in files or read(path) != b"".join(part):
                problem(path, "does not hold the hashes that follow from the records")
        level, hashes = level + 1, [tree_hash(hashes[n:n + 256]) for n in range(0, len(hashes) - 255, 256)]
    try:
        need(tree_hash(leaves) == want, "has a root that is not that of the records")
        need(not size or any(k.vkey == t.vkey for k in keys for t in trusted), "is signed by keys that nobody trusts")
        check_checkpoint(checkpoint, keys or trusted, keys[-1:] or trusted, witnesses)
    except ValueError as e:
        problem("checkpoint", e)
    for path in sorted(p for p in files if len(leaves) == size and not kept.get(p.split(".p/")[0], b"").startswith(Path(root, p).read_bytes() or b"?")):
        problem(ascii(path), "does not belong to the export")
    return f"{size} records, {len(keys)} keys"

def read_proof(text, trusted, witnesses):
    m = re.fullmatch(r"c2sp\.org/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9][0-9]*)\n((?:\S{44}\n)*)\n(.*)", text, re.S)
    envelope, index, hashes = b64(need(m, "is not a proof") or m[1]), int(m[2]), [b64(h) for h in m[3].split()]
    check_checkpoint(m[4], trusted, trusted, witnesses)
    _, _, size, root, _ = split_checkpoint(m[4])
    at, last, h = index, size - 1, leaf_hash(envelope)
    for p in hashes:  # RFC 9162, section 2.1.3.2
        need(last, "has too long a path")
        left = at & 1 or at == last
        h = hashlib.sha256(b"\1" + (p + h if left else h + p)).digest()
        while left and not at & 1 and at:
            at, last = at >> 1, last >> 1
        at, last = at >> 1, last >> 1
    need(index < size and last == 0 and h == root, "does not lead to the root")
    body, s, keyid, sig = read_record(envelope)
    need(all(signed_by(k, body, keyid, sig) for k in trusted if k.id == keyid), "holds a record with a wrong signature")
    return index, size, s, m[4]

def check_proof(path, trusted, witnesses):
    index, size, s, _ = read_proof(Path(path).read_text("utf-8"), trusted, witnesses)
    return f"record {index} of {size}: {s['predicate']['kind']} {s['predicate']['id']}"

def once(pairs):
    need(len(dict(pairs)) == len(pairs), "has a member twice")
    return dict(pairs)
def members(o, needed, optional=()):
    need(isinstance(o, dict) and set(needed) <= set(o) <= set(needed) | set(optional), "has other members than this format")
    return o

def open_record(s, opening):
    """The plain digests of a statement, by role."""
    o = members(json.loads(opening, object_pairs_hook=once), ["digests", "id", "salt"])
    need(json.dumps(o, separators=(",", ":"), sort_keys=True) == opening and o["id"] == s["predicate"]["id"], "is not the opening of the record")
    salted = {x["name"]: x["digest"]["hmacSha256"] for x in s["subject"]}
    need(set(salted) == set(o["digests"]), "opens other digests than those of the record")
    for role, plain in o["digests"].items():
        mac = hmac.new(bytes.fromhex(o["salt"]), role.encode() + b"\0" + bytes.fromhex(plain), hashlib.sha256)
        need(mac.hexdigest() == salted[role], "does not open the digest " + ascii(role))
    return o["digests"]

class Record:
    def __init__(self, r, trusted, witnesses):
        members(r, ["proof"], ["opening"])
        self.index, self.size, s, self.checkpoint = read_proof(r["proof"], trusted, witnesses)
        self.plain = open_record(s, r["opening"]) if "opening" in r else {}
        self.is_open, self.says = "opening" in r, s["predicate"]
        self.id, self.kind, self.of = self.says["id"], self.says["kind"], self.says.get("of")
    def shows(self, role, content):
        need(role in self.plain, "lacks the opening by which a digest is checked: " + role)
        return self.plain[role] == hashlib.sha256(content).hexdigest()

def texts(value, path=""):
    """The path and the SHA-256 of each text, as a head has them."""
    if isinstance(value, str):
        return f"{path} {hashlib.sha256(value.encode()).hexdigest()}\n"
    pairs = sorted(value.items()) if isinstance(value, dict) else enumerate(value)
    return "".join(texts(v, f"{path}/{k}") for k, v in pairs)

def check_head(c, trusted, records):
    """Nothing was taken out of the case, or put into it, since the key of the log has signed it."""
    e = json.loads(c["head"])
    sig, = e["signatures"]
    body = b64(e["payload"])
    need(any(signed_by(k, body, sig["keyid"], b64(sig["sig"])) for k in trusted), "has a head that the key of the log has not signed")
    digest = hashlib.sha256(texts({k: v for k, v in c.items() if k != "head"}).encode()).hexdigest()
    said = json.loads(body)["predicate"]
    need(said.get("records") == len(records), "does not have as many records as its head says: something was left out or put in")
    need(json.loads(body) == {"_type": "https://in-toto.io/Statement/v1", "predicate": {"id": c["id"], "records": len(records), "size": records[0].size},
         "predicateType": c["type"], "subject": [{"digest": {"sha256": digest}, "name": "case"}]}, "is not as its head says: something was left out, put in or changed")

GONE = {"result-denied": "denied", "result-expired": "expired", "result-taken": "taken", "principal-forgotten": "forgotten"}
def check_case(path, trusted, witnesses, unsigned=False):
    raw = Path(path).read_bytes()
    need(len(raw) < 1 << 28, "is too long")
    c = members(json.loads(raw, object_pairs_hook=once), ["type", "id", "records"], ["held", "decided", "deletion", "guard", "head"])
    need(c["type"] in (CASE + "1", CASE + "2") and re.fullmatch("[0-9a-f]{32}", c["id"]) and isinstance(c["records"], list) and c["records"], "is not a case of this format")
    records = [Record(r, trusted, witnesses) for r in c["records"]]
    need(all(a.index < b.index for a, b in zip(records, records[1:])), "has records that are not in the order of the log")
    need(len({r.checkpoint for r in records}) == 1 and len({r.id for r in records}) == len(records), "has records of two checkpoints, or one twice")
    need(all(c["id"] in (r.id, r.of) for r in records), "has a record about something else")
    by_id, gone = {r.id: r for r in records}, [r for r in records if r.kind in GONE and r.of == c["id"]]
    if gone or "deletion" in c:
        d = members(c.get("deletion"), ["how", "record"])
        need(any(r.id == d["record"] and GONE[r.kind] == d["how"] for r in gone), "names a record that proves no such deletion")
    check_held(c, records, gone)
    if "decided" in c:
        r = by_id.get(members(c["decided"], ["by", "record"])["record"])
        need(r and r.kind in ("result-released", "result-denied") and r.shows("by", c["decided"]["by"].encode()), "names a person who did not decide")
    if "guard" in c:
        need(c["id"] in by_id and by_id[c["id"]].shows("output", b64(c["guard"])), "has another statement than the guard's")
    if "head" in c:
        check_head(c, trusted, records)
    else:
        need(unsigned, "has no head, so its end may be cut off: --unsigned accepts that")
    said = [f"record {r.index} of {r.size}: {r.kind} {r.says.get('verdict', '')}".strip() for r in records]
    if "deletion" in c:
        said.append(f"{c['deletion']['how']}: record {by_id[c['deletion']['record']].index} says that the content is destroyed")
    elif "held" in c:
        said.append(f"{c['held']['state']}, as far as these records say: none of them says that the content is destroyed")
    if "encrypted" in c.get("held", {}):
        said.append("not checked: the held text, which is encrypted: it may be any text of that length")
    said += [f"not checked: which content and which people record {r.index} is about: its opening was erased or left out" for r in records if not r.is_open]
    if "head" in c:
        said.append(f"signed by the key of the log: all that its first {records[0].size} records have about this decision; not checked: whether it has later ones")
    else:
        said.append("not checked: whether the log has other or later records about this decision, which the file leaves out")
    return f"case {c['id']}\n" + "\n".join(said)

def check_held(c, records, gone):
    put = [r for r in records if r.kind == "result-held"]
    need(bool(put) == ("held" in c), "has no state of what was held, or a state of nothing")
    if not put:
        return
    h, kinds = members(c["held"], ["state"], ["text", "encrypted"]), {r.kind for r in records}
    ended = [GONE[r.kind] for r in gone]
    need(h["state"] == (ended[-1] if ended else "released" if "result-released" in kinds else "held"), "gives another state than its records")
    need(len(h) < 3 and not (gone and len(h) > 1), "has a text twice, or one that is destroyed")
    if "text" in h:
        text = b64(h["text"])
        need(put[-1].shows("held", text), "has another text than the one that was held")
        need(put[-1].says["numbers"]["bytes"] == len(text), "has a text of another length")
    if "encrypted" in h:
        check_encrypted(b64(h["encrypted"]), put[-1].says["numbers"]["bytes"])

def check_encrypted(b, n):
    """The form and the length of an age file (C2SP age) of n bytes; nothing more can be seen without its key."""
    head = re.match(rb"age-encryption\.org/v1\n(?:-> [!-~ ]+\n(?:[A-Za-z0-9+/]{64}\n)*[A-Za-z0-9+/]{0,63}\n)+--- [A-Za-z0-9+/]{43}\n", b)
    need(head, "has a text that is not encrypted as it says")
    need(len(b) - head.end() == 16 + n + 16 * max(1, (n + 65535) // 65536), "has an encrypted text of another length")

def main(verb, where, vkey, *witnesses):
    try:
        of = check_case
        if where == "--unsigned":
            need(verb == "case" and witnesses, "takes no --unsigned, or lacks a key")
            where, vkey, of, *witnesses = vkey, witnesses[0], lambda *a: check_case(*a, True), *witnesses[1:]
        said = {"log": check_log, "proof": check_proof, "case": of}[verb](where, [Key(vkey)], [Key(w, 4) for w in witnesses])
    except FAULTS as e:
        problem("checkpoint" if verb == "log" else verb, e)
    print(f"{len(wrong)} problems" if wrong else f"ok: {said}")
    return len(wrong) > 0

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 3 else __doc__)
