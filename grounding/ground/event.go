// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/rfc3339"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// CascadeContext is the @context of a cascade event. It is compared, never fetched.
const CascadeContext = "https://veritas-protocol.example/cascade/v0.1"

const cascadeType = "veritas:CascadeEvent"

// MaxEvent bounds the bytes of a cascade event.
const MaxEvent = 64 << 10

// The codes of a Receipt for an event that nobody has to believe.
const (
	// CodeNotBelieved: the issuer is not one of Options.Issuers, and the event is
	// not the withdrawal of an attestation by its own validator.
	CodeNotBelieved = "issuer-not-believed"
	// CodeTargetUnknown: no attestation has that hash yet, so that nobody knows
	// whether the issuer is its validator.
	CodeTargetUnknown = "target-unknown"
)

// String returns the name of the kind in an event document, "" for no kind.
func (k CascadeKind) String() string {
	switch k {
	case Retract:
		return "RETRACTED"
	case Reverse:
		return "REVERSED"
	}
	return ""
}

// A notice is a cascade event as its issuer wrote it.
//
// spec: cascade/1
type notice struct {
	hash   attest.Hash // canonical
	kind   CascadeKind
	target string
	at     time.Time
	issuer string
	reason string // third-party text
}

// IngestEvent checks one signed cascade event, stores it and lets it act; every
// attestation that it withdraws is withheld from then on. The error is that of
// the context only, as for Ingest.
func (a *Adapter) IngestEvent(ctx context.Context, submitter string, body []byte) (Receipt, Change, error) {
	r, change := a.ingestEvent(ctx, body)
	if err := ctx.Err(); err != nil {
		return Receipt{}, Change{}, err
	}
	a.witness(submitter, body, r, "")
	return r, change, nil
}

func (a *Adapter) ingestEvent(ctx context.Context, body []byte) (Receipt, Change) {
	n, err := a.checkEvent(ctx, body)
	if err != nil {
		return refusal(body, err), Change{}
	}
	if r := a.believe(ctx, n); r.Code != "" {
		r.Hash = n.hash.String()
		return r, Change{}
	}
	r := Receipt{Accepted: true, Hash: n.hash.String()}
	projection, err := a.projectEvent(n)
	if err != nil {
		return Receipt{Code: CodeInvalid, Hash: r.Hash}, Change{}
	}
	change, err := a.apply(ctx, Cascade{
		Hash: n.hash, Kind: n.kind, Target: n.target, At: n.at, Original: body, Projection: projection, Against: a.against(ctx, n),
	})
	switch {
	case err != nil:
		r.Accepted = false
		r.Code, r.Retry = storeCode(err)
	case change.Duplicate:
		r.Accepted, r.Code, r.Repeats = false, CodeDuplicate, r.Hash
	}
	return r, change
}

func (a *Adapter) apply(ctx context.Context, e Cascade) (Change, error) {
	var evidence []byte
	if a.o.Evidence != nil {
		var err error
		if evidence, err = a.o.Evidence.Apply(e); err != nil {
			return Change{}, err
		}
	}
	return a.o.Store.Apply(ctx, e, evidence)
}

// checkEvent takes an event through everything that comes before the question
// whether it is believed. The error is a *attest.Refusal.
//
// spec: cascade/2
func (a *Adapter) checkEvent(ctx context.Context, body []byte) (*notice, error) {
	n, r := parseEvent(body)
	if r != nil {
		return nil, r
	}
	now := a.o.Now()
	if n.at.After(now.Add(attest.MaxSkew)) {
		return nil, &attest.Refusal{Code: finding.ProofTime, Pointer: "/at"}
	}
	p, err := attest.VerifyDocument(ctx, body, now, a.o.Keys)
	if err != nil {
		return nil, err
	}
	if p.DID() != n.issuer {
		return nil, &attest.Refusal{Code: finding.ProofKey, Pointer: "/proof/verificationMethod"}
	}
	return n, nil
}

