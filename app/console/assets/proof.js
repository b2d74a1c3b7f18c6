// SPDX-License-Identifier: Apache-2.0

// Checks in the browser that a record stands in the log: docs/spec/evidence.md, sections 3 to 6. It trusts
// what the person has pinned in this browser, and nothing that a server says of itself. The functions above
// the line read no page.

const utf8 = new TextEncoder()
const ascii = /^[\x20-\x7e\n\u2014]*$/

const same = (a, b) => a.length === b.length && a.every((x, i) => x === b[i])
const join = (...parts) => {
	const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0))
	let at = 0
	for (const p of parts) { out.set(p, at); at += p.length }
	return out
}
const sha256 = async bytes => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))
const hex = bytes => Array.from(bytes, b => b.toString(16).padStart(2, "0")).join("")
export const base64 = bytes => btoa(Array.from(bytes, b => String.fromCharCode(b)).join(""))

// unbase64 reads standard base64 in its one spelling.
function unbase64(s, size) {
	let out
	try { out = Uint8Array.from(atob(s), c => c.charCodeAt(0)) } catch { throw new Error("this is not base64") }
	if (base64(out) !== s || size !== undefined && out.length !== size) throw new Error("this is not base64 of the right length")
	return out
}

// count reads a number as the log writes it.
function count(s) {
	const n = Number(s)
	if (!/^(0|[1-9][0-9]{0,15})$/.test(s) || n > 2 ** 52) throw new Error("this is not a number")
	return n
}

// parseKey reads a verifier key: name+hash+base64 of 0x01 and an Ed25519 key.
export async function parseKey(vkey) {
	const [, name, hash, rest] = /^([^+ \n]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(vkey) ?? []
	if (!name) throw new Error("this is not a key of a log: name+hash+key")
	const material = unbase64(rest, 33)
	const want = hex((await sha256(join(utf8.encode(name + "\n"), material))).slice(0, 4))
	if (material[0] !== 1 || want !== hash) throw new Error("this is not a key of a log: its hash does not fit")
	return { name, hash, id: name + "+" + hash, vkey, public: material.slice(1) }
}

// parseCheckpoint reads a C2SP checkpoint. It checks no signature.
export function parseCheckpoint(text) {
	const end = text.indexOf("\n\n")
	const lines = text.slice(0, end).split("\n")
	const tail = text.slice(end + 2)
	if (end < 0 || lines.length !== 3 || !ascii.test(text) || !tail.endsWith("\n")) throw new Error("the checkpoint cannot be read")
	const signatures = tail.slice(0, -1).split("\n").map(line => {
		const [, name, sig] = /^\u2014 (\S+) (\S+)$/.exec(line) ?? []
		const bytes = unbase64(sig ?? "?")
		if (bytes.length < 5) throw new Error("a signature of the checkpoint cannot be read")
		return { name, hash: hex(bytes.slice(0, 4)), bytes: bytes.slice(4) }
	})
	return { origin: lines[0], size: count(lines[1]), root: unbase64(lines[2], 32), body: utf8.encode(text.slice(0, end + 1)), signatures, text }
}

// parseProof reads a C2SP tlog-proof with the envelope as its extra data.
export function parseProof(text) {
	const end = text.indexOf("\n\n")
	const lines = text.slice(0, end).split("\n")
	if (end < 0 || lines[0] !== "c2sp.org/tlog-proof@v1" || !lines[1]?.startsWith("extra ") || !lines[2]?.startsWith("index ") || lines.length > 66) {
		throw new Error("the proof cannot be read")
	}
	return { envelope: unbase64(lines[1].slice(6)), index: count(lines[2].slice(6)), path: lines.slice(3).map(l => unbase64(l, 32)), checkpoint: text.slice(end + 2) }
}

// parseEnvelope reads a DSSE envelope with one signature.
export function parseEnvelope(bytes) {
	const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
	const [, payload, id, sig] = /^\{"payload":"([^"]*)","payloadType":"application\/vnd\.in-toto\+json","signatures":\[\{"keyid":"([^"]*)","sig":"([^"]*)"\}\]\}$/.exec(text) ?? []
	if (!payload) throw new Error("the envelope cannot be read")
	const statement = unbase64(payload)
	const parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(statement))
	return { statement, keyid: id, signature: unbase64(sig, 64), id: String(parsed.predicate.id), parsed }
}

export const leafHash = envelope => sha256(join([0], envelope))
const node = (left, right) => sha256(join([1], left, right))

// rootOf returns the root to which a path leads: RFC 9162, section 2.1.3.2. Each hash is with its side.
export async function rootOf(index, size, leaf, path) {
	if (index >= size) throw new Error("the record does not stand in a log of this size")
	let fn = index, sn = size - 1, r = leaf
	for (const p of path) {
		if (sn === 0) throw new Error("the path is too long")
		if (fn % 2 === 1 || fn === sn) {
			r = await node(p, r)
			while (fn % 2 === 0 && fn !== 0) { fn = Math.floor(fn / 2); sn = Math.floor(sn / 2) }
		} else {
			r = await node(r, p)
		}
		fn = Math.floor(fn / 2); sn = Math.floor(sn / 2)
	}
	if (sn !== 0) throw new Error("the path is too short")
	return r
}

