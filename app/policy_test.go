// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestTrustEvent: what a decision says of its server, and what it does not.
func TestTrustEvent(t *testing.T) {
	count := func(codes ...finding.Code) (out []policy.Count) {
		for _, c := range codes {
			out = append(out, policy.Count{Code: c, N: 1})
		}
		return out
	}
	for _, tt := range []struct {
		name string
		d    gateway.Decision
		want trust.Kind // "": none
	}{
		{"clean", gateway.Decision{Method: "tools/call", Kind: "result", Verdict: gateway.Passed}, trust.Clean},
		{"a note", gateway.Decision{Method: "tools/call", Kind: "result", Verdict: gateway.Changed, Findings: count(finding.NFKC)}, trust.Clean},
		{"odd", gateway.Decision{Method: "tools/call", Kind: "result", Findings: count(finding.NFKC, finding.RoleMarker, finding.ControlToken)}, ""},
		{"a hidden message", gateway.Decision{Method: "tools/call", Kind: "error", Findings: count(finding.HiddenTag), Fault: gateway.Fault{Kind: "hidden-message"}}, trust.HiddenMessage},
		{"a forged frame", gateway.Decision{Method: "tools/call", Kind: "result", Fault: gateway.Fault{Kind: "forged-frame"}}, trust.ForgedFrame},
		{"no schema's", gateway.Decision{Method: "tools/call", Kind: "result", Verdict: gateway.Withheld, Fault: gateway.Fault{Kind: "shape-lie"}}, trust.ShapeLie},
		{"no schema's, watched", gateway.Decision{Method: "tools/call", Kind: "result", Verdict: gateway.Passed, Findings: count(finding.SchemaInvalid)}, ""},
		{"a list in which nothing is", gateway.Decision{Method: "tools/list", Kind: "result", Verdict: gateway.Passed}, ""},
		{"held by a score", gateway.Decision{Method: "tools/call", Kind: "result", Verdict: gateway.Withheld, Withheld: count(finding.Denied)}, ""},
		{"the client's call", gateway.Decision{Method: "tools/call", Kind: "call", Verdict: gateway.Dropped, Withheld: count(finding.Denied)}, ""},
		{"a false alarm", gateway.Decision{Method: "tools/call", Kind: "result", Released: "x", Findings: count(finding.HiddenTag)}, trust.HeldReleased},
		{"a tool that waits", gateway.Decision{Method: "tools/list", Kind: "result", Verdict: gateway.Changed, Withheld: count(finding.Unapproved)}, ""},
	} {
		tt.d.Server, tt.d.Tool = "s", "t"
		if tt.d.Released != "" {
			tt.d.Released = strings.Repeat("0a", 16)
		}
		e, counts := standing.Of(evidence.Message(&tt.d))
		if counts != (tt.want != "") || counts && (e.Kind != tt.want || e.Origin != (trust.Origin{Server: "s", Tool: "t"})) {
			t.Errorf("%s: %+v", tt.name, e)
		}
	}
}

