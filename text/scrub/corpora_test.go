// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// rows yields the collections whose name begins so, or skips the test.
func rows(t testing.TB, prefix string) iter.Seq[datatest.Row] {
	t.Helper()
	dir, err := datatest.CorporaDir("../..")
	if err != nil {
		t.Skip(err)
	}
	paths, err := datatest.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(datatest.Row) bool) {
		n, stop := 0, errors.New("enough")
		for _, path := range paths {
			if !strings.HasPrefix(datatest.Name(path), prefix) {
				continue
			}
			err := datatest.Read(path, func(r datatest.Row) error {
				n++
				if !yield(r) {
					return stop
				}
				return nil
			})
			if errors.Is(err, stop) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n == 0 {
			t.Fatalf("no rows of %s", prefix)
		}
	}
}

// tokenOf returns the control token that the row was made with.
func tokenOf(r datatest.Row) string {
	token, ok := strings.CutPrefix(r.Notes, "token=")
	if !ok {
		return ""
	}
	token, _, _ = strings.Cut(token, ";")
	return token
}

// Under mcp no attack row keeps a hidden code point or a control token.
func TestAttackCorpora(t *testing.T) {
	s := compile(t, Policy{})
	for r := range rows(t, "attack_") {
		if r.Family == "order-control-token-case-mix" && !oddCase(r.Text) {
			continue // in another case, as a person may write it: no tokenizer knows it
		}
		out, res := clean(t, s, r.Text)
		for _, c := range out {
			if forbidden(c) {
				t.Errorf("%s %s: %U is left", r.ID, r.Family, c)
				break
			}
		}
		if tok := naiveToken(out); tok != "" {
			t.Errorf("%s %s: %s is left in %+q", r.ID, r.Family, tok, out)
		}
		if !Replay(r.Text, out, res.Edits) {
			t.Errorf("%s %s: events do not replay", r.ID, r.Family)
		}
		if strings.HasPrefix(r.Family, "order-control-token") || r.Family == "chat-template-token-in-text" {
			checkToken(t, r, out, res)
		}
	}
}

// checkToken: the row's own token is gone, where it was there.
func checkToken(t *testing.T, r datatest.Row, out string, res *Result) {
	token := tokenOf(r)
	switch {
	case token == "<script>" || token == "_untrusted_text":
		return // no control token: markup, and a word of our own envelope
	case strings.HasSuffix(r.Family, "-percent") || strings.HasSuffix(r.Family, "-json-escape"):
		// Visible text that no tokenizer decodes: it stays, and is reported.
		if n := EncodedTokens(r.Text); n == 0 {
			t.Errorf("%s %s: %q was not found in %+q", r.ID, r.Family, token, r.Text)
		}
		return
	}
	if (token == "<s>" || token == "</s>" || token == "[INST]" || token == "<system>") && strings.Contains(r.Text, token) && res.Has(AmbiguousToken) {
		return // spelled plainly and in no sequence of a template: kept and noted
	}
	if res.Tokens == 0 {
		t.Errorf("%s %s: %q was not found in %+q -> %+q", r.ID, r.Family, token, r.Text, out)
	}
	want := strings.ToLower(norm.NFKC.String(token))
	if token == "SYSTEM:" {
		want = "\nsystem:"
	}
	if strings.Contains(strings.ToLower(out), want) {
		t.Errorf("%s %s: %q is left in %+q", r.ID, r.Family, token, out)
	}
}

// Under faithful honest text keeps its NFC form.
func TestBenignCorpora(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	m := compile(t, Policy{})
	all, kept, tokens := 0, 0, 0
	for _, file := range []string{"multilingual", "unicode", "code", "tool_results"} {
		for r := range rows(t, "benign_"+file) {
			all++
			out, res := clean(t, s, r.Text)
			if norm.NFC.String(out) == norm.NFC.String(r.Text) {
				kept++
			} else {
				t.Logf("%s %s: %s changed", r.ID, r.Family, describe(r.Text, res))
			}
			if res.Tokens > 0 {
				t.Errorf("%s %s: a control token in honest text: %s", r.ID, r.Family, describe(r.Text, res))
			}
		}
	}
	for r := range rows(t, "benign_") {
		if n := EncodedTokens(r.Text); n > 0 {
			t.Logf("%s %s: %d encoded tokens", r.ID, r.Family, n)
		}
		if _, res := clean(t, m, r.Text); res.Tokens > 0 {
			tokens++
			t.Logf("mcp: %s %s: %s", r.ID, r.Family, describe(r.Text, res))
		}
	}
	t.Logf("%d of %d rows keep their NFC form; mcp removes tokens from %d", kept, all, tokens)
	if kept*1000 < all*999 {
		t.Errorf("%d of %d rows keep their NFC form: less than 99.9 %%", kept, all)
	}
}

func describe(in string, r *Result) string {
	var b strings.Builder
	for i, e := range r.Edits {
		if i == 8 {
			b.WriteString(" ...")
			break
		}
		b.WriteString(string(e.Class.Code()) + " ")
		b.WriteString(Visible(in[max(0, e.Start-6):min(len(in), e.End+6)], true) + "; ")
	}
	return b.String()
}