// continues reports whether the log of the newer checkpoint begins with that of the older: RFC 9162, section 2.1.4.2.
export async function continues(older, newer, path) {
	if (older.origin !== newer.origin || older.size > newer.size || older.size === 0) return false
	if (older.size === newer.size) return path.length === 0 && same(older.root, newer.root)
	let fn = older.size - 1, sn = newer.size - 1
	while (fn % 2 === 1) { fn = Math.floor(fn / 2); sn = Math.floor(sn / 2) }
	const list = fn === 0 ? [older.root, ...path] : path
	if (list.length === 0) return false
	let fr = list[0], sr = list[0]
	for (const c of list.slice(1)) {
		if (sn === 0) return false
		if (fn % 2 === 1 || fn === sn) {
			fr = await node(c, fr); sr = await node(c, sr)
			while (fn % 2 === 0 && fn !== 0) { fn = Math.floor(fn / 2); sn = Math.floor(sn / 2) }
		} else {
			sr = await node(sr, c)
		}
		fn = Math.floor(fn / 2); sn = Math.floor(sn / 2)
	}
	return sn === 0 && same(fr, older.root) && same(sr, newer.root)
}

export async function signed(key, message, signature) {
	const k = await crypto.subtle.importKey("raw", key.public, "Ed25519", false, ["verify"])
	return crypto.subtle.verify("Ed25519", k, signature, message)
}

// signedCheckpoint returns the key that has signed the checkpoint; null if none of them has. A signature
// that names a key and is not its own is an error.
async function signedCheckpoint(c, keys) {
	let by = null
	for (const s of c.signatures) {
		const k = keys.find(k => k.name === s.name && k.hash === s.hash)
		if (!k) continue
		if (c.origin !== k.name || s.bytes.length !== 64 || !await signed(k, c.body, s.bytes)) throw new Error("the signature of " + k.id + " is wrong")
		by ??= k
	}
	return by
}

const pae = statement => join(utf8.encode("DSSEv1 28 application/vnd.in-toto+json " + statement.length + " "), statement)

// steps are the names of what check does, in this order.
export const steps = ["leaf", "path", "root", "signature", "record", "pinned", "witnesses"]

// check verifies the proof of a record. given has what the server says: proof, keys (verifier keys) and consistency
// (hashes, from the pinned checkpoint on); id is the record that is shown; pin has the key and the checkpoint that the person
// has pinned, or is null. It returns for each step yes, no, unknown or "not asked", with a sentence. Nothing is asked after a no.
export async function check(given, id, pin) {
	const out = steps.map(name => ({ name, is: "not asked", says: "not asked" }))
	let at = 0
	const say = (is, says) => { out[at] = { name: steps[at], is, says }; at++ }
	try {
		const p = parseProof(given.proof)
		const e = parseEnvelope(p.envelope)
		if (e.id !== id) throw new Error("the envelope is that of another record")
		const leaf = await leafHash(p.envelope)
		say("yes", "SHA-256 of the envelope, " + p.envelope.length + " bytes: " + base64(leaf))
		const c = parseCheckpoint(p.checkpoint)
		const root = await rootOf(p.index, c.size, leaf, p.path)
		say("yes", p.path.length + " hashes lead from leaf " + p.index + " to a root of " + c.size + " records")
		if (!same(root, c.root)) throw new Error("it is not that of the checkpoint")
		say("yes", "equal to that of the checkpoint: " + base64(root))
		const named = await Promise.all(given.keys.map(parseKey))
		const own = pin ? await parseKey(pin.key) : null
		const by = await signedCheckpoint(c, own ? [own, ...named.filter(k => k.vkey !== own.vkey)] : named)
		if (!by) throw new Error("no key that is known here has signed the checkpoint")
		say("yes", "Ed25519, key " + by.id + (own ? "" : ", which this server names"))
		const k = [own, ...named].find(k => k && k.id === e.keyid)
		if (!k) say("unknown", "the key of that time, " + e.keyid + ", is not known here")
		else if (await signed(k, pae(e.statement), e.signature)) say("yes", "the record itself is signed by " + k.id)
		else throw new Error("the signature of the record is wrong")
		if (!own) say("unknown", "nothing is pinned in this browser, so the key is the one that this server names")
		else {
			if (by.vkey !== own.vkey) throw new Error("the checkpoint is signed by another key than the one that you pinned, " + own.id)
			const older = parseCheckpoint(pin.checkpoint)
			if (!await signedCheckpoint(older, [own])) throw new Error("the pinned checkpoint is not signed by the pinned key")
			if (!await continues(older, c, given.consistency.map(h => unbase64(h, 32)))) throw new Error("the log is not a continuation of the one that you pinned, of " + older.size + " records")
			say("yes", "signed by the key that you pinned; the log goes on from the " + older.size + " records that you pinned")
		}
		const others = c.signatures.filter(s => s.name !== c.origin).length
		say("unknown", others === 0 ? "none has signed this checkpoint, so it is not known whether all readers are shown the same log"
			: others + " signed this checkpoint; their keys are not known in this browser")
		return { steps: out, index: p.index, statement: e.parsed, checkpoint: c, key: by }
	} catch (err) {
		say("no", String(err.message ?? err))
		return { steps: out }
	}
}