// believe says why the event does not count here; Code is "" if it does.
//
// A validator may only withdraw. Of the events on one target the latest decides,
// whoever issued it: one that could reinstate its own attestation could undo what
// an issuer has retracted.
//
// spec: cascade/3
func (a *Adapter) believe(ctx context.Context, n *notice) Receipt {
	if slices.Contains(a.o.Issuers, n.issuer) {
		return Receipt{}
	}
	stranger := Receipt{Code: CodeNotBelieved, Pointer: "/issuer_did"}
	h, ok := targetHash(n.target)
	if !ok || n.kind != Retract {
		return stranger
	}
	switch st, err := a.o.Store.ByHash(ctx, h); {
	case errors.Is(err, ErrNotFound):
		return Receipt{Code: CodeTargetUnknown, Pointer: "/target", Retry: true}
	case err != nil:
		code, retry := storeCode(err)
		return Receipt{Code: code, Retry: retry}
	case st.Validator != n.issuer:
		return stranger
	}
	return Receipt{}
}

// against is the validator of the attestation that another withdraws, or lets stand
// again; "" where it is its own, or none that is known.
func (a *Adapter) against(ctx context.Context, n *notice) string {
	h, ok := targetHash(n.target)
	if !ok || a.o.Evidence == nil {
		return ""
	}
	st, err := a.o.Store.ByHash(ctx, h)
	if err != nil || st.Validator == n.issuer {
		return "" // its own withdrawal is honest
	}
	return st.Validator
}

// eventMembers are those of an event, proofMembers those of its proof, each in
// the order of docs/spec/cascade.md; all hold strings but proof.
var (
	eventMembers = []string{"@context", "@type", "id", "kind", "target", "at", "issuer_did", "reason", "proof"}
	proofMembers = []string{"type", "cryptosuite", "created", "expires", "verificationMethod", "proofPurpose", "@context", "proofValue"}
)

// parseEvent reads an event strictly. What it does not look at is the proof, but
// for the names of its members.
func parseEvent(body []byte) (*notice, *attest.Refusal) {
	if len(body) > MaxEvent {
		return nil, &attest.Refusal{Code: finding.TooLong, Offset: MaxEvent}
	}
	hash, err := attest.CanonicalHash(body, attest.V02)
	if err != nil {
		var r *attest.Refusal
		errors.As(err, &r)
		return nil, r
	}
	var d strictjson.Doc
	if err := d.Reset(body, strictjson.Limits{FoldedNames: true}); err != nil {
		var se *strictjson.SyntaxError
		errors.As(err, &se)
		return nil, &attest.Refusal{Code: finding.NotJSON, Offset: se.Offset}
	}
	e := eventReader{root: d.Root()}
	e.shape()
	n := &notice{hash: hash, reason: strings.Clone(e.root.Get("reason").Text())}
	n.kind = e.kind()
	e.word("id", attest.IDValid)
	n.target = e.word("target", attest.DependencyValid)
	e.word("at", func(s string) (ok bool) {
		n.at, ok = rfc3339.Parse(s)
		return ok
	})
	n.issuer = e.did("issuer_did")
	if e.refusal != nil {
		return nil, e.refusal
	}
	return n, nil
}

// An eventReader takes values out of an event. The first refusal stands; what
// comes after it has no meaning.
type eventReader struct {
	root    strictjson.Value
	refusal *attest.Refusal
}

func (e *eventReader) refuse(code finding.Code, pointer string, v strictjson.Value) {
	if e.refusal == nil {
		e.refusal = &attest.Refusal{Code: code, Pointer: pointer, Offset: v.Offset()}
	}
}

// shape refuses another context, and what the context does not define.
func (e *eventReader) shape() {
	for _, name := range eventMembers {
		optional := name == "reason" || name == "proof" // a missing proof has a code of its own
		if !optional && !e.root.Get(name).Exists() {
			e.refuse(finding.MissingMember, "/"+name, e.root)
		}
	}
	if v := e.root.Get("@context"); v.Text() != CascadeContext {
		e.refuse(finding.UnknownContext, "/@context", v)
	}
	if v := e.root.Get("@type"); v.Text() != cascadeType {
		e.refuse(finding.Misshapen, "/@type", v)
	}
	for name, v := range e.root.Members() {
		switch s := name.Text(); {
		case !slices.Contains(eventMembers, s):
			e.refuse(finding.UndefinedTerm, "", name)
		case s == "proof" && v.Kind() != '{', s != "proof" && v.Kind() != '"':
			e.refuse(finding.Misshapen, "/"+s, v)
		}
	}
	for name, v := range e.root.Get("proof").Members() {
		switch s := name.Text(); {
		case !slices.Contains(proofMembers, s):
			e.refuse(finding.UndefinedTerm, "/proof", name)
		case v.Kind() != '"':
			e.refuse(finding.ProofForm, "/proof/"+s, v)
		}
	}
}

