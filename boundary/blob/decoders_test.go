// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// spellings are strings over an alphabet that holds what decoders disagree about, and
// mutations of longer base64.
func spellings() []string {
	const alphabet = "Ak+-=_\n!"
	list := []string{""}
	for from := 0; len(list[from]) < 5; from++ {
		for i := range len(alphabet) {
			list = append(list, list[from]+alphabet[i:i+1])
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		plain := make([]byte, r.IntN(40))
		for i := range plain {
			plain[i] = byte(r.Uint32())
		}
		e := []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}[r.IntN(4)]
		s := e.EncodeToString(plain)
		for range r.IntN(3) {
			at := r.IntN(len(s) + 1)
			s = s[:at] + []string{"=", "==", "\n", " ", "\t", "\f", "\v", "!", "-", "A", "%3D", ".", "\u00a0", "\u0100", "\x00"}[r.IntN(15)] + s[at:]
		}
		list = append(list, s)
	}
	return list
}

// decoders are programs that read a JSON list of strings and write, for each, what each of their
// decoders returns: base64 of the bytes, or null for an error.
var decoders = map[string]struct {
	base64, uris []string
}{
	"node": {
		base64: []string{"-e", `
const all = JSON.parse(require('fs').readFileSync(0, 'utf8'))
const b = x => x.toString('base64')
const or = f => { try { return b(f()) } catch { return null } }
process.stdout.write(JSON.stringify(all.map(s => [
  or(() => Buffer.from(s, 'base64')), or(() => Buffer.from(s, 'base64url')), or(() => Buffer.from(atob(s), 'latin1')),
])))`},
		uris: []string{"-e", `
(async () => {
const all = JSON.parse(require('fs').readFileSync(0, 'utf8'))
const b = x => Buffer.from(x).toString('base64')
const or = async f => { try { return b(await f()) } catch { return null } }
const out = []
for (const s of all) out.push([
  await or(async () => await (await fetch(s)).arrayBuffer()),
  await or(() => { // as the packages of npm do: base64 anywhere among the parameters
    const [head, ...rest] = s.replace(/\r?\n/g, '').split(',')
    if (!/^data:/i.test(s) || !rest.length) throw 0
    return Buffer.from(unescape(rest.join(',')), head.substring(5).split(';').includes('base64') ? 'base64' : 'latin1')
  }),
  await or(() => { // as a careless host does
    const m = /^data:[^,]*;base64,(.*)$/is.exec(s)
    if (!m) throw 0
    return Buffer.from(m[1], 'base64')
  }),
  await or(() => { // as one does that decodes the whole first
    const m = /^data:[^,]*;base64,(.*)$/is.exec(decodeURIComponent(s))
    if (!m) throw 0
    return Buffer.from(m[1], 'base64')
  }),
])
process.stdout.write(JSON.stringify(out))
})()`},
	},
	"python3": {
		base64: []string{"-c", `
import base64, json, sys
def run(f, s):
    try: return base64.b64encode(f(s)).decode()
    except Exception: return None
fs = [base64.b64decode, lambda s: base64.b64decode(s, validate=True), base64.urlsafe_b64decode,
      lambda s: base64.decodebytes(s.encode())]
json.dump([[run(f, s) for f in fs] for s in json.load(sys.stdin)], sys.stdout)`},
		uris: []string{"-c", `
import base64, json, sys, urllib.request
def run(f, s):
    try: return base64.b64encode(f(s)).decode()
    except Exception: return None
fs = [lambda s: urllib.request.urlopen(s).read(),
      lambda s: base64.b64decode(s.split(';base64,', 1)[1])]
json.dump([[run(f, s) for f in fs] for s in json.load(sys.stdin)], sys.stdout)`},
	},
}

// ask runs a program's decoders over list; nil where the program is not installed.
func ask(t *testing.T, program string, args, list []string) [][]*string {
	t.Helper()
	path := programtest.Find(t, program)
	in, _ := json.Marshal(list)
	cmd := exec.Command(path, args...)
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %.500s", program, err, stderr.String())
	}
	var out [][]*string
	if err := json.Unmarshal(raw, &out); err != nil || len(out) != len(list) {
		t.Fatalf("%s: %d answers for %d strings: %v", program, len(out), len(list), err)
	}
	return out
}

