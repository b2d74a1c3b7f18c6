// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/rfc3339"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A proof is one of W3C Data Integrity with the cryptosuite eddsa-jcs-2022: over
// the JCS of the document as it was written, never of its normalised form.
const (
	proofType    = "DataIntegrityProof"
	cryptosuite  = "eddsa-jcs-2022"
	proofPurpose = "assertionMethod"
)

// MaxSkew is how far a signer's clock may be ahead of the verifier's.
const MaxSkew = 5 * time.Minute

// A Proof is what a verified proof says.
type Proof struct {
	Method  string    // the DID URL of the key
	Created time.Time // zero if not said
	Expires time.Time // zero if not said
}

// DID is the one whose key it is.
func (p *Proof) DID() string {
	did, _, _ := strings.Cut(p.Method, "#")
	return did
}

// Verify checks that the attestation is signed by its validator, with a key that
// keys resolves, and that at the given time it was neither issued nor signed in
// the future and its proof has not expired. The error is a *Refusal. One with
// the code KeyUnavailable may go away; every other is final for that time.
//
// spec: attestation/6
func (a *Attestation) Verify(ctx context.Context, at time.Time, keys KeyResolver) error {
	root := a.doc.Root()
	p, r := readProof(root)
	if r == nil {
		r = p.check(at)
	}
	if r == nil && p.DID() != a.Validator {
		r = p.refuse(finding.ProofKey, "verificationMethod")
	}
	if r == nil && a.Issued.After(at.Add(MaxSkew)) {
		r = &Refusal{Code: finding.ProofTime, Pointer: "/issued", Offset: root.Offset()}
	}
	if r == nil {
		r = p.verify(ctx, keys, a.digest)
	}
	if r != nil {
		return r
	}
	return nil
}

// VerifyDocument checks the proof of any JSON document, of whatever context, at
// the given time. Whose the key is, the caller has to compare. The error is a
// *Refusal.
func VerifyDocument(ctx context.Context, doc []byte, at time.Time, keys KeyResolver) (*Proof, error) {
	var d strictjson.Doc
	if err := d.Reset(doc, limits); err != nil {
		return nil, refuseJSON(err)
	}
	p, r := readProof(d.Root())
	if r == nil {
		r = p.check(at)
	}
	if r != nil {
		return nil, r
	}
	document, err := digest(new(strictjson.Edits), d.Root())
	if err != nil {
		return nil, refuseJSON(err)
	}
	if r := p.verify(ctx, keys, document); r != nil {
		return nil, r
	}
	return &p.Proof, nil
}

// A stated proof has not been verified yet.
type stated struct {
	Proof
	v         strictjson.Value
	signature []byte
}

func (p *stated) refuse(code finding.Code, member string) *Refusal {
	at := p.v.Offset()
	if m := p.v.Get(member); m.Exists() {
		at = m.Offset()
	}
	return &Refusal{Code: code, Pointer: "/proof/" + member, Offset: at}
}

// readProof reads the proof of a document: its form, not whether it is true.
func readProof(root strictjson.Value) (*stated, *Refusal) {
	p := &stated{v: root.Get("proof")}
	if !p.v.Exists() {
		return nil, &Refusal{Code: finding.ProofMissing, Pointer: "/proof", Offset: root.Offset()}
	}
	if p.v.Kind() != '{' {
		return nil, &Refusal{Code: finding.ProofForm, Pointer: "/proof", Offset: p.v.Offset()}
	}
	for _, want := range [...][2]string{
		{"type", proofType}, {"cryptosuite", cryptosuite}, {"proofPurpose", proofPurpose},
	} {
		if p.v.Get(want[0]).Text() != want[1] {
			return nil, p.refuse(finding.ProofForm, want[0])
		}
	}
	// A signer copies the context into the proof. A prefix of the document's would
	// be valid too, but change what is signed under the reader's eyes.
	if ctx := p.v.Get("@context"); ctx.Exists() && !sameJSON(ctx, root.Get("@context")) {
		return nil, p.refuse(finding.ProofForm, "@context")
	}
	p.Method = p.v.Get("verificationMethod").Text()
	did, fragment, _ := strings.Cut(p.Method, "#")
	if _, err := href.Parse(p.Method); err != nil || fragment == "" || !strings.HasPrefix(did, "did:") || strings.ContainsAny(did, "/?") {
		return nil, p.refuse(finding.ProofForm, "verificationMethod")
	}
	var ok bool
	if p.Created, ok = p.time("created"); !ok {
		return nil, p.refuse(finding.ProofForm, "created")
	}
	if p.Expires, ok = p.time("expires"); !ok {
		return nil, p.refuse(finding.ProofForm, "expires")
	}
	var err error
	p.signature, err = parseMultibase58(p.v.Get("proofValue").Text())
	if err != nil || len(p.signature) != ed25519.SignatureSize {
		return nil, p.refuse(finding.ProofForm, "proofValue")
	}
	return p, nil
}

