// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/record/webhook"
)

func TestWebhooks(t *testing.T) {
	r := parse(t, "version: 1\nwebhooks: {a: {url: env:HOOK_URL, secrets: ['env:HOOK']}, b: {url: 'https://b.example/', secrets: ['env:HOOK', 'env:NEXT_HOOK'], events: [call.held]}}")
	if len(r.Webhooks) != 2 {
		t.Fatalf("%v", r.Webhooks)
	}
	for name, wants := range map[string]map[webhook.Type]bool{
		"a": {webhook.ResultHeld: true, webhook.CallHeld: true, webhook.SurfaceRejected: true, webhook.Test: true},
		"b": {webhook.ResultHeld: false, webhook.CallHeld: true, webhook.Test: true},
	} {
		to, err := r.Webhooks[name].Receiver(name)
		if err != nil {
			t.Fatal(err)
		}
		for of, want := range wants {
			if to.Wants(of) != want {
				t.Errorf("%s wants %s: %v", name, of, !want)
			}
		}
		to.Close()
	}
	if shown := fmt.Sprintf("%+v %s", *r.Webhooks["a"], r.Effective()); strings.Contains(string(r.Effective()), "AQIDBAUG") || strings.Contains(string(r.Effective()), secret) {
		t.Errorf("a secret is shown: %s", shown)
	}
	// Another secret is another configuration of the same version.
	w := newFixed()
	const src = "version: 1\nwebhooks: {a: {url: 'https://a.example', secrets: ['env:HOOK']}}"
	old, err := Parse([]byte(src), w.options())
	if err != nil {
		t.Fatal(err)
	}
	w.env["HOOK"] = w.env["NEXT_HOOK"]
	again, err := Parse([]byte(src), w.options())
	if err != nil {
		t.Fatal(err)
	}
	if Equal(old, again) || old.Version() != again.Version() || old.Webhooks["a"].Equal(again.Webhooks["a"]) || !old.Webhooks["a"].Equal(old.Webhooks["a"]) {
		t.Error("another secret is not noticed")
	}
	for src, want := range map[string]string{
		"{a: {url: 'https://a.example'}}":                                                            "secrets: is missing",
		"{a: {url: 'https://a.example', secrets: []}}":                                               "a secret is missing",
		"{a: {secrets: ['env:HOOK']}}":                                                               "url: is missing",
		"{a: {url: 'https://a.example', secrets: ['env:LAB']}}":                                      "does not hold a secret of Standard Webhooks",
		"{a: {url: 'https://a.example', secrets: [whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0e]}}": "has to be a reference",
		"{a: {url: 'http://a.example', secrets: ['env:HOOK']}}":                                      "is not https",
		"{a: {url: 'https://a.example', secrets: ['env:HOOK'], events: [made-up]}}":                  "events",
		"{a: {url: 'https://a.example', secrets: ['env:HOOK'], timeout: 2m}}":                        "timeout",
		"{'a b': {url: 'https://a.example', secrets: ['env:HOOK']}}":                                 "a b",
	} {
		_, err := Parse([]byte("version: 1\nwebhooks: "+src), newFixed().options())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "AQIDBAUG") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}
