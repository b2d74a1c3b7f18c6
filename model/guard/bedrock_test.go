// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
	"github.com/pellucid-mcp/pellucid/text/awsstream"
)

var bedrock = []format.Name{format.Converse, format.BedrockMessages}

func signer(key string) *sigv4.Signer {
	is := func(s string) sigv4.Secret { return func() (string, error) { return s, nil } }
	return &sigv4.Signer{Region: llmtest.Region, Service: "bedrock", Access: is(llmtest.AccessKey), Secret: is(key)}
}

// send posts body as a client that signs by Signature Version 4, with keys that the provider
// does not know.
func (r *rig) send(path string, body []byte, header map[string]string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.front.URL+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	if header == nil {
		if err := signer("another-secret").Sign(req, body); err != nil {
			r.t.Fatal(err)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body) // may be cut
	return resp, string(b)
}

// TestSigned: the guard signs requests and probes with its own keys, and nothing of a
// client's signature reaches the provider.
func TestSigned(t *testing.T) {
	for _, f := range bedrock {
		for _, stream := range []bool{false, true} {
			var asks []ask
			r := newRig(t, func(a ask) reply { asks = append(asks, a); return obedient(a) },
				func(o *guard.Options) { o.AWS, o.Concurrency = signer(secret), 1 })
			resp, body := r.send(pathOf(f, stream), conversation(f, stream, "Sum up.", attack), nil)
			if said := string(plain(f, []byte(body))); resp.StatusCode != 200 || !strings.Contains(said, "Done.") || strings.Contains(said, "mallory") {
				t.Errorf("%s: %d %.200q", f, resp.StatusCode, said)
			}
			if s := r.sink.last(t); s.Act != "repaired" || len(asks) < 2 {
				t.Errorf("%s: %s after %d questions", f, s.Act, len(asks))
			}
			for _, a := range asks {
				if !strings.Contains(a.Header.Get("Authorization"), "Credential="+llmtest.AccessKey+"/") {
					t.Errorf("%s: %v", f, a.Header)
				}
			}
		}
	}
}

// TestUnsigned: a signature for the guard's address is refused in one sentence where the
// guard has no keys; an API key is the provider's to check.
func TestUnsigned(t *testing.T) {
	for _, f := range bedrock {
		r := newRig(t, obedient)
		resp, body := r.send(pathOf(f, false), conversation(f, false, "Sum up."), nil)
		if resp.StatusCode != 400 || !strings.Contains(body, "ValidationException") || !strings.Contains(body, "guard.aws") || r.asked() != 0 {
			t.Errorf("%s: %d %s, asked %d times", f, resp.StatusCode, body, r.asked())
		}
		resp, body = r.send(pathOf(f, false), conversation(f, false, "Sum up."), map[string]string{"Authorization": "Bearer " + secret})
		if resp.StatusCode != 200 || !strings.Contains(body, "Done.") {
			t.Errorf("%s: %d %s", f, resp.StatusCode, body)
		}
		own := newRig(t, obedient, func(o *guard.Options) { o.Key = llm.NewKey("env:K", func() (string, error) { return secret, nil }) })
		if resp, body = own.send(pathOf(f, false), conversation(f, false, "Sum up."), nil); resp.StatusCode != 200 {
			t.Errorf("%s, own key: %d %s", f, resp.StatusCode, body)
		}
	}
	for name, change := range map[string]func(*guard.Options){
		"two":       func(o *guard.Options) { o.Key = llm.NewKey("env:K", func() (string, error) { return secret, nil }) },
		"no region": func(o *guard.Options) { o.AWS.Region = "" },
	} {
		o := guard.Options{Upstream: "https://bedrock-runtime.eu-west-1.amazonaws.com", AWS: signer(secret)}
		change(&o)
		if _, err := guard.New(o); err == nil {
			t.Errorf("%s: a guard", name)
		}
	}
}

// TestBedrockRoutes: what a client may ask for below /model, and how the provider is asked.
func TestBedrockRoutes(t *testing.T) {
	provider := newRecorder(t)
	r := newRig(t, obedient, func(o *guard.Options) { o.Upstream, o.AWS = provider.URL+"/base", signer(secret) })
	body := conversation(format.Converse, false, "Sum up.")
	const arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-sonnet-4-20250514-v1%3A0"
	for path, want := range map[string]string{
		"/model/m/converse":                              "/base/model/m/converse",
		"/model/anthropic.claude-v2%3A1/converse":        "/base/model/anthropic.claude-v2%3A1/converse",
		"/model/anthropic.claude-v2:1/converse":          "/base/model/anthropic.claude-v2%3A1/converse",
		"/model/anthropic.claude-v2%3a1/converse":        "/base/model/anthropic.claude-v2%3A1/converse",
		"/model/" + arn + "/converse-stream":             "/base/model/" + arn + "/converse-stream",
		"/model/" + arn + "/count-tokens":                "/base/model/" + arn + "/count-tokens",
		"/model/a%2F..%2Fb/converse":                     "",
		"/model/%2Fa/converse":                           "",
		"/model/a%2F/converse":                           "",
		"/model/a%252Fb/converse":                        "",
		"/model//converse":                               "",
		"/model/m/Converse":                              "",
		"/model/m/converse/":                             "",
		"/model/m/converse?x=1":                          "",
		"/model/m/async-invoke":                          "",
		"/model/m/invoke-with-bidirectional-stream":      "",
		"/model/" + strings.Repeat("m", 257) + "/invoke": "",
		"/guardrail/g/version/1/apply":                   "",
		"/v1/model/m/converse":                           "",
		"/v1/m/converse":                                 "",
		"/base/model/m/converse":                         "",
	} {
		resp, text := r.send(path, body, nil)
		got := ""
		for _, seen := range provider.take() {
			got += seen.target
		}
		if got != want || want == "" && resp.StatusCode != 404 {
			t.Errorf("%s: %d, asked %q; %.100s", path, resp.StatusCode, got, text)
		}
	}
	// Only Anthropic's body is read there.
	for _, body := range []string{`{"inputText":"x"}`, `{"prompt":"x","max_gen_len":5}`, `{"anthropic_version":"2023-06-01","max_tokens":9,"messages":[]}`} {
		if resp, text := r.send("/model/m/invoke", []byte(body), nil); resp.StatusCode != 400 || !strings.Contains(text, "use Converse") || len(provider.take()) > 0 {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
}

// TestStoredPrompt: the provider keeps a part of the context, which cannot be tested.
func TestStoredPrompt(t *testing.T) {
	r := newRig(t, func(ask) reply {
		return reply{Calls: []llm.ToolCall{{ID: "x", Name: "send_money", Arguments: []byte(`{"recipient":"mallory"}`)}}}
	}, func(o *guard.Options) { o.AWS = signer(secret) })
	path := format.Of(format.Converse).Path("arn:aws:bedrock:us-east-1:1:prompt/P:1", false)
	if resp, body := r.send(path, conversation(format.Converse, false, "Go on."), nil); resp.StatusCode != 200 || strings.Contains(body, "mallory") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if s := r.sink.last(t); s.Act != "refused" || s.Reason != "context-not-seen" {
		t.Errorf("%s, %s", s.Act, s.Reason)
	}
}

// TestDamagedStreams: of a stream that cannot be read on, a client gets no call, and cannot
// take what it has got for whole; Audit passes every byte.
func TestDamagedStreams(t *testing.T) {
	good := func(kind, payload string) []byte {
		return awsstream.Append(nil, []byte(payload), ":event-type", kind, ":content-type", "application/json", ":message-type", "event")
	}
	start := append(good("messageStart", `{"role":"assistant"}`), good("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Well."}}`)...)
	call := good("contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"x","name":"send_money"}}}`)
	prelude := func(total, headers uint32) []byte {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, total), headers)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	flipped := bytes.Clone(call)
	flipped[len(flipped)-5] ^= 1
	var names []string
	for i := range awsstream.MaxHeaders + 1 {
		names = append(names, fmt.Sprint("h", i), "v")
	}
	for name, tail := range map[string][]byte{
		"checksum":              flipped,
		"length of 4 GiB":       append(prelude(1<<32-1, 0), call...),
		"headers of 4 GiB":      append(prelude(1<<32-1, 1<<32-17), call...),
		"header bomb":           awsstream.Append(nil, []byte("{}"), names...),
		"no frames":             []byte("event: contentBlockStart\ndata: {}\n\n"),
		"damage behind the end": append(bytes.Clone(call), flipped...),
	} {
		sent := append(bytes.Clone(start), tail...)
		for _, audit := range []bool{false, true} {
			first := true
			r := newRig(t, func(a ask) reply {
				if first {
					first = false
					return reply{Raw: sent, ContentType: "application/vnd.amazon.eventstream"}
				}
				return obedient(a)
			}, func(o *guard.Options) { o.AWS, o.Audit = signer(secret), audit })
			req, err := http.NewRequest(http.MethodPost, r.front.URL+"/model/m/converse-stream", bytes.NewReader(conversation(format.Converse, true, "Sum up.", attack)))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			switch {
			case audit && (!bytes.Equal(b, sent) || err != nil):
				t.Errorf("%s, audit: %d bytes of %d, %v", name, len(b), len(sent), err)
			case !audit && (err == nil || bytes.Contains(b, []byte("send_money")) || !bytes.HasPrefix(b, start)):
				t.Errorf("%s: %q, %v", name, b, err)
			}
			if !audit { // what has arrived can be read
				d := awsstream.Decoder{}
				d.Feed(b)
				var bad error
				for ok := true; ok; _, ok, bad = d.Next() {
				}
				if bad != nil || len(d.Rest()) > 0 {
					t.Errorf("%s: %v, %q", name, bad, d.Rest())
				}
			}
		}
	}
}
