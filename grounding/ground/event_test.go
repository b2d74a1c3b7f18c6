// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// TestEventRefused: what is not an event of this version, to the letter.
func TestEventRefused(t *testing.T) {
	did := validator(t, "issuer").DID()
	a := newAdapter(t, ground.Options{Now: testClock, Issuers: []string{did}})
	set := func(name string, v any) func(map[string]any) {
		return func(doc map[string]any) { doc[name] = v }
	}
	unsigned := func(name string, v any) func(map[string]any) { // Sign would not take it
		return func(doc map[string]any) { doc[name], doc["proof"] = v, map[string]any{} }
	}
	without := func(name string) func(map[string]any) {
		return func(doc map[string]any) { delete(doc, name) }
	}
	for _, c := range []struct {
		name          string
		edit          func(map[string]any)
		code, pointer string // "": accepted
	}{
		{"as it should be", func(map[string]any) {}, "", ""},
		{"no reason", without("reason"), "", ""},
		{"another context", set("@context", attest.Context), "unknown-context", "/@context"},
		{"a list of contexts", set("@context", []any{ground.CascadeContext}), "unknown-context", "/@context"},
		{"no context", without("@context"), "missing-member", "/@context"},
		{"another type", set("@type", "veritas:Attestation"), "misshapen", "/@type"},
		{"no type", without("@type"), "missing-member", "/@type"},
		{"no id", without("id"), "missing-member", "/id"},
		{"id is prose", set("id", "first event"), "misshapen", "/id"},
		{"id is a hash", set("id", "sha256:"+strings.Repeat("0", 64)), "misshapen", "/id"},
		{"no kind", without("kind"), "missing-member", "/kind"},
		{"another kind", set("kind", "retracted"), "misshapen", "/kind"},
		{"empty kind", set("kind", ""), "misshapen", "/kind"},
		{"no target", without("target"), "missing-member", "/target"},
		{"target is prose", set("target", "everything"), "misshapen", "/target"},
		{"target is http", set("target", "http://example.org/"), "misshapen", "/target"},
		{"target is half a hash", set("target", "sha256:00"), "misshapen", "/target"},
		{"target hides a character", set("target", source+"\u200b"), "misshapen", "/target"},
		{"no time", without("at"), "missing-member", "/at"},
		{"time without zone", set("at", "2025-12-31T23:59:59"), "misshapen", "/at"},
		{"time with a comma", set("at", "2025-12-31T23:59:59,5Z"), "misshapen", "/at"},
		{"hour of one digit", set("at", "2025-12-31T3:59:59Z"), "misshapen", "/at"},
		{"zone of a day", set("at", "2025-12-31T23:59:59+24:00"), "misshapen", "/at"},
		{"zone", set("at", "2025-12-31T23:59:59.123+02:00"), "", ""},
		{"zero time", set("at", "0001-01-01T00:00:00Z"), "misshapen", "/at"},
		{"time is a number", set("at", 1767225599), "misshapen", "/at"},
		{"ahead within the skew", set("at", testTime.Add(attest.MaxSkew).Format(time.RFC3339)), "", ""},
		{"ahead", set("at", testTime.Add(attest.MaxSkew+time.Second).Format(time.RFC3339)), "proof-time", "/at"},
		{"no issuer", without("issuer_did"), "missing-member", "/issuer_did"},
		{"issuer is no DID", set("issuer_did", "Cochrane"), "uri-syntax", "/issuer_did"},
		{"another's name", set("issuer_did", validator(t, "other").DID()), "proof-key", "/proof/verificationMethod"},
		{"reason is an object", set("reason", map[string]any{"text": ""}), "misshapen", "/reason"},
		{"reason is null", set("reason", nil), "misshapen", "/reason"},
		{"unknown member", set("severity", "high"), "undefined-term", ""},
		{"member in capitals", unsigned("Kind", "REVERSED"), "not-json", ""},
		{"proof is a list", set("proof", []any{}), "misshapen", "/proof"},
		{"proof is empty", set("proof", map[string]any{}), "proof-form", "/proof/type"},
		{"proof has more", set("proof", map[string]any{"domain": "x"}), "undefined-term", "/proof"},
		{"proof has a list", set("proof", map[string]any{"type": []any{"DataIntegrityProof"}}), "proof-form", "/proof/type"},
		{"deep", unsigned("reason", deep(200)), "too-deep", ""},
		{"long", set("reason", strings.Repeat("x", ground.MaxEvent)), "too-long", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := send(t, a, edited(t, "issuer", c.edit))
			if r.Accepted != (c.code == "") || r.Code != c.code || r.Pointer != c.pointer || r.Retry {
				t.Errorf("%+v, want %q at %q", r, c.code, c.pointer)
			}
		})
	}
	for _, c := range []struct{ body, code string }{
		{"", "not-json"}, {"null", "misshapen"}, {"[]", "misshapen"}, {"{}", "missing-member"}, {`{"a":1,"a":2}`, "not-json"},
		{"{\"reason\":\"\xff\"}", "not-json"}, {strings.Repeat("[", 1000), "too-deep"},
	} {
		if r, _ := send(t, a, []byte(c.body)); r.Code != c.code {
			t.Errorf("%+q: %+v, want %s", c.body, r, c.code)
		}
	}
	signed := event(t, ground.Retract, source, "issuer", testTime)
	for from, to := range map[string]string{"RETRACTED": "REVERSED", "It was": "It is", source: source + "2"} {
		if r, _ := send(t, a, bytes.Replace(signed, []byte(from), []byte(to), 1)); r.Code != "proof-invalid" {
			t.Errorf("%s changed: %+v", from, r)
		}
	}
	bare, _, _ := bytes.Cut(signed, []byte(`,"proof"`))
	if r, _ := send(t, a, append(bare, '}')); r.Code != "proof-missing" {
		t.Errorf("without a proof: %+v", r)
	}
}

