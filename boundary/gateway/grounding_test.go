// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// grounded is the answer of RFC 5.1 with one attestation, framed as 5.2 asks.
const grounded = `{"@type":"veritas:GroundedAttestationResponse","@version":"0.1","query":"q","consensus_domain":"d",` +
	`"verdict_summary":{"primary_verdict":"VERIFIED","validator_count":1,"disagreement_present":false},` +
	`"attestations":[{"validator_did":"did:web:v.example","verdict":"VERIFIED","consensus_domain":"d","_untrusted_text":` +
	`{"@type":"veritas:UntrustedValidatorText","warning":"w","rationale":"r \u0026 r","qualifications":"","evidence":[` +
	`{"_untrusted_quote":{"@type":"veritas:UntrustedValidatorText","warning":"w","quote":"c","source_uri":""}}]}}],` +
	`"_meta":{"sanitation_version":"0.1","confusables_present":false,"confusables_replaced":[],"truncated":[],"stripped_positions":[]}}`

func inText(s string) string {
	return `{"content":[{"type":"text","text":` + jsonQuote(s) + `}]}`
}

func TestGrounding(t *testing.T) {
	t.Parallel()
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(grounded) }
	ok2 := `{"frames":2,"low_confidence":false,"reasons":[]}`
	for _, c := range []struct{ name, result, want string }{
		{"structured", `{"content":[],"structuredContent":` + grounded + `}`, ok2},
		{"inside another object", `{"content":[],"structuredContent":{"result":` + grounded + `}}`, ok2},
		{"text", inText(grounded), ok2},
		{"text in a frame of its own", inText("NOTICE: x\n<pellucid-00 untrusted=\"true\">\n" + grounded + "\n</pellucid-00>"), ok2},
		{"text of a resource", `{"content":[{"type":"resource","resource":{"uri":"veritas://a","text":` + jsonQuote(grounded) + `}}]}`, ok2},
		{"one copy is not framed", strings.TrimSuffix(inText(replace("UntrustedValidatorText", "Text")), "}") + `,"structuredContent":` + grounded + `}`,
			`{"frames":0,"low_confidence":true,"reasons":["no-frame","unframed-text"]}`},
		{"no frame", inText(replace("_untrusted_text", "text", "veritas:UntrustedValidatorText", "x")),
			`{"frames":0,"low_confidence":true,"reasons":["no-frame","unframed-text"]}`},
		{"quote without a frame", inText(replace("_untrusted_quote", "quote")), `{"frames":2,"low_confidence":true,"reasons":["unframed-text"]}`},
		{"confusables", inText(replace(`"confusables_present":false`, `"confusables_present":true`)),
			`{"frames":2,"low_confidence":true,"reasons":["confusables-present"]}`},
		{"nothing attested", inText(`{"@type":"veritas:GroundedAttestationResponse","attestations":[],"_meta":{}}`),
			`{"frames":0,"low_confidence":true,"reasons":["no-frame"]}`},
		{"hidden characters in the type", inText(replace("veritas:Grounded", "veritas:\u200bGrounded", "UntrustedValidatorText", "Text")),
			`{"frames":0,"low_confidence":true,"reasons":["no-frame","unframed-text"]}`},
		{"not strict", inText(strings.Replace(grounded, `{`, `{"query":"","query":"",`, 1)), `{"frames":0,"low_confidence":true,"reasons":["unreadable"]}`},
		{"prose", inText("An adapter answers with a veritas:GroundedAttestationResponse {…}."), ""},
		{"another type", inText(replace("GroundedAttestationResponse", "Other")), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.declare(tool("read", ""))
			got := r.result(r.request("1", "tools/call", `{"name":"read"}`), c.result)
			if d := cmp.Diff(c.want, string(got.at("result", "_meta", groundingKey))); d != "" {
				t.Error(d)
			}
			d := r.last()
			if record := string(d.AppendJSON(nil)); strings.Contains(record, `"grounding":`) != (c.want != "") ||
				!strings.Contains(record, c.want) || !json.Valid([]byte(record)) {
				t.Errorf("record %s", record)
			}
		})
	}
}

// TestGroundingKept: frames of the adapter arrive byte for byte.
func TestGroundingKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.declare(tool("read", ""))
	r.server.send(`{"jsonrpc":"2.0","id":` + r.request("1", "tools/call", `{"name":"read"}`) + `,"result":{"content":[],"structuredContent":` + grounded + `}}`)
	if line := r.client.next(); !strings.Contains(line, grounded) {
		t.Errorf("%s", line)
	}
}

// FuzzGrounding: any text is looked at, and what is said of it is JSON of its form.
func FuzzGrounding(f *testing.F) {
	f.Add(grounded)
	f.Add(`{"a":` + grounded + `}`)
	f.Add(`veritas:GroundedAttestationResponse {"@type":}`)
	f.Fuzz(func(t *testing.T, s string) {
		var g grounding
		g.text(s)
		var doc strictjson.Doc
		if err := doc.Reset(g.appendJSON(nil), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		if g.answers == 0 && len(g.reasons) > 0 || g.frames < 0 || len(g.reasons) > 4 {
			t.Errorf("%+v", g)
		}
	})
}
