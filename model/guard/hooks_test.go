// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// fence is a text as a gateway of this installation frames it.
func fence(t testing.TB, k frame.Key, server, text string) string {
	t.Helper()
	s, err := scrub.Compile(scrub.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	var r scrub.Result
	s.Scrub(text, &r)
	return k.Fence(frame.Origin{Server: server, Tool: "read_mail"}, r.Clean)
}

type quarantine struct{ all []guard.Source }

func (q *quarantine) Withhold(_ context.Context, s guard.Source) error {
	q.all = append(q.all, s)
	return nil
}

// TestBlame: the source that a verified fence names is blamed, and nobody else.
func TestBlame(t *testing.T) {
	mine, err := frame.NewKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	foreign, _ := frame.NewKey(bytes.Repeat([]byte{8}, 32))
	for name, tt := range map[string]struct {
		results []string
		blamed  string
	}{
		"verified":    {[]string{fence(t, mine, "notes", "Nothing."), fence(t, mine, "mail", attack)}, "mail"},
		"forged":      {[]string{fence(t, mine, "notes", "Nothing."), fence(t, foreign, "mail", attack)}, ""},
		"without":     {[]string{fence(t, mine, "notes", "Nothing."), attack}, ""},
		"nothing bad": {[]string{fence(t, mine, "notes", "Nothing.")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var blamed []guard.Source
			q := &quarantine{}
			r := newRig(t, obedient, func(o *guard.Options) {
				o.Frame = func() frame.Key { return mine }
				o.Hooks.Blame = func(s guard.Source) { blamed = append(blamed, s) }
				o.Hooks.Quarantine = q
			})
			if _, err := r.through(format.Messages, conversation(format.Messages, false, "Sum up.", tt.results...), false); err != nil {
				t.Fatal(err)
			}
			if tt.blamed == "" && len(blamed)+len(q.all) > 0 {
				t.Fatalf("blamed %v, withheld %v", blamed, q.all)
			}
			if tt.blamed != "" && (len(blamed) != 1 || len(q.all) != 1 || blamed[0].Server != tt.blamed || blamed[0].Evidence != r.sink.last(t).ID) {
				t.Fatalf("blamed %v, withheld %v", blamed, q.all)
			}
		})
	}
}

// desk is a Desk.
type desk struct {
	mu       sync.Mutex
	items    []hold.Item
	released map[hold.Digest]bool
}

func (d *desk) Hold(_ context.Context, it hold.Item) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.items = append(d.items, it)
	return nil
}

func (d *desk) Take(_ context.Context, call hold.Digest) (hold.Item, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ok := d.released[call]
	delete(d.released, call)
	return hold.Item{}, ok
}

// TestDesk: what could not be decided waits for a person, who lets it through once.
func TestDesk(t *testing.T) {
	d := &desk{released: map[hold.Digest]bool{}}
	first := true
	r := newRig(t, func(a ask) reply {
		if a.Stream || first {
			return obedient(a)
		}
		return reply{Status: 500}
	}, func(o *guard.Options) { o.Hooks.Desk, o.Millis = d, 2000 })
	first = false
	body := conversation(format.Chat, true, "Sum up.", attack)
	got, err := r.through(format.Chat, body, true)
	if err != nil || len(got.Calls) > 0 || !strings.Contains(got.Text, "a person has decided") {
		t.Fatalf("%v, %q", err, got.Text)
	}
	if s := r.sink.last(t); len(d.items) != 1 || d.items[0].ID != s.ID || s.Act != "waiting" || !strings.Contains(string(d.items[0].Body), "mallory") {
		t.Fatalf("%+v, %+v", s, d.items)
	}
	d.released[d.items[0].Call] = true
	if got, err = r.through(format.Chat, body, true); err != nil || len(got.Calls) != 1 {
		t.Errorf("released: %v, %d calls", err, len(got.Calls))
	}
	if got, err = r.through(format.Chat, body, true); err != nil || len(got.Calls) != 0 {
		t.Errorf("again: %v, %d calls", err, len(got.Calls))
	}
}