func deep(n int) any {
	var v any = ""
	for range n {
		v = []any{v}
	}
	return v
}

// TestEventBelieved: whose word counts about what.
func TestEventBelieved(t *testing.T) {
	issuer := validator(t, "issuer").DID()
	for _, c := range []struct {
		name   string
		kind   ground.CascadeKind
		target string // of, hers: a hash
		by     string
		code   string
		retry  bool
		hers   consensus.Status // afterwards; it depends on the source, his on hers
		his    consensus.Status
	}{
		{"issuer about a source", ground.Retract, source, "issuer", "", false, consensus.CascadePending, consensus.CascadePending},
		{"issuer about an attestation", ground.Retract, "hers", "issuer", "", false, consensus.Retracted, consensus.CascadePending},
		{"issuer about what nobody knows", ground.Retract, "urn:test:unknown", "issuer", "", false, consensus.Live, consensus.Live},
		{"issuer reverses", ground.Reverse, "hers", "issuer", "", false, consensus.Live, consensus.Live},
		{"validator about her own", ground.Retract, "hers", "her", "", false, consensus.Retracted, consensus.CascadePending},
		{"validator about another's", ground.Retract, "hers", "him", ground.CodeNotBelieved, false, consensus.Live, consensus.Live},
		{"validator about a source", ground.Retract, source, "her", ground.CodeNotBelieved, false, consensus.Live, consensus.Live},
		{"validator reinstates her own", ground.Reverse, "hers", "her", ground.CodeNotBelieved, false, consensus.Live, consensus.Live},
		{"stranger", ground.Retract, "hers", "stranger", ground.CodeNotBelieved, false, consensus.Live, consensus.Live},
		{"validator about what nobody knows", ground.Retract, "sha256:" + strings.Repeat("0", 64), "her", ground.CodeTargetUnknown, true, consensus.Live, consensus.Live},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []ground.Refused
			s := storetest.Open(t)
			a := newAdapter(t, ground.Options{Store: s, Now: testClock, Issuers: []string{issuer},
				Refused: func(r ground.Refused) { told = append(told, r) }})
			hers := ingest(t, a, saying{by: "her", claim: "Ice melts.", dependsOn: []string{source}})[0].Hash
			his := ingest(t, a, saying{by: "him", claim: "Ice is cold.", dependsOn: []string{hers}})[0].Hash
			if c.target == "hers" {
				c.target = hers
			}
			body := event(t, c.kind, c.target, c.by, testTime)
			r, _ := send(t, a, body)
			if r.Accepted != (c.code == "") || r.Code != c.code || r.Retry != c.retry || r.Hash == "" {
				t.Errorf("receipt %+v, want %q", r, c.code)
			}
			if got := statusOf(t, s, hers); got != c.hers {
				t.Errorf("hers is %v, want %v", got, c.hers)
			}
			if got := statusOf(t, s, his); got != c.his {
				t.Errorf("his is %v, want %v", got, c.his)
			}
			if len(told) > 0 != (c.code != "") {
				t.Errorf("%d refusals told", len(told))
			}
			feed, err := s.Feed(t.Context(), 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			if accepted := len(feed) == 3; accepted != r.Accepted {
				t.Errorf("%d entries in the feed", len(feed))
			} else if accepted && (!bytes.Equal(feed[2].Original, body) || feed[2].Hash.String() != r.Hash) {
				t.Errorf("the feed holds %+v", feed[2])
			}
		})
	}
}

