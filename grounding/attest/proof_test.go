// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// vector reads a file of the W3C's test vector for eddsa-jcs-2022.
func vector(t *testing.T, name string) []byte {
	t.Helper()
	dir, err := datatest.Find("../..", "eddsa-jcs-2022")
	if err != nil {
		t.Skip(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b)
}

// TestVector reproduces the published vector: every step of it, byte for byte.
func TestVector(t *testing.T) {
	doc := vector(t, "signedJCS.json")
	var d strictjson.Doc
	if err := d.Reset(doc, strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	root := d.Root()
	document, err := digest(new(strictjson.Edits), root)
	if err != nil {
		t.Fatal(err)
	}
	data, err := hashData(root.Get("proof"), document)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hex.EncodeToString(data), string(vector(t, "combinedHashJCS.txt")); got != want {
		t.Errorf("hash data = %s, want %s", got, want)
	}
	var pair struct{ PublicKeyMultibase, PrivateKeyMultibase string }
	if err := json.Unmarshal(vector(t, "keyPair.json"), &pair); err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(pair.PrivateKeyMultibase)
	if err != nil {
		t.Fatal(err)
	}
	if key.Public() != pair.PublicKeyMultibase || key.Secret() != pair.PrivateKeyMultibase {
		t.Error("the key's spelling differs")
	}
	created := time.Date(2023, 2, 24, 23, 36, 38, 0, time.UTC)
	p, err := VerifyDocument(context.Background(), doc, created, DIDKey{})
	if err != nil {
		t.Fatal(err)
	}
	if p.DID() != key.DID() || p.Method != key.Method() || !p.Created.Equal(created) {
		t.Errorf("%+v", p)
	}

	// Sign it anew.
	unsigned := vector(t, "canonDocJCS.txt")
	again, err := Sign(unsigned, key, SignOptions{Created: created})
	if err != nil {
		t.Fatal(err)
	}
	got, want := canonicalJSON(t, again), canonicalJSON(t, doc)
	if got != want {
		t.Errorf("signed = %s\nwant %s", got, want)
	}
	if !strings.Contains(got, string(vector(t, "sigBTC58JCS.txt"))) {
		t.Error("not the published signature")
	}
}

func canonicalJSON(t *testing.T, doc []byte) string {
	t.Helper()
	b, err := strictjson.Canonical(nil, doc, strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// No byte of a signed document can be changed.
func TestEveryByteIsSigned(t *testing.T) {
	src := signed(t, sample().AppendJSON(nil))
	for i := range src {
		b := bytes.Clone(src)
		b[i] ^= 1
		a, err := Parse(b, Options{})
		if err == nil {
			err = a.Verify(context.Background(), now, DIDKey{})
		}
		if err == nil {
			t.Errorf("byte %d can be changed: %q became %q", i, src[i], b[i])
		}
	}
}

func TestVerify(t *testing.T) {
	ctx := context.Background()
	base := sample().AppendJSON(nil)
	other := mustKey(2)
	sign := func(k Key, o SignOptions) string {
		b, err := Sign(base, k, o)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	good := sign(testKey, SignOptions{Created: issued})
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the sample has no %q", old)
		}
		i := strings.LastIndex(good, old)
		return good[:i] + new + good[i+len(old):]
	}
	for _, tt := range []struct {
		name, src string
		at        time.Time
		want      Refusal
	}{
		{"good", good, now, Refusal{}},
		{"created just now by another clock", good, issued.Add(-MaxSkew), Refusal{}},
		{"not said when", sign(testKey, SignOptions{}), now, Refusal{}},
		{"not yet expired", sign(testKey, SignOptions{Expires: now.Add(time.Second)}), now, Refusal{}},
		{"no proof", string(base), now, Refusal{Code: finding.ProofMissing, Pointer: "/proof"}},
		{"created in the future", good, issued.Add(-MaxSkew - time.Second), Refusal{Code: finding.ProofTime, Pointer: "/proof/created"}},
		{"issued in the future", sign(testKey, SignOptions{}), issued.Add(-time.Hour), Refusal{Code: finding.ProofTime, Pointer: "/issued"}},
		{"expired", sign(testKey, SignOptions{Expires: now}), now, Refusal{Code: finding.ProofTime, Pointer: "/proof/expires"}},
		{"key of another", sign(other, SignOptions{}), now, Refusal{Code: finding.ProofKey, Pointer: "/proof/verificationMethod"}},
		{"another's signature under our name", sign(other, SignOptions{Method: testKey.Method()}), now, Refusal{Code: finding.ProofInvalid, Pointer: "/proof/proofValue"}},
		{"fragment of another", sign(testKey, SignOptions{Method: testKey.DID() + "#" + other.Public()}), now, Refusal{Code: finding.ProofKey}},
		{"no fragment", sign(testKey, SignOptions{Method: testKey.DID()}), now, Refusal{Code: finding.ProofForm, Pointer: "/proof/verificationMethod"}},
		{"no DID", sign(testKey, SignOptions{Method: "https://e.example/#k"}), now, Refusal{Code: finding.ProofForm}},
		{"other suite", replace(cryptosuite, "eddsa-rdfc-2022"), now, Refusal{Code: finding.ProofForm, Pointer: "/proof/cryptosuite"}},
		{"other type", replace(proofType, "Ed25519Signature2020"), now, Refusal{Code: finding.ProofForm, Pointer: "/proof/type"}},
		{"other purpose", replace(proofPurpose, "authentication"), now, Refusal{Code: finding.ProofForm, Pointer: "/proof/proofPurpose"}},
		{"other context", replace(Context, "https://evil.example/"), now, Refusal{Code: finding.ProofForm, Pointer: "/proof/@context"}},
		{"created badly", replace("2026-04-25T10:00:00Z", "yesterday"), now, Refusal{Code: finding.ProofForm, Pointer: "/proof/created"}},
		{"created otherwise", replace("2026-04-25T10:00:00Z", "2026-04-25T10:00:01Z"), now, Refusal{Code: finding.ProofInvalid}},
		{"value of another base", replace(`"proofValue":"z`, `"proofValue":"u`), now, Refusal{Code: finding.ProofForm, Pointer: "/proof/proofValue"}},
		{"value with 0", replace(`"proofValue":"z`, `"proofValue":"z0`), now, Refusal{Code: finding.ProofForm}},
		{"value too long", replace(`"proofValue":"z`, `"proofValue":"z`+strings.Repeat("z", 1000)), now, Refusal{Code: finding.ProofForm}},
	} {
		a, err := Parse([]byte(tt.src), Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		err = a.Verify(ctx, tt.at, DIDKey{})
		if tt.want.Code == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		wantRefusal(t, err, tt.want, tt.name)
	}
}

type resolver func(method string) (ed25519.PublicKey, error)

func (r resolver) ResolveKey(_ context.Context, method string) (ed25519.PublicKey, error) {
	return r(method)
}

func TestKeyUnavailable(t *testing.T) {
	a := mustParse(t, signed(t, sample().AppendJSON(nil)))
	cause := errors.New("no route to \u202ehost")
	err := a.Verify(context.Background(), now, resolver(func(string) (ed25519.PublicKey, error) { return nil, cause }))
	wantRefusal(t, err, Refusal{Code: finding.KeyUnavailable, Pointer: "/proof/verificationMethod"}, "unavailable")
	if !errors.Is(err, cause) || strings.Contains(err.Error(), "\u202e") {
		t.Errorf("%q", err)
	}
	err = a.Verify(context.Background(), now, resolver(func(string) (ed25519.PublicKey, error) { return []byte{1}, nil }))
	wantRefusal(t, err, Refusal{Code: finding.ProofKey}, "short key")
}

func TestDIDKey(t *testing.T) {
	for _, method := range []string{
		"", "did:key:", "did:key:#", "did:web:e.example#k", testKey.DID(), testKey.DID() + "#", testKey.Method() + "x",
		"did:key:z6Mk#z6Mk", "did:key:" + testKey.Secret() + "#" + testKey.Secret(),
		"did:key:z" + strings.Repeat("1", 10_000) + "#z" + strings.Repeat("1", 10_000),
	} {
		if key, err := (DIDKey{}).ResolveKey(context.Background(), method); !errors.Is(err, ErrNotAuthorised) || key != nil {
			t.Errorf("%s: %v", finding.Quote(method), err)
		}
	}
	key, err := DIDKey{}.ResolveKey(context.Background(), testKey.Method())
	if err != nil || !bytes.Equal(key, testKey.private.Public().(ed25519.PublicKey)) {
		t.Error(err)
	}
}

func TestDocumentKey(t *testing.T) {
	const did = "did:web:v.example"
	public := testKey.private.Public().(ed25519.PublicKey)
	multi := `{"id":"` + did + `#k","type":"Multikey","controller":"` + did + `","publicKeyMultibase":"` + testKey.Public() + `"}`
	jwk := `{"id":"#k","type":"JsonWebKey","controller":"` + did + `","publicKeyJwk":{"kty":"OKP","crv":"Ed25519","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}}`
	doc := func(assertion, methods string) string {
		return `{"@context":"https://www.w3.org/ns/did/v1","id":"` + did + `","service":[],"assertionMethod":[` + assertion + `],"verificationMethod":[` + methods + `]}`
	}
	for _, tt := range []struct {
		name, doc, method string
		ok                bool
	}{
		{"listed", doc(`"`+did+`#k"`, multi), did + "#k", true},
		{"listed relatively", doc(`"#k"`, jwk), did + "#k", true},
		{"embedded", doc(multi, ""), did + "#k", true},
		{"2020", doc(strings.Replace(multi, "Multikey", "Ed25519VerificationKey2020", 1), ""), did + "#k", true},
		{"not for assertions", doc("", multi), did + "#k", false},
		{"listed, not there", doc(`"#k"`, ""), did + "#k", false},
		{"another method", doc(`"#k"`, multi), did + "#j", false},
		{"another document", doc(`"#k"`, multi), "did:web:w.example#k", false},
		{"another controls it", doc(strings.Replace(multi, `"controller":"did:web:v`, `"controller":"did:web:w`, 1), ""), did + "#k", false},
		{"another curve", doc(`"#k"`, strings.Replace(jwk, "Ed25519", "X25519", 1)), did + "#k", false},
		{"another type", doc(strings.Replace(multi, "Multikey", "RsaKey", 1), ""), did + "#k", false},
		{"no key", doc(`{"id":"#k","type":"Multikey","controller":"`+did+`"}`, ""), did + "#k", false},
		{"list of junk", doc(`1,null,[],{}`, `1,"x"`), did + "#k", false},
		{"no document", `[]`, did + "#k", false},
		{"empty method", `{}`, "", false},
		{"not JSON", `{`, did + "#k", false},
		{"two names", `{"id":"` + did + `","id":"x"}`, did + "#k", false},
	} {
		key, err := DocumentKey([]byte(tt.doc), tt.method)
		if tt.ok != (err == nil) || tt.ok && !bytes.Equal(key, public) {
			t.Errorf("%s: %v", tt.name, err)
		}
		var r *Refusal
		if err != nil && !errors.Is(err, ErrNotAuthorised) && !errors.As(err, &r) {
			t.Errorf("%s: error %v is of no kind", tt.name, err)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	for _, tt := range []struct {
		doc string
		key Key
	}{
		{`{}`, Key{}},
		{`[]`, testKey},
		{`{`, testKey},
		{`{"proof":null}`, testKey},
		{`{"a":9007199254740993}`, testKey},
	} {
		if b, err := Sign([]byte(tt.doc), tt.key, SignOptions{}); err == nil {
			t.Errorf("Sign(%s) = %s", tt.doc, b)
		}
	}
	if b, err := Sign([]byte(`{}`), testKey, SignOptions{}); err != nil {
		t.Error(err)
	} else if _, err := VerifyDocument(context.Background(), b, now, DIDKey{}); err != nil {
		t.Error(err)
	}
}

func TestKeySecrecy(t *testing.T) {
	b, _ := json.Marshal(struct{ K any }{testKey})
	if s := testKey.String() + testKey.GoString() + string(b); strings.Contains(s, testKey.Secret()[4:]) {
		t.Error("a key shows itself")
	}
	if _, err := GenerateKey(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("a key of too little randomness")
	}
	for _, s := range []string{"", "z", "x", testKey.Public(), testKey.Secret()[1:], testKey.Secret() + "1"} {
		if _, err := ParseKey(s); err == nil || strings.Contains(err.Error(), "6Mk") {
			t.Errorf("ParseKey(%q): %v", s, err)
		}
	}
}
