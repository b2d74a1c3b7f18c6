// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const providerKey = "sk-nobody-must-see-this"

// paidServices are loopback fakes of the paid services, each in its documented wire format,
// which flag what has "wicked" in it; and of what a service may do instead.
func paidServices(t *testing.T) string {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		wicked := strings.Contains(string(b), "wicked")
		pick := func(yes, no string) string {
			if wicked {
				return yes
			}
			return no
		}
		answer := ""
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/contentsafety/text:shieldPrompt"):
			if r.URL.Query().Get("api-version") != "2025-01-01" || r.Header.Get("Ocp-Apim-Subscription-Key") != providerKey {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			var q struct{ Documents []string }
			if json.Unmarshal(b, &q) != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			var list []string
			for _, d := range q.Documents {
				list = append(list, fmt.Sprintf(`{"attackDetected":%t}`, strings.Contains(d, "wicked")))
			}
			answer = `{"documentsAnalysis":[` + strings.Join(list, ",") + `]}`
		case path == "/guardrail/gr1/version/3/apply":
			if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDE2E/") || !strings.Contains(string(b), `"source":"OUTPUT"`) {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			answer = pick(`{"action":"GUARDRAIL_INTERVENED","assessments":[{"contentPolicy":{"filters":[{"type":"PROMPT_ATTACK","action":"BLOCKED"}]}}]}`, `{"action":"NONE","assessments":[]}`)
		case path == "/v1/guardrail/checks":
			answer = pick(`{"status":"blocked","rails_status":{"r":{"status":"blocked"}}}`, `{"status":"success","rails_status":{"r":{"status":"success"}}}`)
		case strings.HasSuffix(path, ":sanitizeUserPrompt"):
			const form = `{"sanitizationResult":{"filterMatchState":%[1]q,"invocationResult":"SUCCESS","filterResults":{"pi_and_jailbreak":{"piAndJailbreakFilterResult":{"executionState":"EXECUTION_SUCCESS","matchState":%[1]q}}}}}`
			answer = fmt.Sprintf(form, pick("MATCH_FOUND", "NO_MATCH_FOUND"))
		case path == "/v2/guard":
			answer = fmt.Sprintf(`{"flagged":%[1]t,"breakdown":[{"detector_type":"prompt_attack","detected":%[1]t}]}`, wicked)
		case path == "/contrary/v2/guard":
			answer = `{"flagged":false,"breakdown":[{"detector_type":"prompt_attack","detected":true}]}`
		case path == "/v1/chat/completions":
			answer = fmt.Sprintf(`{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, pick("INJECTION override", "CLEAN"))
		case path == "/http":
			var q struct{ Texts []string }
			_ = json.Unmarshal(b, &q)
			var list []string
			for _, text := range q.Texts {
				list = append(list, fmt.Sprintf(`{"score":%s}`, map[bool]string{true: "0.9", false: "0.1"}[strings.Contains(text, "wicked")]))
			}
			answer = `{"scores":[` + strings.Join(list, ",") + `]}`
		case path == "/hangs":
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		case path == "/limits":
			w.WriteHeader(http.StatusTooManyRequests)
			return
		case path == "/fails":
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, "wicked "+providerKey)
			return
		case path == "/huge":
			answer = `{"scores":[` + strings.Repeat(`{"score":0.1},`, 1<<18) + `{"score":0.1}]}`
		case path == "/malformed":
			answer = `{"scores":[{"score":"wicked"}]`
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	return s.URL
}

// A watched is a gateway whose servers are judged by one classifier each, and what it says.
type watched struct {
	*install
	base string
	log  *said
}

// watch serves for each classifier a server on-NAME, whose tool greets.
func watch(t *testing.T, configs map[string]string) *watched {
	t.Helper()
	var classifiers, servers strings.Builder
	for name, config := range configs {
		fmt.Fprintf(&classifiers, "  %s: {%s}\n", name, config)
		fmt.Fprintf(&servers, "  on-%s: {command: %s, classify: [%s]}\n", name, yamlCommand(helperServer(t, "modern", name)), name)
	}
	w := &watched{install: newInstall(t)}
	file := filepath.Join(t.TempDir(), "pellucid.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nadmission: {pins: off}\nclassifiers:\n"+classifiers.String()+"servers:\n"+servers.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(w.bin, "up", "-c", file, "--listen", "127.0.0.1:0")
	cmd.Env = append(w.env(), "E2E_KEY="+providerKey, "E2E_ID=AKIDE2E")
	var err error
	if w.base, w.log, err = startUp(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); w.log.Wait(); cmd.Wait() })
	return w
}

// greet calls the tool of a server and returns the result.
func (w *watched) greet(t *testing.T, name, whom string) string {
	t.Helper()
	return string(openHTTP(t, w.base+"/mcp/on-"+name).result("tools/call", fmt.Sprintf(`{"name":"greet","arguments":{"name":%q}}`, whom)))
}

// recorded waits until the record says of each classifier what is wanted, and checks that
// neither it nor the log, which must say what is in logged, holds a key or the payload.
func (w *watched) recorded(t *testing.T, wanted map[string]string, logged string) {
	t.Helper()
	var record string
	for end := time.Now().Add(time.Minute); len(wanted) > 0; time.Sleep(100 * time.Millisecond) {
		record = w.says(t, "ledger", "show", "--kind", "classified", "--json")
		for line := range strings.Lines(record) {
			for name, what := range wanted {
				if strings.Contains(line, `"rule":"classifier:`+name+`"`) && strings.Contains(line, what) && strings.Contains(line, `"versions":{"classifier":"`) {
					delete(wanted, name)
				}
			}
		}
		if time.Now().After(end) {
			t.Fatalf("not in the record: %v\n%s", wanted, record)
		}
	}
	w.log.mu.Lock()
	log := strings.Join(w.log.lines, "")
	w.log.mu.Unlock()
	for what, text := range map[string]string{"the record": record, "the log": log} {
		for _, never := range []string{payload, providerKey} {
			if strings.Contains(text, never) {
				t.Errorf("%s holds %q", what, never)
			}
		}
	}
	if !strings.Contains(log, logged) {
		t.Errorf("the log does not say %q:\n%s", logged, log)
	}
}