// TestEventRenewal: what was withdrawn its author brings back by saying it anew.
func TestEventRenewal(t *testing.T) {
	s := storetest.Open(t)
	a := newAdapter(t, ground.Options{Store: s, Now: testClock})
	said := saying{by: "her", claim: "Ice melts."}
	first := ingest(t, a, said)[0].Hash
	if r, c := send(t, a, event(t, ground.Retract, first, "her", testTime)); !r.Accepted || c.Retracted != 1 {
		t.Fatalf("%+v, %+v", r, c)
	}
	said.issued = testTime
	second := ingest(t, a, said)[0]
	if second.Renews != first || second.Status != "live" || statusOf(t, s, first) != consensus.Retracted {
		t.Errorf("%+v", second)
	}
}

// TestEventReplay: an event acts once, however it is written down.
func TestEventReplay(t *testing.T) {
	s := storetest.Open(t)
	told := 0
	a := newAdapter(t, ground.Options{Store: s, Now: testClock, Issuers: []string{validator(t, "issuer").DID()},
		Refused: func(ground.Refused) { told++ }})
	hash := ingest(t, a, saying{by: "her", claim: "Ice melts."})[0].Hash
	body := event(t, ground.Retract, hash, "issuer", testTime)
	r, c := send(t, a, body)
	if !r.Accepted || c != (ground.Change{Retracted: 1}) {
		t.Fatalf("%+v, %+v", r, c)
	}
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, body, "", "    "); err != nil {
		t.Fatal(err)
	}
	for _, again := range [][]byte{body, spaced.Bytes()} {
		got, c := send(t, a, again)
		want := ground.Receipt{Code: ground.CodeDuplicate, Hash: r.Hash, Repeats: r.Hash}
		if diff := cmp.Diff(want, got); diff != "" || c != (ground.Change{Duplicate: true}) {
			t.Errorf("%s %+v", diff, c)
		}
	}
	if feed, err := s.Feed(t.Context(), 0, 10); err != nil || len(feed) != 2 || told != 0 {
		t.Errorf("%d entries, %d told, %v", len(feed), told, err)
	}
}

// A recorder keeps what is applied to the store that it stands before.
type recorder struct {
	ground.Store
	events []ground.Cascade
}

func (r *recorder) Apply(ctx context.Context, e ground.Cascade, evidence []byte) (ground.Change, error) {
	r.events = append(r.events, e)
	return r.Store.Apply(ctx, e, evidence)
}

// TestEventProjection: a reason is shown as every other stranger's text is.
func TestEventProjection(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy attest.Policy
		reason string
		want   string
		meta   []string
	}{
		{"plain", attest.Policy{}, "The authors withdrew it.", "The authors withdrew it.", nil},
		{"none", attest.Policy{}, "", "", nil},
		{"hidden", attest.Policy{}, "with\u202edrawn\u200b <b>now</b>", "withdrawn now", []string{"hidden-bidi", "hidden-zero-width", "markup-tag"}},
		{"homoglyph", attest.Policy{}, "\u0440aper", "paper", []string{"confusable"}},
		{"homoglyph where attestations are refused", attest.Policy{Confusables: scrub.Reject}, "\u0440aper", "paper", []string{"confusable"}},
		{"long", attest.Policy{}, strings.Repeat("a ", 2000), strings.Repeat("a ", 998) + "a...", []string{"truncated"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := &recorder{Store: storetest.Open(t)}
			a := newAdapter(t, ground.Options{Store: rec, Now: testClock, Policy: c.policy, Issuers: []string{validator(t, "issuer").DID()}})
			at := testTime.Add(-time.Hour)
			body, err := newEvent(ground.Retract, source, c.reason, at, validator(t, "issuer"))
			if err != nil {
				t.Fatal(err)
			}
			if r, _ := send(t, a, body); !r.Accepted {
				t.Fatalf("%+v", r)
			}
			var got struct {
				Kind, Target string
				At           time.Time
				Issuer       string `json:"issuer_did"`
				Text         struct {
					Type            string `json:"@type"`
					Warning, Reason string
				} `json:"_untrusted_text"`
				Meta json.RawMessage `json:"_meta"`
			}
			if err := json.Unmarshal(rec.events[0].Projection, &got); err != nil {
				t.Fatal(err)
			}
			if got.Kind != "RETRACTED" || got.Target != source || !got.At.Equal(at) || got.Issuer != validator(t, "issuer").DID() ||
				got.Text.Type != "veritas:UntrustedValidatorText" || got.Text.Warning == "" {
				t.Errorf("%+v", got)
			}
			if got.Text.Reason != c.want {
				t.Errorf("reason %+q, want %+q", got.Text.Reason, c.want)
			}
			for _, code := range c.meta {
				if !strings.Contains(string(got.Meta), `"field":"reason","class":"`+code+`"`) {
					t.Errorf("%s is not told in %s", code, got.Meta)
				}
			}
			if !bytes.Equal(rec.events[0].Original, body) {
				t.Error("the original is not what was received")
			}
		})
	}
}