// time reads an optional time.
func (p *stated) time(member string) (time.Time, bool) {
	m := p.v.Get(member)
	if !m.Exists() {
		return time.Time{}, true
	}
	return rfc3339.Parse(m.Text())
}

// check holds the proof's times against the clock.
func (p *stated) check(at time.Time) *Refusal {
	switch {
	case p.Created.After(at.Add(MaxSkew)):
		return p.refuse(finding.ProofTime, "created")
	case !p.Expires.IsZero() && !p.Expires.After(at):
		return p.refuse(finding.ProofTime, "expires")
	}
	return nil
}

// verify holds the signature against the digest of the document.
func (p *stated) verify(ctx context.Context, keys KeyResolver, document Hash) *Refusal {
	key, err := keys.ResolveKey(ctx, p.Method)
	switch {
	case errors.Is(err, ErrNotAuthorised):
		return p.refuse(finding.ProofKey, "verificationMethod")
	case err != nil:
		r := p.refuse(finding.KeyUnavailable, "verificationMethod")
		r.cause = err
		return r
	case len(key) != ed25519.PublicKeySize:
		return p.refuse(finding.ProofKey, "verificationMethod")
	}
	data, err := hashData(p.v, document)
	if err != nil {
		return refuseJSON(err)
	}
	if !ed25519.Verify(key, data, p.signature) {
		return p.refuse(finding.ProofInvalid, "proofValue")
	}
	return nil
}

// hashData is what is signed: the SHA-256 of the proof's own options and that of
// the document, each without what is made by signing (vc-di-eddsa 3.3.4).
func hashData(proof strictjson.Value, document Hash) ([]byte, error) {
	var e strictjson.Edits
	e.Remove(proof.Get("proofValue"))
	options, err := canonical(&e, proof)
	if err != nil {
		return nil, err
	}
	o := sha256.Sum256(options)
	return append(o[:], document[:]...), nil
}

func sameJSON(a, b strictjson.Value) bool {
	if bytes.Equal(a.Raw(), b.Raw()) {
		return true
	}
	x, err1 := canonical(new(strictjson.Edits), a)
	y, err2 := canonical(new(strictjson.Edits), b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// SignOptions says what a proof says.
type SignOptions struct {
	Created time.Time // zero: not said
	Expires time.Time // zero: not said
	// Method is the DID URL under which the key is published; "": its did:key.
	Method string
}

// Sign returns doc, a JSON object of whatever context and without a proof, with a
// proof as its last member. Everything else keeps its bytes.
func Sign(doc []byte, k Key, o SignOptions) ([]byte, error) {
	if k.private == nil {
		return nil, errors.New("attest: sign: no key")
	}
	var d strictjson.Doc
	if err := d.Reset(doc, limits); err != nil {
		return nil, fmt.Errorf("attest: sign: %w", err)
	}
	root := d.Root()
	switch {
	case root.Kind() != '{':
		return nil, errors.New("attest: sign: not an object")
	case root.Get("proof").Exists():
		return nil, errors.New("attest: sign: signed already")
	}
	open := proofOptions(root.Get("@context"), k, o)
	var options strictjson.Doc
	if err := options.Reset(append(open, '}'), limits); err != nil {
		return nil, fmt.Errorf("attest: sign: %w", err)
	}
	document, err := digest(new(strictjson.Edits), root)
	if err != nil {
		return nil, fmt.Errorf("attest: sign: %w", err)
	}
	data, err := hashData(options.Root(), document)
	if err != nil {
		return nil, fmt.Errorf("attest: sign: %w", err)
	}
	w := writer{dst: open}
	w.text("proofValue", multibase58(ed25519.Sign(k.private, data)))
	var e strictjson.Edits
	e.Append(root, "proof", append(w.dst, '}'))
	return e.Apply(nil, root), nil
}

// proofOptions writes the proof without its value and its closing brace.
func proofOptions(ctx strictjson.Value, k Key, o SignOptions) []byte {
	if o.Method == "" {
		o.Method = k.Method()
	}
	w := writer{dst: []byte{'{'}}
	w.text("type", proofType)
	w.text("cryptosuite", cryptosuite)
	if !o.Created.IsZero() {
		w.text("created", o.Created.UTC().Format(time.RFC3339))
	}
	if !o.Expires.IsZero() {
		w.text("expires", o.Expires.UTC().Format(time.RFC3339))
	}
	w.text("verificationMethod", o.Method)
	w.text("proofPurpose", proofPurpose)
	if ctx.Exists() {
		w.name("@context")
		w.dst = append(w.dst, ctx.Raw()...)
	}
	return w.dst
}
