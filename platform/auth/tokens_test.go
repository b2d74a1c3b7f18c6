// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// secrets of the tests, by reference.
var testSecrets = map[string]string{
	"env:LAB1":   "9f86d081884c7d659a2feaa0c55ad015",
	"env:LAB1B":  "bf4f1b2b0b822cd15d6c15b0f00a0865\n",
	"file:/lab2": "2c26b46b68ffc68ff99b453c1d304134\r\n",
	"env:SAME":   "9f86d081884c7d659a2feaa0c55ad015",
	"env:EMPTY":  "\n",
	"env:SHORT":  "9f86d081884c7d659a2feaa0c55ad01",
	"env:ONES":   strings.Repeat("1", 64),
	"env:WORDS":  strings.Repeat("changeme-please.", 4),
	"env:STAIRS": "abcdefghijklmnopqrstuvwxyz0123456789",
	"env:SPACE":  "9f86d081884c7d659a2feaa0c55ad015 9f86d081",
	"env:LINES":  "9f86d081884c7d659a2feaa0c55ad015\nbf4f1b2b0b822cd15d6c15b0f00a0865\n",
	"env:LONG":   strings.Repeat("9f86d081884c7d65", 1025),
}

func testSecret(ref string) (string, error) {
	if s, ok := testSecrets[ref]; ok {
		return s, nil
	}
	switch ref {
	case "env:LOCKED":
		return "", fmt.Errorf("open %s: %w", testSecrets["env:LAB1"], fs.ErrPermission)
	case "env:BROKEN":
		return "", errors.New(testSecrets["env:LAB1"])
	}
	return "", fs.ErrNotExist
}

const testTokens = `{"tokens": [
	{"principal": "lab-1", "scopes": ["ground:query"], "token": "env:LAB1"},
	{"principal": "lab-1", "scopes": ["ground:query", "ground:feed"], "token": "env:LAB1B", "expires": "2027-01-01T00:00:00+01:00"},
	{"principal": "lab-2", "scopes": ["ground:ingest"], "token": "file:/lab2", "expires": null}
]}`

func TestParseTokens(t *testing.T) {
	a, err := ParseTokens([]byte(testTokens), testSecret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 12, 31, 22, 59, 59, 0, time.UTC)
	a.(*tokens).now = func() time.Time { return now }
	get := func(token string) (Principal, error) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		return a.Authenticate(r)
	}
	for token, want := range map[string]string{
		"9f86d081884c7d659a2feaa0c55ad015":   "{lab-1 [ground:query]}",
		"bf4f1b2b0b822cd15d6c15b0f00a0865":   "{lab-1 [ground:query ground:feed]}",
		"2c26b46b68ffc68ff99b453c1d304134":   "{lab-2 [ground:ingest]}",
		"9f86d081884c7d659a2feaa0c55ad016":   "{ []}",
		"9f86d081884c7d659a2feaa0c55ad01":    "{ []}",
		"9f86d081884c7d659a2feaa0c55ad015=":  "{ []}",
		"9F86D081884C7D659A2FEAA0C55AD015":   "{ []}",
		"bf4f1b2b0b822cd15d6c15b0f00a0865.a": "{ []}",
	} {
		p, err := get(token)
		if fmt.Sprint("{", p.ID, " ", p.Scopes, "}") != want || (err == nil) != (p.ID != "") || err != nil && !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("Authenticate = %v, %v; want %s", p, err, want)
		}
	}
	if p, err := get("bf4f1b2b0b822cd15d6c15b0f00a0865"); err != nil || !p.Until.Equal(now.Add(time.Second)) {
		t.Errorf("the token ends at %v, %v", p.Until, err)
	}
	now = now.Add(time.Second)
	if p, err := get("bf4f1b2b0b822cd15d6c15b0f00a0865"); !errors.Is(err, ErrUnauthenticated) || p.ID != "" {
		t.Errorf("at the time it expires: %v, %v", p, err)
	}
	if _, err := get("9f86d081884c7d659a2feaa0c55ad015"); err != nil {
		t.Error(err)
	}
}

