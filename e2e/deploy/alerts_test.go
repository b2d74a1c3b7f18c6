// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// promtool checks alerts by the tests of alerts_test.yaml.
func promtool(t *testing.T, alerts string) (string, error) {
	t.Helper()
	program := programtest.Find(t, "promtool")
	dir := t.TempDir()
	for name, content := range map[string]string{"alerts.yaml": alerts, "alerts_test.yaml": string(read(t, "alerts_test.yaml"))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(program, "check", "rules", filepath.Join(dir, "alerts.yaml")).CombinedOutput()
	if err != nil {
		return string(out), err
	}
	out, err = exec.Command(program, "test", "rules", filepath.Join(dir, "alerts_test.yaml")).CombinedOutput()
	return string(out), err
}

// TestAlerts: each alert fires where it should and not where it should not, every alert has a test,
// and the tests notice an alert whose bound is another.
func TestAlerts(t *testing.T) {
	alerts, tests := string(read(t, chart, "files", "alerts.yaml")), string(read(t, "alerts_test.yaml"))
	if out, err := promtool(t, alerts); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	n := 0
	for line := range strings.Lines(alerts) {
		name, is := strings.CutPrefix(strings.TrimSpace(line), "- alert: ")
		if !is {
			continue
		}
		n++
		if strings.Count(tests, "alertname: "+name+"\n")+strings.Count(tests, "alertname: "+name+",") < 1 {
			t.Errorf("%s has no test", name)
		}
	}
	if n < 8 {
		t.Errorf("%d alerts", n)
	}
	for _, change := range [][2]string{
		{"pellucid_ledger_lost[10m])) > 0", "pellucid_ledger_lost[10m])) > 99"},
		{"(pellucid_held_items)[4h:5m]", "(pellucid_held_items)[9h:5m]"},
		{`state=~"down|rejected"`, `state="rejected"`},
		{`verdict="not_judged"`, `verdict="clean"`},
	} {
		changed := strings.Replace(alerts, change[0], change[1], 1)
		if changed == alerts {
			t.Fatalf("no alert has %s", change[0])
		}
		if _, err := promtool(t, changed); err == nil {
			t.Errorf("no test notices that %s has become %s", change[0], change[1])
		}
	}
}