const payload = "wicked words to look for"

var evidenceID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

// TestProviders: on the verdict of every provider a result is held where it enforces, and
// delivered in shadow mode; who, why and where can be looked up, and no key and no word of
// the result is in a log.
func TestProviders(t *testing.T) {
	at := paidServices(t)
	providers := map[string]string{
		"azure":       `provider: azure, url: "` + at + `", api_version: "2025-01-01", key: env:E2E_KEY`,
		"bedrock":     `provider: bedrock, url: "` + at + `", region: us-east-1, guardrail: gr1, version: "3", access_key: env:E2E_ID, secret_key: env:E2E_KEY`,
		"nemo":        `provider: nemo, url: "` + at + `", config: c, key: env:E2E_KEY`,
		"model-armor": `provider: model-armor, url: "` + at + `", project: p, location: l, template: t, key: env:E2E_KEY`,
		"lakera":      `provider: lakera, url: "` + at + `", key: env:E2E_KEY`,
		"http":        `provider: http, url: "` + at + `/http", model: m, key: env:E2E_KEY`,
		"judge":       `provider: judge, url: "` + at + `/v1", model: m, format: openai-chat, key: env:E2E_KEY`,
	}
	configs, wanted := map[string]string{}, map[string]string{}
	for name, config := range providers {
		configs[name], configs["watch-"+name] = config+", mode: enforce", config+", mode: shadow"
		wanted[name], wanted["watch-"+name] = `"verdict":"injection"`, `"verdict":"suspected"`
	}
	w := watch(t, configs)
	for name := range providers {
		t.Run(name, func(t *testing.T) {
			if got := w.greet(t, name, "ann"); !strings.Contains(got, "Hello, ann!") {
				t.Errorf("an honest result is not delivered: %s", got)
			}
			got := w.greet(t, name, payload)
			id := evidenceID.FindString(got)
			if strings.Contains(got, payload) || id == "" {
				t.Fatalf("not held: %s", got)
			}
			if show := w.says(t, "quarantine", "show", id); !strings.Contains(show, "classifier:"+name) || !strings.Contains(show, payload) {
				t.Errorf("quarantine show: %s", show)
			}
			if got := w.greet(t, "watch-"+name, payload); !strings.Contains(got, payload) {
				t.Errorf("held in shadow mode: %s", got)
			}
		})
	}
	w.recorded(t, wanted, "classifier suspects an injection")
}

// TestBrokenProviders: whatever a service does instead of an answer, the result becomes what
// the configuration says, soon, and the record says why.
func TestBrokenProviders(t *testing.T) {
	at := paidServices(t)
	configs := map[string]string{
		"limits":       `provider: http, url: "` + at + `/limits", model: m`,
		"fails":        `provider: http, url: "` + at + `/fails", model: m, key: env:E2E_KEY`,
		"fails-open":   `provider: http, url: "` + at + `/fails", model: m, fail: open`,
		"fails-closed": `provider: http, url: "` + at + `/fails", model: m, fail: closed`,
		"hangs":        `provider: http, url: "` + at + `/hangs", model: m, timeout: 300ms`,
		"huge":         `provider: http, url: "` + at + `/huge", model: m`,
		"malformed":    `provider: http, url: "` + at + `/malformed", model: m`,
		"contrary":     `provider: lakera, url: "` + at + `/contrary", key: env:E2E_KEY`,
		"nowhere":      `provider: http, url: "http://127.0.0.1:9", model: m`,
	}
	wanted := map[string]string{"hangs": `"timeout"`, "huge": `"malformed"`, "malformed": `"malformed"`, "contrary": `"contradiction"`}
	w := watch(t, configs)
	for name := range configs {
		if wanted[name] == "" {
			wanted[name] = `"unavailable"`
		}
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			got := w.greet(t, name, payload)
			if delivered := strings.Contains(got, payload); delivered != (name == "fails-open") {
				t.Errorf("delivered: %t: %s", delivered, got)
			}
			if d := time.Since(begin); d > 30*time.Second {
				t.Errorf("it took %v", d)
			}
			held := exec.Command(w.bin, "quarantine", "show", evidenceID.FindString(got))
			held.Env = w.env()
			if err := held.Run(); (err == nil) != (name != "fails-open" && name != "fails-closed") {
				t.Errorf("in the queue: %v", err)
			}
		})
	}
	w.recorded(t, wanted, "classifier could not judge")
}