// TestRecheck: a token that has left the file is not accepted any more, and one that stays has the scopes of the file.
func TestRecheck(t *testing.T) {
	parse := func(src string) Authenticator {
		t.Helper()
		a, err := ParseTokens([]byte(src), testSecret)
		if err != nil {
			t.Fatal(err)
		}
		return Any(a)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+testSecrets["env:LAB1"])
	before := parse(testTokens)
	p, err := before.Authenticate(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, src string
		want      string // the scopes; "": refused
	}{
		{"the same file", testTokens, "ground:query"},
		{"other scopes", strings.Replace(testTokens, `["ground:query"], "token": "env:LAB1"`, `["console:admin"], "token": "env:LAB1"`, 1), "console:admin"},
		{"removed", `{"tokens": [{"principal": "lab-2", "scopes": ["ground:query"], "token": "file:/lab2"}]}`, ""},
		{"another token of the principal", `{"tokens": [{"principal": "lab-1", "scopes": ["ground:query"], "token": "env:LAB1B"}]}`, ""},
		{"the token of another principal", `{"tokens": [{"principal": "lab-2", "scopes": ["ground:query"], "token": "env:LAB1"}]}`, ""},
	} {
		now, ok := parse(tt.src).(Rechecker).Recheck(p)
		if ok != (tt.want != "") || strings.Join(now.Scopes, " ") != tt.want {
			t.Errorf("%s: %v, %v", tt.name, now, ok)
		}
	}
	if _, ok := Any().(Rechecker).Recheck(p); ok {
		t.Error("no tokens know the principal")
	}
	if _, ok := before.(Rechecker).Recheck(Principal{ID: "lab-1"}); ok {
		t.Error("a principal without a source is known")
	}
}

func TestTokensShowNothing(t *testing.T) {
	a, err := ParseTokens([]byte(testTokens), testSecret)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "auth", a)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "auth", a)
	for _, s := range []string{fmt.Sprint(a), fmt.Sprintf("%v %+v %#v %s", a, a, a, a), log.String()} {
		own := sha256.Sum256([]byte(testSecrets["env:LAB1"]))
		digest := fmt.Sprintf("%x", own[:4])
		for _, hidden := range []string{testSecrets["env:LAB1"], "lab-1", digest, fmt.Sprint(own[:3])} {
			if strings.Contains(s, strings.Trim(hidden, "[]")) {
				t.Errorf("%q shows %q", s, hidden)
			}
		}
	}
	if got, want := fmt.Sprintf("%#v", a), "auth: 3 tokens"; got != want {
		t.Errorf("GoString = %q, want %q", got, want)
	}
}