// TestEventFailures: what the store cannot do now is said, and may be done later.
func TestEventFailures(t *testing.T) {
	s := storetest.Open(t)
	a := newAdapter(t, ground.Options{Store: s, Now: testClock, Issuers: []string{validator(t, "issuer").DID()}})
	own := event(t, ground.Retract, "sha256:"+strings.Repeat("0", 64), "her", testTime)
	about := event(t, ground.Retract, source, "issuer", testTime)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, _, err := a.IngestEvent(ctx, "", about); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
	s.Close()
	for _, body := range [][]byte{own, about} {
		if r, _ := send(t, a, body); r.Accepted || r.Code != ground.CodeUnavailable || !r.Retry {
			t.Errorf("%+v", r)
		}
	}
}

// TestEventKeys: a key that cannot be had now is no key that is wrong.
func TestEventKeys(t *testing.T) {
	const did = "did:web:issuer.example"
	keys := &webKeys{method: did + "#key", err: errors.New("timeout")}
	a := newAdapter(t, ground.Options{Now: testClock, Issuers: []string{did}, Keys: keys})
	body, err := ground.SignCascade(ground.Retract, source, "", testTime, validator(t, "issuer"),
		attest.SignOptions{Method: keys.method})
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := send(t, a, body); r.Code != "key-unavailable" || !r.Retry || r.Hash == "" {
		t.Errorf("%+v", r)
	}
	keys.err = attest.ErrNotAuthorised
	if r, _ := send(t, a, body); r.Code != "proof-key" || r.Retry {
		t.Errorf("%+v", r)
	}
	keys.err, keys.key = nil, publicKey(t, "issuer")
	if r, _ := send(t, a, body); !r.Accepted {
		t.Errorf("%+v", r)
	}
}

// webKeys knows one key of did:web, unless it fails; the others are did:key.
type webKeys struct {
	method string
	key    ed25519.PublicKey
	err    error
	asked  int
}

func (k *webKeys) ResolveKey(ctx context.Context, method string) (ed25519.PublicKey, error) {
	if method != k.method {
		return attest.DIDKey{}.ResolveKey(ctx, method)
	}
	k.asked++
	return k.key, k.err
}

func publicKey(t testing.TB, name string) ed25519.PublicKey {
	t.Helper()
	key, err := attest.DIDKey{}.ResolveKey(t.Context(), validator(t, name).Method())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestEventTargets: an event can name what an attestation can depend on, and
// nothing else.
func TestEventTargets(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock, Issuers: []string{validator(t, "issuer").DID()}})
	long := "urn:test:" + strings.Repeat("x", 247)
	for _, target := range []string{
		source, "https://example.org", "https://example.org/a?b#c", "https://localhost/", "https://example.org/%E2%80%8B", "https://example.org/a b",
		"did:web:example.org", "did:key:z6Mk/path", "urn:doi:10.1000/182", "urn:isbn:9780262033848", "urn:pmid:12345", "arxiv:2410.22770v1",
		"urn:uuid:58172aac-d8ba-11ed-83dd-0b3aef56cc33", "urn:x:y", "urn:xy:z", "urn:xy:", "urn:xy", "urn:x_:z", "urn:xy:z z", "urn:xy:\u00e9", "URN:xy:z",
		long, long + "x", "sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("A", 64), "sha256:0x" + strings.Repeat("a", 64),
		strings.Repeat("a", 64), "0x" + strings.Repeat("a", 64), "sha256:", "", "x", "http://example.org/", "javascript:alert(1)",
	} {
		body := saying{by: "a", claim: "Ice melts.", dependsOn: []string{target}}.sign(t)
		_, err := attest.Parse(body, attest.Options{})
		r, _ := send(t, a, edited(t, "issuer", func(doc map[string]any) { doc["target"] = target }))
		if r.Accepted != (err == nil) {
			t.Errorf("%+q: event %+v, dependency %v", target, r, err)
		}
	}
}