func (e *eventReader) word(name string, ok func(string) bool) string {
	v := e.root.Get(name)
	s := strings.Clone(v.Text())
	if !ok(s) {
		e.refuse(finding.Misshapen, "/"+name, v)
	}
	return s
}

func (e *eventReader) kind() (k CascadeKind) {
	e.word("kind", func(s string) bool {
		k = map[string]CascadeKind{Retract.String(): Retract, Reverse.String(): Reverse}[s]
		return k != 0
	})
	return k
}

func (e *eventReader) did(name string) string {
	u, err := href.ParseDID(e.root.Get(name).Text())
	var r *href.Refusal
	if errors.As(err, &r) && e.refusal == nil {
		e.refusal = &attest.Refusal{Code: r.Code, Pointer: "/" + name, Offset: r.Offset, Text: true}
	}
	return strings.Clone(u.String())
}

// targetHash is the hash that target names an attestation by; ok is false if it is
// an IRI.
func targetHash(target string) (h attest.Hash, ok bool) {
	if !strings.HasPrefix(target, "sha256:") {
		return attest.Hash{}, false
	}
	return attest.ParseHash(target)
}

// An eventView is what may be shown of an event.
//
// spec: cascade/5
type eventView struct {
	Kind   string          `json:"kind"`
	Target string          `json:"target"`
	At     time.Time       `json:"at"`
	Issuer string          `json:"issuer_did"`
	Text   untrustedReason `json:"_untrusted_text"`
	Meta   json.RawMessage `json:"_meta"`
}

type untrustedReason struct {
	label
	Reason string `json:"reason"`
}

// projectEvent frames the event. A retraction is not refused for how its reason
// is written, so under the policy Reject confusable characters are replaced.
func (a *Adapter) projectEvent(n *notice) ([]byte, error) {
	var res scrub.Result
	var meta attest.Meta
	a.echo.Scrub(n.reason, &res)
	meta.Deviations = a.echo.Policy().Deviations()
	meta.Record("reason", &res)
	return json.Marshal(eventView{
		Kind: n.kind.String(), Target: n.target, At: n.at.UTC(), Issuer: n.issuer,
		Text: untrustedReason{untrusted, res.Clean.String()}, Meta: meta.AppendJSON(nil),
	})
}

// SignCascade makes an event and signs it with key. The issuer is the DID of o.Method, or the
// did:key of key if o names no method. The id of the event is random.
func SignCascade(kind CascadeKind, target, reason string, at time.Time, key attest.Key, o attest.SignOptions) ([]byte, error) {
	if o.Method == "" {
		o.Method = key.Method()
	}
	issuer, _, _ := strings.Cut(o.Method, "#")
	doc := []byte{'{'}
	for _, m := range [...][2]string{
		{"@context", CascadeContext}, {"@type", cascadeType}, {"id", "urn:uuid:" + randomUUID()}, {"kind", kind.String()},
		{"target", target}, {"at", at.UTC().Format(time.RFC3339Nano)}, {"issuer_did", issuer}, {"reason", reason},
	} {
		if len(doc) > 1 {
			doc = append(doc, ',')
		}
		doc = strictjson.AppendQuote(append(strictjson.AppendQuote(doc, m[0]), ':'), m[1])
	}
	doc, err := attest.Sign(append(doc, '}'), key, o)
	if err != nil {
		return nil, fmt.Errorf("ground: sign event: %w", err)
	}
	if _, r := parseEvent(doc); r != nil {
		return nil, fmt.Errorf("ground: sign event: %w", r)
	}
	return doc, nil
}

// randomUUID is a UUID of version 4 (RFC 9562 5.4).
func randomUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
