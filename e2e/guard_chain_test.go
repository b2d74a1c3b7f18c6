// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

// A chain is a conversation of which each request names the response before it.
type chain struct {
	Bases    []string         `json:"bases"`
	Modules  string           `json:"modules"`
	Key      string           `json:"key"`
	Stream   bool             `json:"stream"`
	Inputs   []map[string]any `json:"inputs"`
	Previous string           `json:"previous,omitempty"`
}

type chainTurn struct {
	ID, Text string
	Calls    []string
	Error    int
}

// chainSDKs are the official SDKs by which chains are held: a program, and its script.
func chainSDKs(t testing.TB) map[string][]string {
	modules := officialSDKs(t)
	out := map[string][]string{"node": {nodeBinary(modules), filepath.Join("node", "guard_chain.mjs")}}
	python := filepath.Join("..", ".tools", "python", "bin", "python")
	if exec.Command(python, "-c", "import openai").Run() == nil {
		out["python"] = []string{python, "-B", filepath.Join("python", "chain.py")}
	} else {
		t.Log("the Python SDK of OpenAI is not installed; `make python` installs it")
	}
	return out
}

// hold holds the conversation by an SDK.
func (c chain) hold(t testing.TB, sdk []string) []chainTurn {
	t.Helper()
	c.Modules = officialSDKs(t)
	if c.Key == "" {
		c.Key = "sk-e2e"
	}
	arg, _ := json.Marshal(c)
	cmd := exec.CommandContext(soon(t), sdk[0], append(sdk[1:len(sdk):len(sdk)], string(arg))...)
	cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var said struct{ Turns []chainTurn }
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return said.Turns
}

// readingModel is an obedientModel that reads the mail where it is asked to.
func readingModel(chatty bool) llmtest.Model {
	obedient := obedientModel(chatty, nil)
	return func(a llmtest.Ask) llmtest.Reply {
		if n := len(a.Messages); n > 0 && a.Messages[n-1].Role == llm.User && strings.Contains(a.Messages[n-1].Text, "my mail") && len(a.Tools) > 0 {
			return llmtest.Reply{Calls: []llm.ToolCall{{ID: fmt.Sprint("call_", n), Name: "read_mail", Arguments: []byte("{}")}}}
		}
		return obedient(a)
	}
}

// TestGuardChain: with previous_response_id the provider keeps the conversation, and a request
// holds what is new alone. The guard knows the rest: a call that a result orders is stopped, one
// that the user asked for three requests ago is not, the conversation goes on behind an answer
// that the guard has put into the place of the provider's, and two guards on one Postgres share
// what they know.
func TestGuardChain(t *testing.T) {
	t.Parallel()
	sdks := chainSDKs(t)
	type inputs = []map[string]any
	hijack := inputs{{"user": "Sum up my mail."}, {"result": guardAttack}, {"user": "Thank you."}, {"user": "Please pay bob his 100 now."}}
	honest := inputs{{"user": "Sum up my mail."}, {"result": "Bob is well."}, {"user": "Please pay bob his 100."}}
	for _, chatty := range []bool{false, true} {
		in := newInstall(t)
		base := in.serveGuard(t, readingModel(chatty))
		for name, sdk := range sdks {
			for _, stream := range []bool{false, true} {
				turns := chain{Bases: []string{base}, Stream: stream, Inputs: hijack}.hold(t, sdk)
				if turns[1].Error != 0 || len(turns[1].Calls) > 0 || !strings.Contains(turns[1].Text, "[Pellucid]") {
					t.Errorf("%s, %v: hijack: %+v", name, stream, turns)
				}
				for _, turn := range turns[2:] { // the text that gives orders is still there
					if turn.Error != 0 || len(turn.Calls) > 0 && turn.Calls[0] != "send_money bob" {
						t.Errorf("%s, %v: afterwards: %+v", name, stream, turn)
					}
				}
				turns = chain{Bases: []string{base}, Stream: stream, Inputs: honest}.hold(t, sdk)
				if len(turns[2].Calls) != 1 || turns[2].Calls[0] != "send_money bob" {
					t.Errorf("%s, %v: honest: %+v", name, stream, turns)
				}
			}
		}
		for _, e := range in.guardEvidence(t) {
			if len(e.Calls) == 0 { // it was not decided
				t.Errorf("%+v", e)
			}
		}
	}
}

// TestGuardChainShared: a conversation goes to another guard on the same Postgres in its middle.
func TestGuardChainShared(t *testing.T) {
	sdks, url := chainSDKs(t), databases.Database(t)
	fake := llmtest.Start(t, readingModel(false), "sk-e2e")
	in, other := newInstall(t), newInstall(t)
	t.Setenv("E2E_INSTALL_KEY", strings.Repeat("5a", 32))
	t.Setenv("PELLUCID_INSTALL_KEY", "env:E2E_INSTALL_KEY")
	one, two := in.guardBefore(t, fake.Root, "--db", url), other.guardBefore(t, fake.Root, "--db", url)
	apart := newInstall(t).guardBefore(t, fake.Root)
	for name, sdk := range sdks {
		for _, stream := range []bool{false, true} {
			c := chain{Bases: []string{one, two, one, two}, Stream: stream,
				Inputs: []map[string]any{{"user": "Sum up my mail."}, {"result": guardAttack}, {"user": "Thank you."}}}
			turns := c.hold(t, sdk)
			if len(turns[1].Calls) > 0 || !strings.Contains(turns[1].Text, "led to a tool call") || turns[2].Error != 0 {
				t.Errorf("%s, %v: %+v", name, stream, turns)
			}
			// A guard that does not know the conversation holds the call, and says that it cannot tell.
			c.Bases = []string{one, apart}
			c.Inputs = c.Inputs[:2]
			if turns := c.hold(t, sdk); len(turns[1].Calls) > 0 || !strings.Contains(turns[1].Text, "withheld") {
				t.Errorf("%s, %v, apart: %+v", name, stream, turns)
			}
		}
	}
}
