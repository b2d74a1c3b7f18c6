// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/format"
)

// TestDial: a script answers, its tape answers the same again, and nothing else.
func TestDial(t *testing.T) {
	dir := t.TempDir()
	script, tape := filepath.Join(dir, "script"), filepath.Join(dir, "tape")
	if err := os.WriteFile(script, []byte(`{"version":"ccr-script/1","rules":[{"has":["lunch"],"answer":`+guardPaid+`}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	none := func(string) (string, error) { return "", errors.New("not set") }
	ask := func(m *AskedModel, text string) error {
		t.Helper()
		of := analysis.Context{Turn: -1}
		q, err := of.Read(strings.NewReader(text), "-", "")
		if err != nil {
			t.Fatal(err)
		}
		client, done, err := m.Dial(q.Assembly.Format, none)
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(q.Base(t.Context(), client), done())
	}
	if err := ask(&AskedModel{Oracle: "script:" + script, Tape: tape, API: "chat"}, guardRequest); err != nil {
		t.Fatal(err)
	}
	if err := ask(&AskedModel{Oracle: "replay:" + tape}, guardRequest); err != nil {
		t.Error(err)
	}
	if err := ask(&AskedModel{Oracle: "replay:" + tape}, strings.Replace(guardRequest, "12.50", "13", 1)); err == nil {
		t.Error("the tape answers what it was not asked")
	}
}

// TestDialRefuses: why a model cannot be asked, with the exit code.
func TestDialRefuses(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of   AskedModel
		code int
		want string
	}{
		{AskedModel{URL: "http://127.0.0.1:1", API: "messages"}, exit.Usage, "ccr: --api: the context is of another format"},
		{AskedModel{URL: "http://127.0.0.1:1", Key: "env:NONE"}, exit.Config, "--key: not set"},
		{AskedModel{Oracle: "script:absent/absent"}, 0, `ccr: oracle: open "absent/absent": `},
		{AskedModel{Oracle: "script:" + broken}, exit.Config, "ccr: oracle: script: "},
		{AskedModel{Oracle: "replay:" + broken}, exit.Config, "ccr: oracle: "},
		{AskedModel{URL: "http://127.0.0.1:1", Tape: "absent/absent"}, 0, `ccr: tape: "absent/absent": `},
		{AskedModel{URL: "nowhere"}, exit.Config, "ccr: "},
	} {
		_, _, err := c.of.Dial(format.Chat, func(string) (string, error) { return "", errors.New("not set") })
		if err == nil || codeOf(err) != c.code || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: code %d, %v", c.of, codeOf(err), err)
		}
	}
}

// TestReadCalibration: a file that cannot be read is a failure, one that is not a calibration is a
// bad configuration.
func TestReadCalibration(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good": `{"version":"ccr-calibration/1","trials":3}`, "bad": `{}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := ReadCalibration(filepath.Join(dir, "good")); err != nil || c.Trials != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	for name, code := range map[string]int{"bad": exit.Config, "absent": 0} {
		if _, err := ReadCalibration(filepath.Join(dir, name)); err == nil || codeOf(err) != code || !strings.HasPrefix(err.Error(), "ccr: calibration: ") {
			t.Errorf("%s: code %d, %v", name, codeOf(err), err)
		}
	}
}