// ---- The page ----

const titles = { leaf: "Leaf", path: "Path", root: "Root", signature: "Signature", record: "Record", pinned: "Pinned", witnesses: "Witnesses" }
const icons = { yes: "yes", no: "no", unknown: "unknown", "not asked": "unknown" }
const classes = { yes: "v-proved", no: "v-denied", unknown: "v-held", "not asked": "faint" }

function icon(name) {
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), use = document.createElementNS("http://www.w3.org/2000/svg", "use")
	svg.setAttribute("class", "i"); svg.setAttribute("viewBox", "0 0 16 16"); svg.setAttribute("aria-hidden", "true")
	use.setAttribute("href", "#i-" + name)
	svg.append(use)
	return svg
}

function element(tag, cls, ...content) {
	const e = document.createElement(tag)
	if (cls) e.className = cls
	e.append(...content)
	return e
}

// plain spells what is not printable ASCII as escapes.
const plain = s => s.replace(/[^\x20-\x7e\n]/gu, c => "\\u{" + c.codePointAt(0).toString(16) + "}")

const pinName = origin => "pellucid-pin:" + origin

function readPin(origin) {
	try {
		const pin = JSON.parse(localStorage.getItem(pinName(origin)))
		return typeof pin?.key === "string" && typeof pin?.checkpoint === "string" && typeof pin?.at === "string" ? pin : null
	} catch { return null }
}

function start(box) {
	const { id, from, origin } = box.dataset
	const list = box.querySelector(".steps"), note = document.getElementById("proof-note"), json = document.getElementById("statement")
	const buttons = Object.fromEntries([...box.querySelectorAll("button")].map(b => [b.name, b]))
	let last = null, text = ""

	async function run() {
		const pin = readPin(origin)
		let result
		try {
			if (!globalThis.crypto?.subtle) throw new Error("the browser computes nothing on a page that came without encryption: use https, or localhost")
			const size = pin ? parseCheckpoint(pin.checkpoint).size : 0
			const answer = await fetch(from + "?from=" + size, { credentials: "same-origin" })
			if (!answer.ok) throw new Error("the proof could not be read: status " + answer.status)
			const given = await answer.json()
			text = given.proof
			result = await check(given, id, pin)
		} catch (err) {
			result = { steps: steps.map((name, i) => i === 0 ? { name, is: "no", says: String(err.message ?? err) } : { name, is: "not asked", says: "not asked" }) }
		}
		last = result
		list.replaceChildren(...result.steps.map(s => {
			const li = element("li", "", element("span", classes[s.is], icon(icons[s.is])), element("div", "", element("b", "", titles[s.name] + ". "), plain(s.says)))
			li.dataset.step = s.name
			li.dataset.is = s.is
			return li
		}))
		const no = result.steps.find(s => s.is === "no"), pinned = result.steps.find(s => s.name === "pinned").is === "yes"
		note.className = "note " + (no ? "denied" : pinned ? "proved" : "")
		note.replaceChildren(element("p", "", element("b", "", no ? "This proof fails: " + titles[no.name].toLowerCase() + "."
			: pinned ? "This record stands in the log that your pinned key has signed." : "This record stands in the log, if the key that this server names is the right one."), " ",
			no ? "What this page shows of the record is not proved." : pinned ? "Computed in this browser." : "Compare the key with one that you have from elsewhere, then pin it."))
		note.dataset.is = no ? "no" : pinned ? "yes" : "unknown"
		json.textContent = result.statement ? plain(JSON.stringify(result.statement, null, 2)) : "The envelope is not proved, so it is not shown here."
		buttons.pin.hidden = !result.key || pinned
		buttons.unpin.hidden = !pin
		buttons.copy.disabled = !text
		box.dataset.state = "done"
	}
	buttons.pin.addEventListener("click", () => {
		if (!last?.key) return
		localStorage.setItem(pinName(origin), JSON.stringify({ key: last.key.vkey, checkpoint: last.checkpoint.text, at: new Date().toISOString() }))
		run()
	})
	buttons.unpin.addEventListener("click", () => { localStorage.removeItem(pinName(origin)); run() })
	buttons.again.addEventListener("click", run)
	buttons.copy.addEventListener("click", () => navigator.clipboard?.writeText(text))
	box.querySelector(".bar").hidden = false
	run()
}

const box = globalThis.document?.getElementById("proof")
if (box) start(box)
