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
	"github.com/pellucid-mcp/pellucid/platform/auth"
)

// ask posts a body with one header that holds a key.
func (r *rig) ask(path, header, key string, body []byte, more ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.front.URL+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if header != "" {
		req.Header.Set(header, key)
	}
	for i := 0; i < len(more); i += 2 {
		req.Header.Set(more[i], more[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestRoads: a hijack is stopped on every road to a model, and probes go where the request
// went, signed as it was. The fake refuses what is not signed so, and deployments of Azure
// without a version.
func TestRoads(t *testing.T) {
	for _, tt := range []struct {
		name, path, header string
		format             format.Name
		probe              string
	}{
		{"Azure, deployment", "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21", "Api-Key", format.Chat, ""},
		{"Azure, responses", "/openai/v1/responses?api-version=preview", "Api-Key", format.Responses, ""},
		{"Azure, v1", "/openai/v1/chat/completions", "Authorization", format.Chat, ""},
		{"Vertex AI", "/v1/projects/p-1/locations/europe-west1/publishers/google/models/gemini-2.5-flash:generateContent", "Authorization", format.Gemini, ""},
		{"Vertex AI, v1beta1, streamed", "/v1beta1/projects/p-1/locations/global/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "Authorization", format.Gemini,
			"/v1beta1/projects/p-1/locations/global/publishers/google/models/gemini-2.5-flash:generateContent"},
		{"Vertex AI, API key", "/v1beta1/publishers/google/models/gemini-2.5-flash:generateContent", "X-Goog-Api-Key", format.Gemini, ""},
		{"Azure, Anthropic", "/anthropic/v1/messages", "X-Api-Key", format.Messages, ""},
		{"Google", "/v1beta/models/gemini-2.5-flash:generateContent", "X-Goog-Api-Key", format.Gemini, ""},
		{"Google, v1", "/v1/models/gemini-2.5-flash:generateContent", "X-Goog-Api-Key", format.Gemini, ""},
		{"Google, key in the query", "/v1beta/models/gemini-2.5-flash:generateContent?key=" + secret, "", format.Gemini, "/v1beta/models/gemini-2.5-flash:generateContent"},
		{"Google, streamed", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "X-Goog-Api-Key", format.Gemini, "/v1beta/models/gemini-2.5-flash:generateContent"},
		{"Google, streamed, key in the query", "/v1/models/gemini-2.5-flash:streamGenerateContent?alt=sse&key=" + secret, "", format.Gemini, "/v1/models/gemini-2.5-flash:generateContent"},
		{"Google, streamed as an array", "/v1beta/models/gemini-2.5-flash:streamGenerateContent", "X-Goog-Api-Key", format.GeminiArray, "/v1beta/models/gemini-2.5-flash:generateContent"},
		{"Google, for clients of OpenAI's", "/v1beta/openai/chat/completions", "Authorization", format.Chat, ""},
	} {
		for _, own := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				r := newRig(t, obedient, func(o *guard.Options) {
					o.Upstream = strings.TrimSuffix(o.Upstream, "/v1")
					if own { // the guard signs, and the client has a token
						o.Key = llm.NewKey("env:K", func() (string, error) { return secret, nil })
						o.Auth = tokens{}
					}
				})
				key, path := secret, tt.path
				if own {
					key, path = clientToken, strings.Replace(path, secret, clientToken, 1)
				}
				if tt.header == "Authorization" {
					key = "Bearer " + key
				}
				var version []string
				if tt.format == format.Messages {
					version = []string{"Anthropic-Version", "2023-06-01"}
				}
				status, got := r.ask(path, tt.header, key, conversation(tt.format, false, "Sum up.", attack), version...)
				if status != 200 || strings.Contains(got, "mallory") || !strings.Contains(got, "Done.") {
					t.Fatalf("status %d: %s", status, got)
				}
				asks := r.fake.Asks()
				if len(asks) < 2 {
					t.Fatalf("%d requests", len(asks))
				}
				for i, a := range asks {
					want := tt.path
					if i > 0 && tt.probe != "" {
						want = tt.probe
					}
					want = strings.Replace(strings.Replace(want, "&key="+secret, "", 1), "?key="+secret, "", 1)
					if a.Path != want || a.Header.Get("Authorization") == "Bearer "+clientToken || strings.Contains(a.Path, "key") {
						t.Errorf("request %d went to %s, want %s", i, a.Path, want)
					}
				}
			})
		}
	}
}

const clientToken = "client-token-0123456789"

// tokens knows one client.
type tokens struct{}

func (tokens) Authenticate(r *http.Request) (auth.Principal, error) {
	if r.Header.Get("Authorization") == "Bearer "+clientToken {
		return auth.Principal{ID: "ann"}, nil
	}
	return auth.Principal{}, auth.ErrUnauthenticated
}

// TestGatewayHeaders: probes carry the headers that the operator names, and no others.
func TestGatewayHeaders(t *testing.T) {
	r := newRig(t, obedient, func(o *guard.Options) { o.Headers = []string{"Helicone-*", "cf-aig-authorization", "Cookie"} })
	if status, got := r.ask("/v1/chat/completions", "Authorization", "Bearer "+secret, conversation(format.Chat, false, "Sum up.", attack),
		"Helicone-Auth", "h", "Cf-Aig-Authorization", "c", "X-Other", "o", "Cookie", "k"); status != 200 || !strings.Contains(got, "Done.") {
		t.Fatalf("status %d: %s", status, got)
	}
	for i, a := range r.fake.Asks() {
		if a.Header.Get("Helicone-Auth") != "h" || a.Header.Get("Cf-Aig-Authorization") != "c" || (a.Header.Get("X-Other") != "") != (i == 0) || a.Header.Get("Cookie") != "" {
			t.Errorf("request %d: %v", i, a.Header)
		}
	}
	for _, wrong := range []string{"", "*", "a b", "X-*-Y", "X:Y"} {
		if _, err := guard.New(guard.Options{Upstream: "https://models.example", Headers: []string{wrong}}); err == nil {
			t.Errorf("%q is a header", wrong)
		}
	}
}

// TestRawPredict: the bodies of Anthropic's models on Vertex AI are not read, so the guard refuses
// them by name, and no route of the operator's opens these paths.
func TestRawPredict(t *testing.T) {
	open := "POST /v1/projects/*/locations/*/publishers/anthropic/models/*"
	r := newRig(t, obedient, func(o *guard.Options) { o.Pass = []string{open} })
	for _, method := range []string{"rawPredict", "streamRawPredict", "rawpredict"} {
		for _, root := range []string{"/v1", "/v1beta1"} {
			status, got := r.ask(root+"/projects/p/locations/l/publishers/anthropic/models/claude-x:"+method, "Authorization", "Bearer "+secret, []byte("{}"))
			if status != 404 || !strings.Contains(got, "rawPredict of Vertex AI") {
				t.Errorf("%s %s: %d %s", root, method, status, got)
			}
		}
	}
	if n := len(r.fake.Asks()); n != 0 {
		t.Errorf("%d requests were forwarded", n)
	}
}

// TestRealtime: a session in which a call could not be held is refused by name.
func TestRealtime(t *testing.T) {
	r := newRig(t, obedient)
	for _, path := range []string{"/v1/realtime?model=m", "/openai/realtime?api-version=1", "/openai/v1/realtime", "/v1/realtime/sessions",
		"/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"} {
		if status, got := r.get(path); status != 404 || !strings.Contains(got, "realtime sessions") {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
	if r.asked() != 0 {
		t.Error("one was forwarded")
	}
}
