// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// TestWithoutFormer: every flag that wrap once had becomes --set, and what is no such flag stays.
func TestWithoutFormer(t *testing.T) {
	for was, want := range map[string]string{
		"wrap --name a --hold x,y --env T":                          "wrap --name a --set hold=x,y --env T",
		"wrap --hold=x --max-chars=9 --no-wide":                     "wrap --set hold=x --set max_chars=9 --set admission.wide=false",
		"wrap --reviewer age1a --quarantine --reviewer age1b":       "wrap --set quarantine.recipients=age1a,age1b --evidence best-effort",
		"wrap --review-model m --review-url http://h":               "wrap --set review.model=m --set review.provider=openai-chat --set review.url=http://h",
		"wrap --review-model m --review-api google":                 "wrap --set review.model=m --set review.provider=google",
		"wrap --db x.db --ca c.pem --llm-search --classify":         "wrap --set store=file:x.db --set tls.ca=file:c.pem --set llm.model= --set classify=local",
		"wrap --db postgres://h/d":                                  "wrap --set store=postgres://h/d",
		"wrap --dangerously-allow-sampling --log-format json --pin": "wrap --set dangerously_allow_sampling=true --set telemetry.log_format=json --set pin=",
		"wrap --name --hold":                                        "wrap --name --hold",
		"wrap --name=a --url u":                                     "wrap --name=a --url u",
		"wrap --pins off -- srv --pins off":                         "wrap --set admission.pins=off -- srv --pins off",
		"wrap --name a srv --pins off":                              "wrap --name a srv --pins off",
	} {
		now, said := WithoutFormer(strings.Fields(was))
		if got := strings.Join(now, " "); got != want || (len(said) > 0) != (was != want) {
			t.Errorf("%s:\n got %s, %v\nwant %s", was, got, said, want)
		}
	}
	for _, f := range formers {
		if _, said := WithoutFormer([]string{"wrap", f.flag + "=x"}); len(said) != 1 || !strings.HasPrefix(said[0], f.flag+" is now --") || takesValue(f.flag) {
			t.Errorf("%s: %s", f.flag, said)
		}
	}
}

// TestFormerEntries: an entry of ours with former flags is written with --set, whether protect or a
// person has written it, in every syntax, and undo restores what was before.
func TestFormerEntries(t *testing.T) {
	for name, x := range map[string]struct{ src, want string }{
		"a.json": {`{"mcpServers": {"a": {"command": "pellucid", "args": ["wrap", "--hold", "x", "--", "srv", "--hold"]}}}`,
			`{"mcpServers": {"a": {"command": "pellucid", "args": ["wrap", "--set", "hold=x", "--", "srv", "--hold"]}}}`},
		"a.toml": {"[mcp_servers.a]\ncommand = 'pellucid'\nargs = ['wrap', '--pins', 'off', '--', 'srv'] # mine\n",
			"[mcp_servers.a]\ncommand = 'pellucid'\nargs = [\"wrap\", \"--set\", \"admission.pins=off\", '--', 'srv'] # mine\n"},
		"a.yaml": {"mcpServers:\n  - name: a\n    command: pellucid\n    args:\n      - wrap\n      - --pins\n      - audit\n      - --\n      - srv\n",
			"mcpServers:\n  - name: a\n    command: pellucid\n    args:\n      - \"wrap\"\n      - \"--set\"\n      - \"admission.pins=audit\"\n      - --\n      - srv\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, []byte(x.src), 0o600); err != nil {
				t.Fatal(err)
			}
			o := options(t)
			job, err := o.Run([]Target{{Path: path, Format: Generic}}, Job{DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			c := protect(t, o, path)
			if _, err := o.readRecord(path); err == nil {
				t.Error("there is a record, which undo could restore")
			}
			var says strings.Builder
			if job.DryRun = false; job.Write(&says, terminal.Palette{}) != nil || strings.Contains(says.String(), "--undo --file") || strings.Contains(says.String(), "back-up") {
				t.Errorf("an undo is announced that there is not:\n%s", says.String())
			}
			if got := read(t, path); got != x.want || c.Count(Updated) != 1 || c.Servers[0].Why != whyUpdated {
				t.Errorf("%+v\n got %s\nwant %s", c.Servers, got, x.want)
			}
			if again := protect(t, o, path); again.Count(Already) != 1 || again.changes() {
				t.Errorf("again: %+v", again.Servers)
			}
		})
	}
}

// TestFormerDatabase: what wrap would refuse is not written; the entry stays, and why is said.
func TestFormerDatabase(t *testing.T) {
	for db, changes := range map[string]bool{
		"postgres://u:pw@h/d": false, "postgresql://h/d?password=x": false, "postgres://u:%zz@h/d": false, "postgres://u@h/d": true, "/var/a.db": true,
	} {
		src := `{"mcpServers": {"a": {"command": "pellucid", "args": ["wrap", "--db", "` + db + `", "--", "srv"]}}}`
		path := write(t, src)
		c := protect(t, options(t), path)
		if got := read(t, path); (got != src) != changes || !changes && (c.Count(Skipped) != 1 || c.Servers[0].Why != whyDatabase) {
			t.Errorf("%s: %+v, %s", db, c.Servers, got)
		}
	}
}

// TestFormerRecords: what an earlier release has written is updated, with what stood before it.
func TestFormerRecords(t *testing.T) {
	o := options(t)
	const original = `{"mcpServers": {"a": {"command": "srv"}, "b": {"command": "srv"}}}`
	path := write(t, original)
	protect(t, o, path)
	earlier := strings.ReplaceAll(read(t, path), `"--name", "a"`, `"--name", "a", "--hold", "x"`) // as the earlier release wrote it
	if err := os.WriteFile(path, []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	rec, err := o.readRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range rec.Entries {
		rec.Entries[i].After = []byte(strings.ReplaceAll(string(e.After), `"--name", "a"`, `"--name", "a", "--hold", "x"`))
	}
	rec.Flags.Hold = "x"
	if rec.backup, err = o.readBackup(path); err != nil {
		t.Fatal(err)
	}
	if _, err := o.writeRecord(rec); err != nil {
		t.Fatal(err)
	}
	c := protect(t, o, path)
	if got := read(t, path); c.Count(Updated) != 1 || strings.Contains(got, "--hold") || !strings.Contains(got, `"--name", "a", "--set", "hold=x"`) {
		t.Errorf("%+v\n%s", c.Servers, got)
	}
	if i := slices.IndexFunc(c.Servers, func(s Server) bool { return s.Name == "a" }); c.Servers[i].Action != Updated {
		t.Errorf("%+v", c.Servers)
	}
	if _, err := o.Run([]Target{{Path: path, Format: Generic}}, Job{Undo: true}); err != nil || read(t, path) != original {
		t.Errorf("undo: %v, %s", err, read(t, path))
	}
}