// TestDecoders holds the forms against the decoders in use: what is canonical every decoder
// reads the same, what is loose none reads differently, and the canonical spelling that takes the place of
// anything else is read as the bytes that were inspected.
func TestDecoders(t *testing.T) {
	list := spellings()
	for program, d := range decoders {
		t.Run(program, func(t *testing.T) {
			disagree := map[Form]int{}
			forms := map[Form]int{}
			delivered := make([]string, len(list))
			for i, answers := range ask(t, program, d.base64, list) {
				s, form := list[i], FormOf(list[i])
				forms[form]++
				if form == Ambiguous {
					continue // withheld
				}
				want := Encode(Decode(s))
				delivered[i] = want
				for k, got := range answers {
					if got != nil && *got != want {
						disagree[form]++
						if form <= Loose {
							t.Errorf("%+q of form %d: decoder %d reads %s, inspected is %s", s, form, k, *got, want)
						}
					}
				}
			}
			for i, answers := range ask(t, program, d.base64, delivered) {
				for k, got := range answers {
					if got == nil && !strings.ContainsAny(delivered[i], "+/") || got != nil && *got != delivered[i] {
						t.Errorf("%+q: decoder %d does not read what was inspected", delivered[i], k)
					}
				}
			}
			if disagree[URLSafe] == 0 && program == "python3" {
				t.Error("no disagreement was found: the table is too small")
			}
			t.Logf("%d spellings by form %v, disagreements %v", len(list), forms, disagree)
		})
	}
}

// TestGoDecoders: the same for the four encodings of package base64.
func TestGoDecoders(t *testing.T) {
	for _, s := range spellings() {
		form := FormOf(s)
		if form == Ambiguous {
			continue
		}
		want := Decode(s)
		for i, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			if got, err := e.DecodeString(s); err == nil && !bytes.Equal(got, want) {
				t.Fatalf("%+q of form %d: encoding %d reads %x, want %x", s, form, i, got, want)
			}
		}
		strict, err := base64.StdEncoding.Strict().DecodeString(s)
		if ok := err == nil && bytes.Equal(strict, want) && !strings.ContainsAny(s, "\r\n"); ok != (form == Canonical) {
			t.Fatalf("%+q of form %d: strict decoding: %x, %v", s, form, strict, err)
		}
	}
}

// uris are data: URIs by the parts that readers disagree about.
func uris() []string {
	heads := []string{"", "text/plain", "text/plain;charset=utf-8", "image/svg+xml", "image/png", "text/plain;charset=\"utf-8\"", ";charset=US-ASCII"}
	flags := []string{"", ";base64", ";BASE64", "; base64", ";base64 ", ";base64;charset=utf-8", ";charset=utf-8;base64", ";%62ase64", ";bAse64", ";base64;base64",
		";base64;a=b", ";a=base64", ";ba\tse64", ";base64=", ";x=\";base64\""}
	bodies := []string{"aGVsbG8gd29ybGQh", "aGVsbG8gd29ybGQhIQ==", "aGVsbG8gd29ybGQhIQ", "aGVsbG8gd29ybGQhIQ%3D%3D", "aGVs bG8g\nd29y%20bGQh", "%61GVsbG8gd29ybGQh",
		"aGVs-_8=", "aGVsbG8=aGVsbG8=", "hello%20world!", "<svg>hi</svg>", "hello#world", "aGVsbG8gd29ybGQh#aGVs", "a,b", "%zz%", "%E2%80%8Bhi", "aGVsbG8gd29ybGR="}
	var list []string
	for i, start := range []string{"data:", "DATA:", " data:", "da\nta:"} {
		if i > 0 {
			heads = heads[:1]
		}
		for _, h := range heads {
			for _, f := range flags {
				for _, b := range bodies {
					list = append(list, start+h+f+","+b)
				}
			}
		}
	}
	return append(list, "data:text/plain;base64", "data:text/plain;base64%2CaGVsbG8gd29ybGQh", "data:", "data", "xdata:,a", "data:text/plain")
}

// TestURIReaders: what any reader gets of a data: URI has been inspected, or the URI is ambiguous.
func TestURIReaders(t *testing.T) {
	list := uris()
	for program, d := range decoders {
		t.Run(program, func(t *testing.T) {
			ambiguous := 0
			for i, answers := range ask(t, program, d.uris, list) {
				u, _ := ParseDataURI(list[i])
				if u.Ambiguous {
					ambiguous++
					continue
				}
				for k, got := range answers {
					if got == nil {
						continue
					}
					plain, err := base64.StdEncoding.DecodeString(*got)
					if err != nil {
						t.Fatal(err)
					}
					// Base64 that a reader does not decode says nothing.
					if text := string(plain); !inspected(&u, text) && looksText(plain, nil) && FormOf(text) == Ambiguous {
						t.Errorf("%+q: reader %d gets %+q, inspected is %s", list[i], k, text, texts(&u))
					}
				}
			}
			t.Logf("%d URIs, %d ambiguous", len(list), ambiguous)
		})
	}
}

// inspected reports whether a reading holds text: bytes that a reader gets of a URI may end earlier, at "#".
func inspected(u *DataURI, text string) bool {
	return slices.ContainsFunc(u.Contents, func(c Content) bool {
		return slices.ContainsFunc(c.Readings, func(r Reading) bool { return strings.Contains(r.Text(), text) })
	})
}

func texts(u *DataURI) (s string) {
	for _, c := range u.Contents {
		for _, r := range c.Readings {
			s += fmt.Sprintf("%+q ", r.Text())
		}
	}
	return s
}
