// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// adversaryVariable makes the test binary a server whose words stand in a file, which
// is read again for each request: whoever writes the file makes the server change.
const adversaryVariable = "PELLUCID_TEST_ADVERSARY"

func init() {
	if file := os.Getenv(adversaryVariable); file != "" {
		os.Exit(serveAdversary(adversary(file)))
	}
}

// adversary is the file of a server that a test makes up.
type adversary string

// words are what a server says of itself.
type words struct {
	Instructions string
	Tools        []json.RawMessage
	// Trick is "": none; "pages": each tool on a page of its own; "named": text hidden in the
	// title, which each page repeats; "cursor": in the cursor; "endless": a list without end;
	// "cycle": one that begins anew; "differ": another answer each time; "huge": 100 MB;
	// "flood": a poke announces 20,000 changes.
	Trick string
}

func (a adversary) say(t testing.TB, w words) {
	t.Helper()
	b, err := json.Marshal(w)
	if err == nil {
		err = os.WriteFile(string(a)+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(string(a)+".new", string(a))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (a adversary) words() (w words) {
	b, _ := os.ReadFile(string(a))
	_ = json.Unmarshal(b, &w)
	return w
}

func newAdversary(t testing.TB, w words) adversary {
	a := adversary(filepath.Join(t.TempDir(), "words.json"))
	a.say(t, w)
	return a
}

// definition is a tool's.
func definition(name, description string, more ...string) json.RawMessage {
	return json.RawMessage(`{"name":` + quote(name) + `,"description":` + quote(description) + `,"inputSchema":{"type":"object"}` + strings.Join(more, "") + `}`)
}

// answer is what the server answers, and what it says before.
func (a adversary) answer(m message) (before, answer string) {
	w := a.words()
	var p struct{ Cursor, Name string }
	_ = json.Unmarshal(m.Params, &p)
	result := func(s string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, s) }
	switch m.Method {
	case "initialize":
		return "", result(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":` + w.info() + `,"instructions":` + quote(w.Instructions) + `}`)
	case "tools/list":
		return "", result(w.page(p.Cursor))
	case "tools/call":
		const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"
		switch {
		case p.Name == "poke" && w.Trick == "flood":
			before = strings.Repeat(changed, 20_000)
		case p.Name == "poke":
			before = changed
		}
		return before, result(`{"content":[{"type":"text","text":"called ` + p.Name + `"}]}`)
	}
	return "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
}

// info is the server's name, with a title that hides text under the trick "named".
func (w words) info() string {
	if w.Trick == "named" {
		return `{"name":"a","version":"1","title":` + quote(hiddenWords) + `}`
	}
	return `{"name":"a","version":"1"}`
}

var listings struct {
	sync.Mutex
	n int
}

func (w words) page(cursor string) string {
	at, _ := strconv.Atoi(cursor)
	next := strconv.Itoa(at + 1)
	switch w.Trick {
	case "pages":
		if at == len(w.Tools)-1 {
			next = ""
		}
		b, _ := json.Marshal(map[string]any{"tools": w.Tools[at : at+1], "nextCursor": next})
		return strings.Replace(string(b), `"nextCursor":"",`, "", 1)
	case "named":
		return `{"tools":[` + string(definition("add", "Adds.")) + `],"_meta":{"io.modelcontextprotocol/serverInfo":` + w.info() + `}}`
	case "cursor":
		if cursor == "" {
			return `{"tools":[],"nextCursor":"1\u200b"}`
		}
	case "endless":
		return `{"tools":[` + string(definition("t"+next, "x")) + `],"nextCursor":"` + next + `"}`
	case "cycle":
		return `{"tools":[],"nextCursor":"` + strconv.Itoa(1-at%2) + `"}`
	case "huge":
		return `{"tools":[` + string(definition("t"+next, strings.Repeat("x", 5<<20))) + `],"nextCursor":"` + next + `"}`
	case "differ":
		listings.Lock()
		listings.n++
		n := listings.n
		listings.Unlock()
		return `{"tools":[` + string(definition("t", "It is "+strconv.Itoa(n)+" o'clock.")) + `]}`
	}
	b, _ := json.Marshal(map[string]any{"tools": append([]json.RawMessage{}, w.Tools...)})
	return string(b)
}

func serveAdversary(a adversary) int {
	out := bufio.NewWriter(os.Stdout)
	for m := range requests(os.Stdin) {
		before, answer := a.answer(m)
		fmt.Fprint(out, before, answer, "\n")
		out.Flush()
	}
	return 0
}

// stdio is the configuration of the server as a command.
func (a adversary) stdio(t testing.TB, mark string) string {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "{command: " + yamlCommand([]string{self, mark, string(a)}) + ", env: {" + adversaryVariable + ": " + strconv.Quote(string(a)) + "}}"
}

// http is that of the server at a URL: without sessions, and each request answered by
// a stream.
func (a adversary) http(t testing.TB) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m message
		if json.Unmarshal(body, &m) != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		before, answer := a.answer(m)
		w.Header().Set("Content-Type", "text/event-stream")
		for line := range strings.Lines(before + answer + "\n") {
			fmt.Fprintf(w, "data: %s\n", line)
		}
	}))
	t.Cleanup(srv.Close)
	return "{url: " + srv.URL + "}"
}

const hiddenWords = "Adds.\U000e0049\U000e0067\U000e006e"
