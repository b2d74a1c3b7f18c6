// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A signer makes tokens by the standard library alone, so that the library that
// checks them does not check itself.
type signer struct {
	alg, kid string
	key      crypto.Signer
}

func newSigner(t testing.TB, alg, kid string) signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch alg {
	case "EdDSA":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ES256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signer{alg, kid, key}
}

type object map[string]any

// with is o and more; nil takes a member away.
func (o object) with(more object) object {
	o = maps.Clone(o)
	for name, v := range more {
		if o[name] = v; v == nil {
			delete(o, name)
		}
	}
	return o
}

func (s signer) header() object { return object{"alg": s.alg, "kid": s.kid, "typ": "at+jwt"} }

func (s signer) sign(t testing.TB, header, claims any) string {
	t.Helper()
	var parts [2]string
	for i, v := range []any{header, claims} {
		b, ok := v.(string)
		if !ok {
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			b = string(raw)
		}
		parts[i] = base64.RawURLEncoding.EncodeToString([]byte(b))
	}
	input := parts[0] + "." + parts[1]
	digest := sha256.Sum256([]byte(input))
	var sig []byte
	var err error
	switch key := s.key.(type) {
	case ed25519.PrivateKey:
		sig = ed25519.Sign(key, []byte(input))
	case *ecdsa.PrivateKey:
		sig = make([]byte, 64)
		r, s, e := ecdsa.Sign(rand.Reader, key, digest[:])
		if err = e; err == nil {
			r.FillBytes(sig[:32])
			s.FillBytes(sig[32:])
		}
	case *rsa.PrivateKey:
		if s.alg == "PS256" {
			sig, err = rsa.SignPSS(rand.Reader, key, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		} else {
			sig, err = rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// jwk is the public key as a JWK.
func (s signer) jwk(t testing.TB) object {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	switch key := s.key.Public().(type) {
	case ed25519.PublicKey:
		return object{"kty": "OKP", "crv": "Ed25519", "x": b64(key), "kid": s.kid}
	case *ecdsa.PublicKey:
		point, err := key.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		n := len(point) / 2
		return object{"kty": "EC", "crv": key.Params().Name, "x": b64(point[1 : 1+n]), "y": b64(point[1+n:]), "kid": s.kid, "use": "sig"}
	case *rsa.PublicKey:
		return object{"kty": "RSA", "n": b64(key.N.Bytes()), "e": "AQAB", "kid": s.kid, "alg": s.alg, "key_ops": []string{"verify"}}
	}
	t.Fatal("no such key")
	return nil
}

func jwks(t testing.TB, signers ...signer) string {
	t.Helper()
	keys := []object{}
	for _, s := range signers {
		keys = append(keys, s.jwk(t))
	}
	b, err := json.Marshal(object{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// vectors are published examples: a token, the key that checks it, and what our
// check of the signature alone must say.
var vectors = []struct {
	name, key, token string
	alg              jose.SignatureAlgorithm
	ok               bool
}{
	{
		name: "RFC 7515 A.2, RS256", alg: jose.RS256, ok: true,
		key:   `{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}`,
		token: `eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw`,
	},
	{
		name: "RFC 7515 A.3, ES256", alg: jose.ES256, ok: true,
		key:   `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`,
		token: `eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q`,
	},
	{
		name: "RFC 8037 A.4, EdDSA", alg: jose.EdDSA, ok: true,
		key:   `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`,
		token: `eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg`,
	},
	{
		name: "RFC 7515 A.1, HS256", alg: "HS256",
		key:   `{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}`,
		token: `eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk`,
	},
	{
		name: "RFC 7519 6.1, none", alg: "none",
		token: `eyJhbGciOiJub25lIn0.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.`,
	},
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			keys, err := parseKeys([]byte(`{"keys":[` + v.key + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			fit := len(keys) == 1 && keys[0].fits(v.alg)
			if fit != v.ok {
				t.Errorf("keys %v fit %v, want %v", keys, fit, v.ok)
			}
			if got := isSigned(v.token, v.alg, keys); got != v.ok {
				t.Errorf("isSigned = %v, want %v", got, v.ok)
			}
			for i := 0; i+1 < len(v.token); i += 7 {
				// The last digit of a part may have bits that say nothing.
				if c := v.token[i]; c != '.' && v.token[i+1] != '.' && isSigned(v.token[:i]+string(c^1)+v.token[i+1:], v.alg, keys) {
					t.Fatalf("still signed with byte %d changed", i)
				}
			}
		})
	}
}

// TestParseKeys uses the sets of RFC 7517, appendix A, among others.
func TestParseKeys(t *testing.T) {
	const modulus = `0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw`
	rsaKey := `"kty":"RSA","n":"` + modulus + `","e":"AQAB","kid":"2011-04-29"`
	const ec = `"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","kid":"1"`
	for _, tt := range []struct {
		name, keys string // the members of one key
		kept       int
	}{
		{"RFC 7517 A.1, RSA", rsaKey + `,"alg":"RS256"`, 1},
		{"RFC 7517 A.1, EC for encryption", ec + `,"use":"enc"`, 0},
		{"EC", ec, 1},
		{"EC, operations", ec + `,"key_ops":["verify","sign"]`, 1},
		{"EC, other operations", ec + `,"key_ops":["deriveKey"]`, 0},
		{"EC, no operations", ec + `,"key_ops":[]`, 0},
		{"EC, operations of another type", ec + `,"key_ops":7`, 0},
		{"RFC 7517 A.2, private EC", ec + `,"d":"870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"`, 0},
		{"RFC 7517 A.3, symmetric", `"kty":"oct","alg":"A128KW","k":"GawgguFyGrWKav7AX4VKUg"`, 0},
		{"off the curve", `"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFxM"`, 0},
		{"short RSA", `"kty":"RSA","n":"` + modulus[:170] + `","e":"AQAB"`, 0},
		{"long RSA", `"kty":"RSA","n":"` + strings.Repeat(modulus, 3) + `","e":"AQAB"`, 0},
		{"even exponent", `"kty":"RSA","n":"` + modulus + `","e":"AQAC"`, 0},
		{"exponent 1", `"kty":"RSA","n":"` + modulus + `","e":"AQ"`, 0},
		{"no exponent", `"kty":"RSA","n":"` + modulus + `"`, 0},
		{"unknown type", `"kty":"AKP","alg":"ML-DSA-44","pub":"AA"`, 0},
		{"no type", `"kid":"a"`, 0},
		{"wrong type", `"kty":7`, 0},
		{"short Ed25519", `"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUQ"`, 0},
		{"Ed25519 with a secret", `"kty":"OKP","crv":"Ed25519","k":"AA","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"`, 0},
		{"X25519", `"kty":"OKP","crv":"X25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"`, 0},
	} {
		keys, err := parseKeys([]byte(`{"keys":[null,{` + tt.keys + `}]}`))
		if err != nil || len(keys) != tt.kept {
			t.Errorf("%s: kept %d, %v; want %d", tt.name, len(keys), err, tt.kept)
		}
	}
	for _, src := range []string{``, `null`, `[]`, `{}`, `{"keys":{}}`, `{"keys":[]`, `{"keys":[],"keys":[]}`,
		`{"keys":[` + strings.Repeat(`{},`, maxKeys) + `{}]}`, strings.Repeat("[", 1000), strings.Repeat(" ", maxDocument) + `{"keys":[]}`} {
		if keys, err := parseKeys([]byte(src)); err == nil {
			t.Errorf("parseKeys(%.40q) = %v", src, keys)
		}
	}
	if keys, err := parseKeys([]byte(`{"keys":[]}`)); err != nil || len(keys) != 0 {
		t.Errorf("parseKeys of an empty set = %v, %v", keys, err)
	}
}

func TestKeyFits(t *testing.T) {
	algs := []jose.SignatureAlgorithm{"EdDSA", "ES256", "PS256", "RS256", "HS256", "none", ""}
	for _, tt := range []struct {
		signer signer
		alg    string // of the JWK
		want   string
	}{
		{newSigner(t, "EdDSA", ""), "", "EdDSA"},
		{newSigner(t, "ES256", ""), "", "ES256"},
		{newSigner(t, "RS256", ""), "", "PS256 RS256"},
		{newSigner(t, "RS256", ""), "RS256", "RS256"},
		{newSigner(t, "PS256", ""), "PS256", "PS256"},
		{newSigner(t, "ES256", ""), "HS256", ""},
	} {
		var got []string
		for _, alg := range algs {
			if (verifyKey{"", tt.alg, tt.signer.key.Public()}).fits(alg) {
				got = append(got, string(alg))
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("a key of %s for %q fits %q, want %q", tt.signer.alg, tt.alg, s, tt.want)
		}
	}
}

func TestParseJWT(t *testing.T) {
	b64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	const header, body = `{"alg":"ES256","typ":"at+jwt","kid":"k"}`, `{"iss":"i","sub":"s","aud":["a","b"],"exp":1.5e9,"scope":"x  y x","scp":["z","w x"]}`
	h, c, err := parseJWT(b64(header) + "." + b64(body) + "." + b64("sig"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintln(h, c.iss, c.sub, c.aud, c.scopes, *c.exp, c.nbf), "{ES256 at+jwt k} i s [a b] [w x y z] 1.5e+09 <nil>\n"; got != want {
		t.Errorf("parseJWT = %s, want %s", got, want)
	}
	for _, tt := range []struct{ name, header, body, sig string }{
		{"not an object", `[]`, body, "s"},
		{"not JSON", `{`, body, "s"},
		{"twice alg", `{"alg":"none","alg":"ES256"}`, body, "s"},
		{"alg of another type", `{"alg":["ES256"]}`, body, "s"},
		{"kid of another type", `{"alg":"ES256","kid":1}`, body, "s"},
		{"crit", `{"alg":"ES256","crit":[]}`, body, "s"},
		{"b64", `{"alg":"ES256","b64":false}`, body, "s"},
		{"jwk", `{"alg":"ES256","jwk":{}}`, body, "s"},
		{"x5c", `{"alg":"ES256","x5c":[]}`, body, "s"},
		{"no claims", header, "", "s"},
		{"no signature", header, body, ""},
		{"claims are no object", header, `"x"`, "s"},
		{"twice sub", header, `{"iss":"i","sub":"s","sub":"t"}`, "s"},
		{"twice sub, escaped", header, `{"iss":"i","sub":"s","\u0073ub":"t"}`, "s"},
		{"no sub", header, `{"iss":"i"}`, "s"},
		{"sub of another type", header, `{"iss":"i","sub":7}`, "s"},
		{"null sub", header, `{"iss":"i","sub":null}`, "s"},
		{"lone surrogate", header, `{"iss":"i","sub":"\ud800"}`, "s"},
		{"ill-formed UTF-8", header, "{\"iss\":\"i\",\"sub\":\"\xff\"}", "s"},
		{"aud of another type", header, `{"iss":"i","sub":"s","aud":7}`, "s"},
		{"aud holds another type", header, `{"iss":"i","sub":"s","aud":["a",7]}`, "s"},
		{"exp is a text", header, `{"iss":"i","sub":"s","exp":"1500000000"}`, "s"},
		{"exp is null", header, `{"iss":"i","sub":"s","exp":null}`, "s"},
		{"exp beyond numbers", header, `{"iss":"i","sub":"s","exp":1e999}`, "s"},
		{"scope of another type", header, `{"iss":"i","sub":"s","scope":["x"]}`, "s"},
		{"scope with a quote", header, `{"iss":"i","sub":"s","scope":"x\""}`, "s"},
		{"scope with a line", header, `{"iss":"i","sub":"s","scope":"x\ny"}`, "s"},
		{"scope beyond ASCII", header, `{"iss":"i","sub":"s","scope":"x\u00a0y"}`, "s"},
		{"scopes without end", header, `{"iss":"i","sub":"s","scope":"` + manyScopes() + `"}`, "s"},
		{"bound to a key", header, `{"iss":"i","sub":"s","cnf":{"jkt":"x"}}`, "s"},
		{"an ID token", header, `{"iss":"i","sub":"s","at_hash":"x"}`, "s"},
		{"deep", header, `{"iss":"i","sub":"s","x":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, "s"},
	} {
		_, _, err := parseJWT(b64(tt.header) + "." + b64(tt.body) + "." + b64(tt.sig))
		if !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	good := b64(header) + "." + b64(body) + "."
	for _, token := range []string{"", ".", "..", "...", "a.b.c", good, good + "c2ln.", good + "c2l=", good + "c2l", good + "c2\nln", good + "c2ln\n", good + "c2ln.c2ln.c2ln",
		" " + good + "c2ln", strings.Repeat("a", maxToken) + "." + good, b64(header) + "=." + b64(body) + ".c2ln"} {
		if _, _, err := parseJWT(token); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("parseJWT(%.40q): %v", token, err)
		}
	}
}

func manyScopes() string {
	var s []string
	for i := range maxScopes + 1 {
		s = append(s, fmt.Sprint("s", i))
	}
	return strings.Join(s, " ")
}

func TestCheckTimes(t *testing.T) {
	now := time.Unix(1_800_000_000, 500_000_000)
	at := func(d float64) *float64 { f := 1_800_000_000.5 + d; return &f }
	for _, tt := range []struct {
		name          string
		exp, nbf, iat *float64
		want          string
	}{
		{"within", at(1), at(-1), at(-1), ""},
		{"exp alone", at(1), nil, nil, ""},
		{"never expires", nil, at(-1), at(-1), "never"},
		{"expired within skew", at(-29.9), nil, nil, ""},
		{"expired", at(-30), nil, nil, "expired"},
		{"long ago", at(-1e9), nil, nil, "expired"},
		{"before all time", at(-math.MaxFloat64), nil, nil, "expired"},
		{"after all time", at(math.MaxFloat64), nil, nil, ""},
		{"not before, within skew", at(99), at(30), nil, ""},
		{"not before", at(99), at(30.1), nil, "not valid yet"},
		{"not before the end of time", at(99), at(math.MaxFloat64), nil, "not valid yet"},
		{"issued within skew", at(99), nil, at(30), ""},
		{"issued later", at(99), nil, at(30.1), "not valid yet"},
	} {
		c := claims{exp: tt.exp, nbf: tt.nbf, iat: tt.iat}
		err := c.checkTimes(now, 30*time.Second)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func FuzzJWT(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.token)
	}
	s := signer{"EdDSA", "k", ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	signed := []string{
		s.sign(f, s.header(), object{"iss": "https://as.example", "sub": "alice", "aud": "a", "exp": 2e9, "scope": "x y"}),
		s.sign(f, s.header(), `{"iss":"https://as.example","sub":"\u0000","scp":["x"]}`),
		s.sign(f, s.header().with(object{"jwk": s.jwk(f)}), `{"iss":"https://as.example"}`),
	}
	for _, token := range signed {
		f.Add(token)
	}
	keys, err := parseKeys([]byte(jwks(f, s)))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		_, c, err := parseJWT(token)
		isSigned(token, jose.EdDSA, keys)
		if err != nil {
			if !errors.Is(err, ErrUnauthenticated) {
				t.Errorf("parseJWT: %v", err)
			}
			return
		}
		if c.sub == "" || !isB64Token(token) || !validID(principalID("corp", c.sub)) {
			t.Errorf("accepted %+q", token)
		}
		if isSigned(token, jose.EdDSA, keys) && !slices.Contains(signed, token) {
			t.Errorf("another spelling of a signed token: %q", token)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	for _, alg := range []string{"EdDSA", "ES256", "RS256"} {
		f.Add([]byte(jwks(f, newSigner(f, alg, "k"))))
	}
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AA"},{"kty":"EC","crv":"P-521","x":"","y":""}]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		keys, err := parseKeys(src)
		if err != nil && keys != nil || len(keys) > maxKeys {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			k.alg = ""
			if !slices.ContainsFunc(algorithms, k.fits) {
				t.Errorf("kept a key that fits nothing: %+q", src)
			}
			for _, v := range vectors {
				if k.fits(v.alg) {
					isSigned(v.token, v.alg, []verifyKey{k}) // must come to an end
				}
			}
		}
	})
}