func TestParseTokensMistakes(t *testing.T) {
	one := func(principal, scopes, token, more string) string {
		return fmt.Sprintf(`{"tokens":[{"principal":%q,"scopes":%s,"token":%q%s}]}`, principal, scopes, token, more)
	}
	for _, tt := range []struct {
		src  string
		want []string
	}{
		{``, []string{"unexpected end"}},
		{`[]`, []string{"another type"}},
		{`{"tokens":[]}`, []string{"0 tokens"}},
		{`{}`, []string{"0 tokens"}},
		{`{"tokens":[` + strings.Repeat(`{},`, maxTokens) + `{}]}`, []string{"4097 tokens"}},
		{one("a", `["s"]`, "env:LAB1", `,"secret":"x"`), []string{"unknown member"}},
		{one("a", `["s"]`, "env:LAB1", `,"Token":"x"`), []string{"differ only in case"}},
		{one("a", `["s"]`, "env:LAB1", `,"token":"env:LAB1"`), []string{"duplicate"}},
		{one("", `["s"]`, "env:LAB1", ""), []string{`tokens[0].principal: not an ID: ""`}},
		{one("corp:a", `["s"]`, "env:LAB1", ""), []string{`tokens[0].principal: not an ID: "corp:a"`}},
		{one("a\nb\u202e", `["s"]`, "env:LAB1", ""), []string{`not an ID: "a\nb\u202e"`}},
		{one(strings.Repeat("a", 65), `["s"]`, "env:LAB1", ""), []string{`tokens[0].principal`}},
		{one("a", `[]`, "env:LAB1", ""), []string{"tokens[0].scopes: none"}},
		{one("a", `["s t"]`, "env:LAB1", ""), []string{`tokens[0].scopes: not a scope: "s t"`}},
		{one("a", `["s"]`, "env:LAB1", `,"expires":"tomorrow"`), []string{`tokens[0].expires: not a time of RFC 3339: "tomorrow"`}},
		{one("a", `["s"]`, "env:LAB1", `,"expires":""`), []string{`tokens[0].expires: not a time`}},
		{one("a", `["s"]`, testSecrets["env:LAB1"], ""), []string{"tokens[0].token: not a reference"}},
		{one("a", `["s"]`, "env:", ""), []string{"not a reference"}},
		{one("a", `["s"]`, "http://"+testSecrets["env:LAB1"], ""), []string{"not a reference"}},
		{one("a", `["s"]`, "env:NOWHERE", ""), []string{"leads nowhere"}},
		{one("a", `["s"]`, "env:LOCKED", ""), []string{"permission denied"}},
		{one("a", `["s"]`, "env:BROKEN", ""), []string{"cannot be resolved"}},
		{one("a", `["s"]`, "env:EMPTY", ""), []string{"the secret is empty"}},
		{one("a", `["s"]`, "env:SHORT", ""), []string{"too short: want 32 bytes"}},
		{one("a", `["s"]`, "env:ONES", ""), []string{"does not look random"}},
		{one("a", `["s"]`, "env:WORDS", ""), []string{"does not look random"}},
		{one("a", `["s"]`, "env:STAIRS", ""), []string{"does not look random"}},
		{one("a", `["s"]`, "env:SPACE", ""), []string{"what a Bearer header cannot"}},
		{one("a", `["s"]`, "env:LINES", ""), []string{"what a Bearer header cannot"}},
		{one("a", `["s"]`, "env:LONG", ""), []string{"too long"}},
		{ // all at once
			`{"tokens":[{"principal":"a","scopes":["s"],"token":"env:LAB1"},
			{"principal":" ","scopes":["\u0007"],"token":"env:SAME","expires":"x"},
			{"principal":"b","scopes":["s"],"token":"env:SHORT"}]}`,
			[]string{"tokens[1].principal", "tokens[1].scopes", "tokens[1].expires", "tokens[1].token: the same secret as that of tokens[0]", "tokens[2].token"},
		},
	} {
		a, err := ParseTokens([]byte(tt.src), testSecret)
		if err == nil || a != nil {
			t.Errorf("ParseTokens(%.80s) = %v, %v", tt.src, a, err)
			continue
		}
		if got := len(strings.Split(err.Error(), "\n")); got != len(tt.want) {
			t.Errorf("ParseTokens(%.80s): %d mistakes, want %d:\n%v", tt.src, got, len(tt.want), err)
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("ParseTokens(%.80s): %v, want %q", tt.src, err, want)
			}
		}
		showsNoSecret(t, err)
	}
}

func showsNoSecret(t *testing.T, err error) {
	t.Helper()
	for _, s := range testSecrets {
		s = strings.TrimSpace(s)
		if s != "" && strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), s[:min(len(s), 16)]) {
			t.Errorf("an error shows a secret: %v", err)
		}
	}
}

func TestWeakness(t *testing.T) {
	for _, s := range []string{
		"9f86d081884c7d659a2feaa0c55ad015",                                 // openssl rand -hex 16
		"0d9e2b6c1f5a4e738b90c4d1a6f2e35b0d9e2b6c1f5a4e738b90c4d1a6f2e35c", // -hex 32
		"b3BlbnNlc2FtZS9ub3QtcmVhbGx5K3JhbmRvbQ==",
		"f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
	} {
		if why := weakness(s); why != "" {
			t.Errorf("weakness(%q) = %q", s, why)
		}
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add(testTokens, "9f86d081884c7d659a2feaa0c55ad015")
	f.Add(`{"tokens":[{"principal":"a","scopes":["s"],"token":"env:A","expires":"2027-01-01T00:00:00Z"}]}`, "x")
	f.Add(`{"tokens":[{"token":"9f86d081884c7d659a2feaa0c55ad015"}]}`, "9f86d081884c7d659a2feaa0c55ad015\n")
	f.Fuzz(func(t *testing.T, src, value string) {
		n := 0
		a, err := ParseTokens([]byte(src), func(ref string) (string, error) {
			n++
			return value[:len(value)/min(n, len(value)+1)], nil
		})
		if err != nil {
			if a != nil {
				t.Error("an error and an Authenticator")
			}
			return
		}
		if known := a.(*tokens); len(known.byDigest) != len(known.entries) {
			t.Errorf("%d of %d tokens are known", len(known.byDigest), len(known.entries))
		}
		for _, e := range a.(*tokens).entries {
			if !validID(e.principal.ID) || len(e.principal.Scopes) == 0 {
				t.Errorf("accepted %+q", e.principal)
			}
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	t := &tokens{entries: make([]entry, maxTokens), now: time.Now}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+testSecrets["env:LAB1"])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Authenticate(r); err == nil {
			b.Fatal("known")
		}
	}
}