// TestSignEvent: what cannot be received is not signed.
func TestSignEvent(t *testing.T) {
	key := validator(t, "issuer")
	for _, c := range []struct {
		kind   ground.CascadeKind
		target string
		reason string
		at     time.Time
		key    attest.Key
		o      attest.SignOptions
		ok     bool
	}{
		{ground.Retract, source, "\xff", testTime, key, attest.SignOptions{}, true},
		{ground.Reverse, "urn:isbn:9780262033848", "", testTime.Add(time.Nanosecond), key, attest.SignOptions{Method: "did:web:example.org#key"}, true},
		{0, source, "", testTime, key, attest.SignOptions{}, false},
		{ground.Retract, "", "", testTime, key, attest.SignOptions{}, false},
		{ground.Retract, source, strings.Repeat("x", ground.MaxEvent), testTime, key, attest.SignOptions{}, false},
		{ground.Retract, source, "", time.Time{}, key, attest.SignOptions{}, false},
		{ground.Retract, source, "", testTime, key, attest.SignOptions{Method: "x#y"}, false},
	} {
		body, err := ground.SignCascade(c.kind, c.target, c.reason, c.at, c.key, c.o)
		if (err == nil) != c.ok {
			t.Errorf("%v %q: %v", c.kind, c.target, err)
		}
		if err == nil {
			if _, err := ground.ParseEvent(body); err != nil {
				t.Error(err)
			}
		}
	}
	one, two := event(t, ground.Retract, source, "issuer", testTime), event(t, ground.Retract, source, "issuer", testTime)
	if bytes.Equal(one, two) {
		t.Error("two events have the same id")
	}
}

func FuzzEvent(f *testing.F) {
	f.Add(event(f, ground.Retract, source, "issuer", testTime))
	f.Add(event(f, ground.Reverse, "sha256:"+strings.Repeat("0", 64), "issuer", testTime))
	f.Add([]byte(`{"@context":"` + ground.CascadeContext + `","@type":"veritas:CascadeEvent","kind":"RETRACTED","proof":{"type":null}}`))
	f.Add([]byte(`{"at":"2025-12-31T23:59:59,5Z","issuer_did":"did:web:a%00"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		hash, err := ground.ParseEvent(body)
		var r *attest.Refusal
		if err != nil {
			if !errors.As(err, &r) || !r.Code.Known() || r.Offset < 0 || r.Offset > len(body) {
				t.Fatalf("%#v", err)
			}
			return
		}
		// What is accepted says the same however it is spaced.
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, body, "", " "); err != nil {
			t.Fatal(err)
		}
		if again, err := ground.ParseEvent(spaced.Bytes()); spaced.Len() <= ground.MaxEvent && (err != nil || again != hash) {
			t.Fatalf("spaced: %s, %v; want %s", again, err, hash)
		}
	})
}

// TestBorrowedID: whoever takes the IRI of a source for an id brings down nothing
// but what is their own.
func TestBorrowedID(t *testing.T) {
	s := storetest.Open(t)
	a := newAdapter(t, ground.Options{Store: s, Now: testClock})
	hers := ingest(t, a, saying{by: "her", claim: "Ice melts.", dependsOn: []string{source}})[0].Hash
	own := ingest(t, a, saying{by: "mallory", claim: "Ice is cold.", dependsOn: []string{source}})[0].Hash
	var doc map[string]any
	if err := json.Unmarshal(saying{by: "mallory", claim: "This is the report."}.sign(t), &doc); err != nil {
		t.Fatal(err)
	}
	delete(doc, "proof")
	doc["id"] = source
	src, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	body, err := attest.Sign(src, validator(t, "mallory"), attest.SignOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rs, err := a.Ingest(t.Context(), "", [][]byte{body})
	if err != nil || !rs[0].Accepted {
		t.Fatalf("%+v, %v", rs, err)
	}
	if r, _ := send(t, a, event(t, ground.Retract, rs[0].Hash, "mallory", testTime)); !r.Accepted {
		t.Fatalf("%+v", r)
	}
	if got := statusOf(t, s, hers); got != consensus.Live {
		t.Errorf("hers is %v", got)
	}
	if got := statusOf(t, s, own); got != consensus.CascadePending {
		t.Errorf("mallory's own is %v", got)
	}
}