// TestSessionPolicy: a tool through which hostile text comes is asked about, each
// call by itself, and time brings it back.
func TestSessionPolicy(t *testing.T) {
	r, err := rules.Parse([]byte("version: 1\npolicy:\n  preset: standard\n  rules:\n    - {name: scoped, on: call, when: '!(\"mail\" in principal.scopes) && server == \"mail\"', then: deny}\n"), rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &boundary{decides: true}
	if err := b.keepScores(r); err != nil {
		t.Fatal(err)
	}
	b.rules.Store(r)
	sink := trustSink{b}
	p := b.policyOf("ann mcp mail")
	result := policy.Input{Server: "files", Tool: "read", Findings: []policy.Count{{Code: finding.HiddenTag, N: 1}}}
	if d := p.Decide(result); d.Action != policy.Allow {
		t.Errorf("a stranger's: %+v", d)
	}
	now := time.Now()
	for i := range 9 {
		hostile := gateway.Decision{Time: now, Server: "files", Tool: "read", Method: "tools/call", Kind: "result", Findings: result.Findings,
			Fault: gateway.Fault{Kind: "hidden-message", Content: frame.Digest{byte(i), byte(i)}}}
		if i >= 5 { // the same content again
			hostile.Fault.Content = frame.Digest{1, 1}
		}
		sink.Record(hostile)
	}
	if d := p.Decide(result); d.Action != policy.Hold || d.Rule != "distrusted-hidden" {
		t.Errorf("after five: %+v", d)
	}
	if d := p.Decide(policy.Input{Server: "mail", Tool: "read", Findings: result.Findings}); d.Action != policy.Allow {
		t.Errorf("another server's: %+v", d)
	}
	sink.Record(gateway.Decision{Time: now, Server: "files", Tool: "read", Method: "tools/call", Kind: "result", Fault: gateway.Fault{Kind: "hidden-message", Content: frame.Digest{9}}})
	call := policy.Input{Direction: policy.Call, Privileged: true, Server: "files", Tool: "read"}
	if d := p.Decide(call); d.Action != policy.Ask || d.Question == "" {
		t.Errorf("call: %+v", d)
	}
	for _, harmless := range []func(*policy.Input){
		func(e *policy.Input) { e.Privileged = false }, func(e *policy.Input) { e.Tool = "list" }} {
		e := call
		if harmless(&e); p.Decide(e).Action != policy.Allow {
			t.Errorf("%+v: %+v", e, p.Decide(e))
		}
	}
	mail := policy.Input{Direction: policy.Call, Server: "mail", Tool: "send"}
	if p.Decide(mail).Action != policy.Allow || b.policyOf("bob mcp").Decide(mail).Action != policy.Deny || b.policyOf("").Decide(mail).Action != policy.Deny {
		t.Error("scopes do not count")
	}
	none, err := rules.Parse([]byte("version: 1"), rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.rules.Store(none)
	if d := p.Decide(call); d != (policy.Ruling{}) {
		t.Errorf("without a policy: %+v", d)
	}
}

// TestScoresBegin: scores are kept from when a policy in force reads them, which may be after a reload.
func TestScoresBegin(t *testing.T) {
	b := &boundary{decides: true}
	hidden := gateway.Decision{Time: time.Now(), Server: "s", Tool: "t", Method: "tools/call", Kind: "result", Fault: gateway.Fault{Kind: "hidden-message", Content: frame.Digest{1}}}
	for _, tt := range []struct {
		rules string
		kept  bool
	}{
		{"", false},
		{"policy: {rules: [{name: large, on: result, when: size > 1000, then: hold}]}\n", false},
		{"policy: {rules: [{name: distrusted, on: result, when: trust.tool < 0.7, then: hold}]}\n", true},
		{"", true}, // a later policy finds them as they are
	} {
		r, err := rules.Parse([]byte("version: 1\n"+tt.rules), rules.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.keepScores(r); err != nil {
			t.Fatal(err)
		}
		b.rules.Store(r)
		in := policy.Input{Server: "s", Tool: "t", Size: 2000}
		if _, rule, _ := strings.Cut(tt.rules, "name: "); rule != "" && b.policyOf("").Decide(in).Action != policy.Hold && !tt.kept {
			t.Errorf("%s: the policy does not decide", tt.rules)
		}
		if err := (trustSink{b}).Record(hidden); err != nil || (b.book() != nil) != tt.kept {
			t.Errorf("%s: scores are kept: %v, %v", tt.rules, b.book() != nil, err)
		}
		if tt.kept && r.Policy != nil && b.policyOf("").Decide(in).Action != policy.Hold {
			t.Errorf("%s: the score does not count", tt.rules)
		}
	}
}

// TestCallerClaims: the replica that has the session knows as much of the caller as the one that got the request.
func TestCallerClaims(t *testing.T) {
	r, ok := auth.As(httptest.NewRequest("POST", "/mcp", nil), auth.Principal{ID: "corp:ann", Scopes: []string{"mcp"}, Claims: []byte(`{"sub":"ann", "groups":["a\u00e9"]}`)})
	if !ok {
		t.Fatal("no principal")
	}
	there, ok := asCaller(httptest.NewRequest("POST", "/mcp", nil), callerOf(r))
	if got := string(claimsOf(there)); !ok || got != `{"sub":"ann","groups":["a\u00e9"]}` || sessionOwner(there) != sessionOwner(r) {
		t.Errorf("%v: %s", ok, got)
	}
	if claims := claimsOf(httptest.NewRequest("POST", "/mcp", nil)); claims != nil {
		t.Errorf("without a token: %s", claims)
	}
}