// TestFailOpen: what was not decided goes through where the operator says so.
func TestFailOpen(t *testing.T) {
	r := newRig(t, attacked(func(int64, ask) reply { return reply{Status: 400} }), func(o *guard.Options) {
		o.Fail.DangerouslyAllowPrivileged = true
	})
	got, err := r.through(format.Chat, conversation(format.Chat, false, "Sum up.", attack), false)
	if err != nil || len(got.Calls) != 1 || r.sink.last(t).Act != "forwarded" {
		t.Errorf("%v, %d calls", err, len(got.Calls))
	}
}

// TestUnseen: a context of which a part lies with the provider is not decided.
func TestUnseen(t *testing.T) {
	r := newRig(t, obedient)
	body := bytes.Replace(conversation(format.Responses, false, "Please pay bob 100."), []byte(`{`), []byte(`{"conversation":"conv_1",`), 1)
	got, err := r.through(format.Responses, body, false)
	if s := r.sink.last(t); err != nil || len(got.Calls) > 0 || s.Reason != "context-not-seen" {
		t.Errorf("%v, %d calls, %+v", err, len(got.Calls), s)
	}
}

// TestOwnKey: clients show a token of their own, in the header of either provider,
// and the provider sees the guard's key, in probes too.
func TestOwnKey(t *testing.T) {
	const token = "4f1d7c0ab25e9386d0c7b1a2e3f49586"
	who, err := auth.ParseTokens([]byte(`{"tokens":[{"principal":"lab-1","scopes":["guard:ask"],"token":"env:T"}]}`),
		func(string) (string, error) { return token, nil })
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, obedient, func(o *guard.Options) {
		o.Key = llm.NewKey("env:K", func() (string, error) { return secret, nil })
		o.Auth, o.Scope = who, "guard:ask"
	})
	for _, f := range formats {
		for header, status := range map[string]int{"Authorization: Bearer " + token: 200, "X-Api-Key: " + token: 200, "X-Api-Key: " + secret: 401, "X-None: 1": 401} {
			before := r.sink.n()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.front.URL+paths[f], bytes.NewReader(conversation(f, false, "Sum up.", attack)))
			name, value, _ := strings.Cut(header, ": ")
			req.Header.Set(name, value)
			if f == format.Messages {
				req.Header.Set("Anthropic-Version", "2023-06-01")
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != status {
				t.Errorf("%s, %s: status %d, %s", f, name, resp.StatusCode, b)
			}
			if status == 200 {
				if s := r.sink.last(t); r.sink.n() != before+1 || s.Principal != "lab-1" || s.Act != "repaired" {
					t.Errorf("%s: %+v", f, s)
				}
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestCredentials: what a client sends for the provider goes there, and what is
// between the two of us does not.
func TestCredentials(t *testing.T) {
	headers := make(chan http.Header, 1)
	r := newRig(t, func(a llmtest.Ask) reply { headers <- a.Header; return reply{Text: "Done."} })
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.front.URL+"/v1/chat/completions", bytes.NewReader(conversation(format.Chat, false, "x")))
	for name, value := range map[string]string{"Authorization": "Bearer " + secret, "Openai-Organization": "org", "Cookie": "a=b", "X-Forwarded-For": "192.0.2.1",
		"Connection": "X-Secret", "X-Secret": "1", "Accept-Encoding": "gzip"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	h := <-headers
	if h.Get("Authorization") != "Bearer "+secret || h.Get("Openai-Organization") != "org" {
		t.Errorf("lost: %v", h)
	}
	for _, name := range []string{"Cookie", "X-Forwarded-For", "X-Secret", "Accept-Encoding"} {
		if h.Get(name) != "" {
			t.Errorf("%s went on", name)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
