// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// A proofStep is what the script says of one step.
type proofStep struct{ Name, Is, Says string }

// checkIn runs the script of the page record on what a server might send.
func checkIn(b *tab, script string, given proofFile, id string, pin any) (steps []proofStep) {
	b.t.Helper()
	args, err := json.Marshal([]any{given, id, pin})
	if err != nil {
		b.t.Fatal(err)
	}
	raw, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf(
		`import(%q).then(m => m.check(...JSON.parse(%q))).then(r => JSON.stringify(r.steps.map(s => ({Name: s.name, Is: s.is, Says: s.says}))))`, script, args), chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(raw), &steps); err != nil {
		b.t.Fatal(err)
	}
	return steps
}

type testPin struct {
	Key        string `json:"key"`
	Checkpoint string `json:"checkpoint"`
}

// failsAt is the first step that does not hold; "" if each does or is unknown.
func failsAt(steps []proofStep) string {
	for i, s := range steps {
		if s.Is == "no" {
			if i+1 < len(steps) && slices.ContainsFunc(steps[i+1:], func(s proofStep) bool { return s.Is != "not asked" }) {
				return s.Name + ", and what follows is asked"
			}
			return s.Name
		}
	}
	return ""
}

// forgedLog is a log of its own with the same record, signed by another key.
func forgedLog(t *testing.T, e *ledger.Event) (p *ledger.Proof, key *ledger.Key) {
	g := newTest(t, withLedger)
	keys := g.logged(t, e)
	s, err := keys.First(testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := g.store.Ledger().Get(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = ledger.Prove(t.Context(), g.store.Ledger(), entry.Index); err != nil {
		t.Fatal(err)
	}
	return p, s.Key()
}

// TestProofInBrowser: the script accepts the proof of each record of logs of many sizes, and refuses what
// was tampered with, at the step at which it was.
func TestProofInBrowser(t *testing.T) {
	b, g := newTab(t), newTest(t, withLedger)
	events := manyEvents(70)
	keys := g.logged(t, events[:20]...)
	l := g.store.Ledger()
	b.open(g.url + Base + "records")
	script := string(g.files.path("proof.js"))
	first, err := l.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	signer, err := keys.First(testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	pin := testPin{signer.Key().String(), string(first)}
	seq := sequence.New(sequence.Options{Store: l, Origin: testOrigin, Keys: keys, Chain: l.Chain(), Window: time.Millisecond})
	given := func(i int64, from int64) (proofFile, *ledger.Proof) {
		p, err := ledger.Prove(t.Context(), l, i)
		if err != nil {
			t.Fatal(err)
		}
		newer, err := ledger.UnverifiedCheckpoint(p.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		path, err := ledger.ProveConsistency(t.Context(), l, from, newer)
		if err != nil {
			t.Fatal(err)
		}
		out := proofFile{Proof: string(p.Bytes()), Keys: []string{signer.Key().String()}, Consistency: []string{}}
		for _, h := range path {
			out.Consistency = append(out.Consistency, h.String())
		}
		return out, p
	}
	idAt := func(i int64) string {
		e, err := l.At(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		return e.ID.String()
	}
	for size, n := range []int{20, 23, 31, 32, 33, 50, 70} {
		if size > 0 {
			for _, e := range events[[]int{20, 23, 31, 32, 33, 50, 70}[size-1]:n] {
				s, err := e.Seal(ledger.Salt{2})
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Add(t.Context(), [][]byte{s.Bytes()}); err != nil {
					t.Fatal(err)
				}
			}
			if err := seq.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := int64(0); i <= int64(n); i++ {
			f, _ := given(i, 21)
			if steps := checkIn(b, script, f, idAt(i), pin); failsAt(steps) != "" || steps[5].Is != "yes" || steps[4].Is != "yes" {
				t.Fatalf("record %d of %d: %+v", i, n+1, steps)
			}
		}
	}

	const at = 40
	good, proof := given(at, 21)
	id := idAt(at)
	another := func(change func(*ledger.Proof)) proofFile {
		p := *proof
		p.Envelope, p.Path, p.Checkpoint = slices.Clone(p.Envelope), slices.Clone(p.Path), slices.Clone(p.Checkpoint)
		change(&p)
		f := good
		f.Proof = string(p.Bytes())
		return f
	}
	old, _ := l.At(t.Context(), at)
	st, err := ledger.UnverifiedStatement(old.Envelope)
	if err != nil {
		t.Fatal(err)
	}
	forged, forgedKey := forgedLog(t, events[at-1])
	liar, err := ledger.Sign([]byte(strings.Replace(string(st.Bytes), `"verdict":"`, `"verdict":"x`, 1)), signer)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := string(proof.Checkpoint)
	otherPin := testPin{forgedKey.String(), string(forged.Checkpoint)}
	var random [32]byte
	rand.Read(random[:])
	for _, c := range []struct {
		name  string
		given proofFile
		id    string
		pin   any
		want  string
	}{
		{"another record", good, idAt(at + 1), pin, "leaf"},
		{"an envelope with another statement", another(func(p *ledger.Proof) { p.Envelope = liar }), id, pin, "root"},
		{"a signature of the envelope", another(func(p *ledger.Proof) { flip(p.Envelope, `","sig":"`) }), id, pin, "root"},
		{"an envelope that is none", another(func(p *ledger.Proof) { p.Envelope = []byte("{}") }), id, pin, "leaf"},
		{"a hash of the path", another(func(p *ledger.Proof) { p.Path[2] = random }), id, pin, "root"},
		{"a hash less", another(func(p *ledger.Proof) { p.Path = p.Path[1:] }), id, pin, "path"},
		{"a hash more", another(func(p *ledger.Proof) { p.Path = append(p.Path, random) }), id, pin, "path"},
		{"two hashes in another order", another(func(p *ledger.Proof) { p.Path[0], p.Path[1] = p.Path[1], p.Path[0] }), id, pin, "root"},
		{"another index", another(func(p *ledger.Proof) { p.Index ^= 1 }), id, pin, "root"},
		{"an index outside", another(func(p *ledger.Proof) { p.Index = 71 }), id, pin, "path"},
		{"another root", another(func(p *ledger.Proof) {
			p.Checkpoint = []byte(strings.Replace(checkpoint, strings.Split(checkpoint, "\n")[2], ledger.Hash(random).String(), 1))
		}), id, pin, "root"},
		{"another size", another(func(p *ledger.Proof) {
			p.Checkpoint = []byte(strings.Replace(checkpoint, "\n71\n", "\n72\n", 1))
		}), id, pin, "signature"},
		{"another signature of the checkpoint", another(func(p *ledger.Proof) { p.Checkpoint = breakSignature(checkpoint) }), id, pin, "signature"},
		{"no signature of the checkpoint", another(func(p *ledger.Proof) {
			p.Checkpoint = []byte(strings.Join(strings.Split(checkpoint, "\n")[:3], "\n") + "\n\n")
		}), id, pin, "path"},
		{"a key that is pinned and has not signed", good, id, otherPin, "pinned"},
		{"a log of another key, which the server names", proofFile{string(forged.Bytes()), []string{forgedKey.String()}, nil}, id, pin, "pinned"},
		{"a log of another key, and the right key", proofFile{string(forged.Bytes()), []string{signer.Key().String()}, []string{}}, id, nil, "signature"},
		{"a log that does not go on from the pinned one", proofFile{good.Proof, good.Keys, good.Consistency[1:]}, id, pin, "pinned"},
		{"a hash of the continuation", proofFile{good.Proof, good.Keys, append([]string{ledger.Hash(random).String()}, good.Consistency[1:]...)}, id, pin, "pinned"},
		{"a pin that was changed", good, id, testPin{pin.Key, strings.Replace(pin.Checkpoint, "\n21\n", "\n20\n", 1)}, "pinned"},
		{"a key that is none", proofFile{good.Proof, []string{"x+00000000+AQ=="}, good.Consistency}, id, nil, "signature"},
		{"no proof", proofFile{}, id, pin, "leaf"},
	} {
		if steps := checkIn(b, script, c.given, c.id, c.pin); failsAt(steps) != c.want {
			t.Errorf("%s: fails at %q, want %q: %+v", c.name, failsAt(steps), c.want, steps)
		}
	}
	if steps := checkIn(b, script, good, id, nil); failsAt(steps) != "" || steps[5].Is != "unknown" {
		t.Errorf("without a pin: %+v", steps)
	}
	if said := b.said(); said != nil {
		t.Errorf("the browser said %q", said)
	}
}

// flip changes the first character after mark.
func flip(b []byte, mark string) {
	i := strings.Index(string(b), mark) + len(mark)
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
}

// breakSignature changes a byte in the middle of the signature, and leaves the key hash.
func breakSignature(checkpoint string) []byte {
	b := []byte(checkpoint)
	i := len(b) - 20
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return b
}

// TestProofPage: a person opens a record, pins its checkpoint, and sees later that the log has another key.
func TestProofPage(t *testing.T) {
	b, g := newTab(t), newTest(t, withLedger)
	events := manyEvents(30)
	g.logged(t, events...)
	done := chromedp.WaitVisible(`#proof[data-state=done]`)
	show := func() string {
		b.do(chromedp.Navigate(g.url+Base+"records/"+testID(5).String()), done)
		return eval[string](b, `document.getElementById("proof-note").dataset.is`)
	}
	if is := show(); is != "unknown" {
		t.Errorf("without a pin: %s: %s", is, eval[string](b, `document.getElementById("proof").innerText`))
	}
	if text := eval[string](b, `document.getElementById("statement").textContent`); !strings.Contains(text, testID(5).String()) {
		t.Errorf("the statement is %q", text)
	}
	eval[int](b, `document.getElementById("proof").dataset.state = "", document.querySelector("button[name=pin]").click(), 0`)
	b.do(done)
	if is := eval[string](b, `document.getElementById("proof-note").dataset.is`); is != "yes" {
		t.Errorf("after the pin: %s", is)
	}
	if is := show(); is != "yes" {
		t.Errorf("when it is opened again: %s", is)
	}
	// Another log under the same name: the record is there too, signed by another key.
	other := newTest(t, withLedger)
	other.logged(t, events...)
	if err := index.NewFollower(other.store.Ledger(), g.opt.Log).Catch(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	g.Console.opt.Ledger = other.store.Ledger()
	if is := show(); is != "no" {
		t.Errorf("of another log: %s", is)
	}
	if at := eval[string](b, `document.querySelector("li[data-is=no]").dataset.step`); at != "pinned" {
		t.Errorf("it fails at %s", at)
	}
	if text := eval[string](b, `document.getElementById("statement").textContent`); strings.Contains(text, testID(5).String()) {
		t.Error("a statement that is not proved is shown as one that is")
	}
	if said := b.said(); said != nil {
		t.Errorf("the browser said %q", said)
	}
}
