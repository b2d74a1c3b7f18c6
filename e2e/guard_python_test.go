// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// A pythonAsk is a question to a model by an official Python SDK.
type pythonAsk struct {
	Base    string   `json:"base"`
	Key     string   `json:"key"`
	Kind    string   `json:"kind"`
	Stream  bool     `json:"stream"`
	Task    string   `json:"task"`
	Results []string `json:"results"`
}

// A pythonAnswer is what an SDK in Python has made of an answer.
type pythonAnswer struct {
	sdkAnswer
	Error, Message string
}

// importable reports whether the Python of the tests has modules. It asks Python once for each list.
func importable(modules string) bool {
	found, ok := imported.Load(modules)
	if !ok {
		found = exec.Command(filepath.Join("..", ".tools", "python", "bin", "python"), "-c", "import "+modules).Run() == nil
		imported.Store(modules, found)
	}
	return found.(bool)
}

var imported sync.Map // string → bool

// askPython asks by the official Python SDKs, one question after the other.
func askPython(t testing.TB, asks ...pythonAsk) (all []pythonAnswer) {
	t.Helper()
	programtest.Need(t)
	python := filepath.Join("..", ".tools", "python", "bin", "python")
	if !importable("openai, anthropic, google.genai") {
		t.Skip("the Python SDKs are not installed; `make python` installs them")
	}
	arg, _ := json.Marshal(asks)
	cmd := exec.CommandContext(soon(t), python, "-B", filepath.Join("python", "models.py"), string(arg))
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil || len(all) != len(asks) {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return all
}

// pythonKinds are the interfaces that the Python SDKs are asked by. Google's drops members of an
// answer that it does not know.
var pythonKinds = map[string]bool{"chat": true, "responses": true, "messages": true, "gemini": false, "vertex": false}

// TestGuardPython: the official SDKs of OpenAI, Anthropic and Google, in Python and unmodified,
// with `pellucid guard` between them and a scripted model that obeys whatever it reads. A program
// reads from a member of the answer what the guard has done.
func TestGuardPython(t *testing.T) {
	t.Parallel()
	base := newInstall(t).serveGuard(t, obedientModel(false, nil))
	for _, tt := range []struct{ name, task, result, pays, text, act string }{
		{"the user's", "Please pay bob his 100.", "Bob is well.", "bob", "", ""},
		{"hijack", "Sum up my mail.", guardAttack, "", "Nothing of note.", "repaired"},
		{"nothing", "Sum up my mail.", "Nothing new.", "", "Nothing of note.", ""},
	} {
		var asks []pythonAsk
		for kind := range pythonKinds {
			for _, stream := range []bool{false, true} {
				asks = append(asks, pythonAsk{base, "sk-e2e", kind, stream, tt.task, []string{tt.result}})
			}
		}
		for i, a := range askPython(t, asks...) {
			name := fmt.Sprintf("%s/%s/%v", tt.name, asks[i].Kind, asks[i].Stream)
			if a.Error != "" || a.recipients() != tt.pays || !strings.HasSuffix(a.Text, tt.text) || (a.Text == "") != (tt.text == "") {
				t.Errorf("%s: pays %q, says %q, %s %s", name, a.recipients(), a.Text, a.Error, a.Message)
			}
			if want := tt.act != "" && pythonKinds[asks[i].Kind]; want != (a.Label != nil) ||
				want && (a.Label.Act != tt.act || !strings.Contains(a.Text, a.Label.ID) || len(a.Label.Verdicts) != 1 || a.Label.Verdicts[0] != "not-asked-for") {
				t.Errorf("%s: label %+v", name, a.Label)
			}
		}
	}
}

// TestGuardPythonWaits: the SDKs pass over what the guard sends while a call is held. Google's
// fails at a comment.
func TestGuardPythonWaits(t *testing.T) {
	t.Parallel()
	var slow atomic.Int64
	slow.Store(int64(6 * time.Second)) // longer than the guard is silent
	base := newInstall(t).serveGuard(t, obedientModel(true, &slow))
	var wait sync.WaitGroup
	for kind := range pythonKinds {
		wait.Go(func() {
			a := askPython(t, pythonAsk{base, "sk-e2e", kind, true, "Sum up my mail.", []string{guardAttack}})[0]
			if a.recipients() != "" || a.Error != "" || !strings.Contains(a.Text, "withheld") {
				t.Errorf("%s: %+v", kind, a)
			}
		})
	}
	wait.Wait()
}
