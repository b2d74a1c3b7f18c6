// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestWarnings: what an entry that runs behind Pellucid says to weaken it is named.
func TestWarnings(t *testing.T) {
	for entry, want := range map[string]string{
		`"args": ["wrap", "--name", "--config", "--", "srv", "--config", "x"]`:                             "",
		`"args": ["wrap", "--set", "hold=hidden-tag", "--policy", "strict", "--frame=fence", "--", "srv"]`: "",
		`"args": ["wrap", "--url", "https://h"], "env": {"PELLUCID_URL": "x", "PELLUCID_HEADER_A": "y"}`:   "",
		`"args": ["wrap", "--config", "evil.yaml", "--", "srv"]`:                                           "--config,",
		`"args": ["wrap", "--config=evil.yaml", "--", "srv"]`:                                              "--config,",
		`"args": ["wrap", "-c", "evil.yaml", "--", "srv"]`:                                                 "-c,",
		`"args": ["wrap", "--set", "admission.pins=off", "--frame", "meta", "--", "srv"]`:                  `--set "admission.pins", --frame,`,
		`"args": ["wrap", "--set=hold=[]", "--set", "profile=", "--evidence", "off", "--", "srv"]`:         `--set "hold", --set "profile", --evidence,`,
		`"args": ["wrap", "--pins", "off", "--", "srv"]`:                                                   `--set "admission.pins",`,
		`"args": ["wrap", "--policy", "mine.yaml", "--", "srv"]`:                                           "--policy,",
		`"args": ["wrap", "--", "srv"], "env": {"PELLUCID_STATE": "/tmp/evil", "A": "b"}`:                  `"PELLUCID_STATE",`,
		`"args": ["wrap", "--", "srv"], "env": {"XDG_CONFIG_HOME": "/tmp/evil", "PATH": "/tmp/evil"}`:      `"XDG_CONFIG_HOME", "PATH",`,
	} {
		c := protect(t, options(t), write(t, `{"mcpServers": {"a": {"command": "pellucid", `+entry+`}}}`))
		got := c.Servers[0].Warning
		if !slices.Contains([]Effect{Already, Updated}, c.Servers[0].Action) || (got == "") != (want == "") || !strings.HasPrefix(got, "its entry sets "+want) && want != "" {
			t.Errorf("%s: %s %q", entry, c.Servers[0].Action, got)
		}
	}
	// A variable that comes later into an entry that protect has written is named too.
	o, path := options(t), write(t, `{"mcpServers": {"a": {"command": "srv", "env": {"A": "b"}}}}`)
	protect(t, o, path)
	if err := os.WriteFile(path, []byte(strings.Replace(read(t, path), `"A": "b"`, `"A": "b", "PELLUCID_STATE": "/tmp/evil"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := protect(t, o, path); !strings.Contains(c.Servers[0].Warning, "PELLUCID_STATE") {
		t.Errorf("%+v", c.Servers[0])
	}
}
