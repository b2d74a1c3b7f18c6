// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/local"
)

// A transcript is all that a principal gets: status, headers and body of each answer.
type transcript struct {
	t     *testing.T
	base  string
	token string
	id    string // of the session
	lines []string
}

// What differs between any two runs: ids, times, ports, and the keyed tags of fences, which
// follow from the body and the key of the installation.
var volatile = []*regexp.Regexp{
	regexp.MustCompile(`[0-9a-f]{32}`),
	regexp.MustCompile(`127\.0\.0\.1:[0-9]+`),
	regexp.MustCompile(`(?m)^id: [A-Z2-7]{10}\.`), // of a stream: random for each process and session
	regexp.MustCompile(`"?id"?: ?[0-9]+`),
}

func (c *transcript) post(body string) (status int, answer string) {
	c.t.Helper()
	req, err := http.NewRequest(http.MethodPost, c.base+"/mcp/one", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Authorization": "Bearer " + c.token, "Mcp-Session-Id": c.id} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.id = id
	}
	var head []string
	for name := range resp.Header {
		if name != "Date" && name != "Mcp-Session-Id" {
			head = append(head, name+": "+resp.Header.Get(name))
		}
	}
	slices.Sort(head)
	line := fmt.Sprintf("%s\n%d %q\n%s", body, resp.StatusCode, head, b)
	for _, v := range volatile {
		line = v.ReplaceAllString(line, "*")
	}
	c.lines = append(c.lines, line)
	return resp.StatusCode, string(b)
}

func (c *transcript) call(id int, text string) string {
	c.t.Helper()
	_, answer := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}}}`, id, text))
	return answer
}

func (c *transcript) begin() {
	c.t.Helper()
	c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
}

// TestPrincipalsApart runs a gateway twice, once with a busy neighbour whose results are
// held, released and refused and who uses up an allowance, and once without. What another
// principal gets is the same, byte for byte: holds, caches, scores of trust and counters say
// nothing of the neighbour.
func TestPrincipalsApart(t *testing.T) {
	const alice, bob = "Kq3alicealicexW9zLmN4vB7cYp2RtU8", "Zr5bobbobbobbhJ6gFdS1aQeXoI0kMnV"
	tokens := filepath.ToSlash(filepath.Join(t.TempDir(), "tokens.json"))
	err := os.WriteFile(tokens, []byte(`{"tokens":[{"principal":"alice","scopes":["mcp"],"token":"env:ALICE"},{"principal":"bob","scopes":["mcp"],"token":"env:BOB"}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(local.KeyVar, "env:PELLUCID_TEST_INSTALL_KEY")
	t.Setenv("PELLUCID_TEST_INSTALL_KEY", strings.Repeat("5e", 32))
	world := func(neighbour bool) []string {
		g := apptest.Start(t, fmt.Sprintf(`version: 1
auth: {tokens: "file:%s"}
http: {rate: 20, burst: 20}
evidence: {mode: required}
defaults: {hold: [hidden-tag], classify: [local]}
servers:
  one: {url: %s, headers: {Authorization: env:UPSTREAM}}
`, tokens, secretive(t)), map[string]string{"ALICE": alice, "BOB": bob, "UPSTREAM": plantedUpstream})
		if neighbour {
			beBusy(t, &transcript{t: t, base: g.Base, token: alice})
		}
		c := &transcript{t: t, base: g.Base, token: bob}
		c.begin()
		c.call(3, "hello")
		c.call(4, "hide this") // held: alice has asked the same, and hers was released
		c.call(5, "hide this")
		c.post(`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"no such tool","arguments":{}}}`)
		c.post(`{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///nothing"}}`)
		c.post(`{"jsonrpc":"2.0","id":8,"method":"tools/list"}`)
		c.post(`not JSON`)
		g.Stop()
		g.Done <- <-g.Done
		return c.lines
	}
	with, without := world(true), world(false)
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("what bob gets depends on alice:\n%s", diff)
	}
	if !strings.Contains(strings.Join(without, "\n"), "holds this result") {
		t.Errorf("nothing was held, so the test shows nothing:\n%s", strings.Join(without, "\n"))
	}
}

// beBusy has a principal do all that could leave a trace for others.
func beBusy(t *testing.T, c *transcript) {
	t.Helper()
	c.begin()
	c.call(3, "hello")
	held := heldIDs.FindString(c.call(4, "hide this"))
	if out, code := pellucid(t, "quarantine", "release", held); code != 0 {
		t.Fatalf("release %q: %s", held, out)
	}
	c.call(5, "hide that")
	refused := false
	for n := range 60 { // more than the allowance
		status, _ := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 100+n))
		refused = refused || status == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("the neighbour did not use up the allowance")
	}
	if bytes.Contains([]byte(c.call(999, "hide this")), []byte(plantedHeld)) {
		t.Log("the neighbour has taken the released result") // allowed, and it says nothing to others
	}
}
