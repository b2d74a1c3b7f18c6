// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
)

// bedrock are the paths of Amazon Bedrock's runtime endpoint that are inspected, as Amazon documents them. What
// stands behind them in these tests is a fake (llmtest): no request goes to Amazon.
var bedrock = map[string]format.Name{
	"/openai/v1/chat/completions": format.Chat, "/openai/v1/responses": format.Responses, "/anthropic/v1/messages": format.Messages,
}

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
	if strings.HasPrefix(path, "/anthropic/") {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
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

// TestSigned: the guard signs requests and probes with its own keys, on each path, and nothing of a client's
// signature reaches the provider. The fake computes each signature again, and refuses another.
func TestSigned(t *testing.T) {
	for path, f := range bedrock {
		for _, stream := range []bool{false, true} {
			var asks []ask
			r := newRig(t, func(a ask) reply { asks = append(asks, a); return obedient(a) },
				func(o *guard.Options) { o.AWS, o.Concurrency = signer(secret), 1 })
			resp, body := r.send(path, conversation(f, stream, "Sum up.", attack), nil)
			if resp.StatusCode != 200 || !strings.Contains(body, "Done.") || strings.Contains(body, "mallory") {
				t.Errorf("%s: %d %.200q", path, resp.StatusCode, body)
			}
			if s := r.sink.last(t); s.Act != "repaired" || len(asks) < 2 {
				t.Errorf("%s: %s after %d questions", path, s.Act, len(asks))
			}
			for _, a := range asks {
				if given := a.Header.Get("Authorization"); a.Path != path || !strings.Contains(given, "Credential="+llmtest.AccessKey+"/") || !strings.Contains(given, "/"+llmtest.Region+"/bedrock/aws4_request") {
					t.Errorf("%s: %s, %v", path, a.Path, a.Header)
				}
			}
		}
	}
	other := newRig(t, obedient, func(o *guard.Options) { o.AWS = signer("another-secret") })
	if resp, body := other.send("/openai/v1/chat/completions", conversation(format.Chat, false, "Sum up."), nil); resp.StatusCode != 401 {
		t.Errorf("the fake takes another key's signature: %d %s", resp.StatusCode, body)
	}
}

// TestUnsigned: a signature for the guard's address is refused in one sentence where the
// guard has no keys; an API key is the provider's to check.
func TestUnsigned(t *testing.T) {
	for path, f := range bedrock {
		r := newRig(t, obedient)
		resp, body := r.send(path, conversation(f, false, "Sum up."), nil)
		if resp.StatusCode != 400 || !strings.Contains(body, "guard.aws") || r.asked() != 0 {
			t.Errorf("%s: %d %s, asked %d times", path, resp.StatusCode, body, r.asked())
		}
		resp, body = r.send(path, conversation(f, false, "Sum up."), map[string]string{"Authorization": "Bearer " + secret})
		if resp.StatusCode != 200 || !strings.Contains(body, "Done.") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
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

// A carrier notes requests, and answers each with an error.
type carrier struct{ asked []*http.Request }

func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	c.asked = append(c.asked, r)
	return &http.Response{StatusCode: 500, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// TestBedrockAddress: what is asked of Amazon for each path, and with which header an API key of the guard's own goes.
func TestBedrockAddress(t *testing.T) {
	const host = "https://bedrock-runtime.eu-west-1.amazonaws.com"
	for _, upstream := range []string{host, host + "/openai/v1", host + "/anthropic"} {
		for path, f := range bedrock {
			c := &carrier{}
			r := newRig(t, obedient, func(o *guard.Options) {
				o.Upstream, o.Transport, o.Key = upstream, c, llm.NewKey("env:K", func() (string, error) { return secret, nil })
			})
			r.send(path, conversation(f, false, "Sum up."), map[string]string{"X-Api-Key": "of a client"})
			if len(c.asked) != 1 || c.asked[0].URL.String() != host+path || c.asked[0].Header.Get("Authorization") != "Bearer "+secret || c.asked[0].Header.Get("X-Api-Key") != "" {
				t.Errorf("%s, %s: %+v", upstream, path, c.asked)
			}
		}
	}
}

// TestConverse: Converse and InvokeModel are refused, with a sentence that says what to use.
func TestConverse(t *testing.T) {
	r := newRig(t, obedient, func(o *guard.Options) { o.AWS = signer(secret) })
	for _, path := range []string{"/model/m/converse", "/model/anthropic.claude-v2%3A1/converse-stream", "/model/m/invoke", "/model/m/invoke-with-response-stream"} {
		resp, body := r.send(path, []byte(`{"messages":[]}`), nil)
		if resp.StatusCode != 404 || !strings.Contains(body, `{"message":"`) || !strings.Contains(body, "/openai/v1") || !strings.Contains(body, "/anthropic") || r.asked() != 0 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}
