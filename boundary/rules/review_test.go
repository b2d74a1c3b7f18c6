// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
)

func TestReview(t *testing.T) {
	if r := parse(t, "version: 1"); r.Review != nil {
		t.Errorf("a review that nobody asked for: %+v", r.Review)
	}
	r := parse(t, "version: 1\nreview: {provider: openai-chat, url: http://127.0.0.1:11434/v1, model: m}").Review
	if r.format != format.Chat || r.Provider() != "openai-chat" || r.Key.Reveal() != "" || r.Timeout != 2*time.Minute || r.Tokens != 2_000_000 {
		t.Errorf("%+v", r)
	}
	full := parse(t, "version: 1\nreview: {provider: anthropic, url: https://a.example/v1, model: m, key: env:LAB, reasoning: true, timeout: 3s, tokens: 20000}")
	r = full.Review
	if r.format != format.Messages || r.Key.Reveal() != secret || r.Key.String() != "env:LAB" || !r.Reasoning || r.Timeout != 3*time.Second || r.Tokens != 20_000 {
		t.Errorf("%+v", r)
	}
	if shown := fmt.Sprintf("%+v %#v %s", r, r.Key, full.Effective()); strings.Contains(shown, "text:"+secret) || strings.Contains(string(full.Effective()), secret) {
		t.Errorf("the key is shown")
	}
	w := newFixed()
	w.env["LAB"] = "another"
	other, err := Parse([]byte("version: 1\nreview: {provider: anthropic, url: https://a.example/v1, model: m, key: env:LAB, reasoning: true, timeout: 3s, tokens: 20000}"), w.options())
	if err != nil {
		t.Fatal(err)
	}
	if d := Diff(full, other); len(d.Sections) != 1 || d.Sections[0] != "review" || Equal(full, other) || full.Version() != other.Version() {
		t.Errorf("another key: %+v", d)
	}
}

func TestReviewProblems(t *testing.T) {
	const head = "version: 1\nreview: "
	for _, x := range []struct{ src, want string }{
		{"{}", "review.provider: is missing"},
		{"{provider: anthropic, url: https://a.example}", "review.model: is missing"},
		{"{provider: openai, url: https://a.example, model: m}", `want openai-chat, openai-responses, anthropic, google or http: "openai"`},
		{"{provider: anthropic, url: http://a.example/v1, model: m}", "the base URL is not https, and its host is not this machine"},
		{"{provider: anthropic, url: https://u:pw@a.example/v1, model: m}", "the base URL holds more than host and path"},
		{"{provider: anthropic, url: https://a.example, model: \"a b\"}", "want the name of a model, without spaces"},
		{"{provider: anthropic, url: https://a.example, model: m, key: sk-live-secret}", "review.key: is a secret, and has to be a reference"},
		{"{provider: anthropic, url: https://a.example, model: m, key: env:NOBODY}", `variable "NOBODY" is not set`},
		{"{provider: anthropic, url: https://a.example, model: m, tokens: 10}", "want an integer from 16000"},
		{"{provider: anthropic, url: https://a.example, model: m, timeout: 1ms}", "want a duration from 1s"},
		{"{provider: anthropic, url: https://a.example, model: m, modle: m}", "there is no such member: is model meant?"},
	} {
		p := problemsOf(t, head+x.src)
		if shown := p.Error(); !strings.Contains(shown, x.want) || strings.Contains(shown, "sk-live") || strings.Contains(shown, "pw@") {
			t.Errorf("%s: %s", x.src, shown)
		}
	}
	if p := problemsOf(t, head+"{provider: x, url: https://a.example, model: \"a b\", tokens: 1, key: k}"); len(p) != 4 {
		t.Errorf("not all at once: %v", p)
	}
}
