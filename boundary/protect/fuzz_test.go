// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// fuzzEditor checks one syntax: what is written is still of it, means the same but for the
// entries, is left alone by a second run, and is restored byte for byte.
func fuzzEditor(t *testing.T, src []byte, f Format, valid func([]byte) bool) {
	o := Options{Binary: binary, Ask: open}
	never := func([]string, string) bool { return false }
	after, servers, err := o.rewrite(src, f, never)
	if err != nil {
		return
	}
	if valid(src) && !valid(after) {
		t.Fatalf("%q became %q", src, after)
	}
	again, more, err := o.rewrite(after, f, never)
	if err != nil || !bytes.Equal(again, after) || len(more) != len(servers) {
		t.Fatalf("%q became %q: %v", after, again, err)
	}
	r := newRecord("", f.Syntax, src, servers)
	back, restored, err := r.restore(after, false)
	if err != nil || !bytes.Equal(back, src) {
		t.Fatalf("%q, as %q, came back as %q: %v", src, after, back, err)
	}
	for _, s := range restored {
		if s.Action != Restored {
			t.Fatalf("%q, as %q: %q is %s", src, after, s.Name, s.Action)
		}
	}
	c := Change{Servers: servers, file: &file{src: src}, after: after, syntax: f.Syntax}
	c.diff()
}

func FuzzProtectJSON(f *testing.F) {
	for _, tt := range entries {
		f.Add([]byte(`{"mcpServers": {"s": ` + tt.in + `}}`))
	}
	f.Add([]byte(two))
	for _, x := range fixtures {
		if x.syntax() == JSON {
			f.Add([]byte(x.before))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, format := range []Format{Generic.of("x.json", src), lenient} {
			fuzzEditor(t, src, format, func(b []byte) bool {
				_, err := parse(b, JSON, true)
				return err == nil
			})
		}
	})
}

func FuzzProtectTOML(f *testing.F) {
	for _, x := range fixtures {
		if x.syntax() == TOML {
			f.Add([]byte(x.before))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		fuzzEditor(t, src, tomlServers, func(b []byte) bool {
			var v map[string]any
			return toml.Unmarshal(b, &v) == nil
		})
	})
}

func FuzzProtectYAML(f *testing.F) {
	for _, x := range fixtures {
		if x.syntax() == YAML {
			f.Add([]byte(x.before))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		fuzzEditor(t, src, Generic.of("x.yaml", nil), func(b []byte) bool {
			var v any
			return yaml.Unmarshal(b, &v) == nil
		})
	})
}

// FuzzRestore edits a protected file at will: undo of it fails, or leaves a file of the syntax, in
// which every server that it calls restored is there.
func FuzzRestore(f *testing.F) {
	o := Options{Binary: binary, Ask: open}
	never := func([]string, string) bool { return false }
	records := map[Syntax]*record{}
	formats := map[Syntax]Format{JSON: generic, TOML: tomlServers, YAML: Generic.of("x.yaml", nil)}
	for syntax, src := range map[Syntax]string{JSON: two, TOML: twoTOML, YAML: twoYAML} {
		after, servers, err := o.rewrite([]byte(src), formats[syntax], never)
		if err != nil {
			f.Fatal(err)
		}
		records[syntax] = newRecord("", syntax, []byte(src), servers)
		f.Add(string(syntax), after)
	}
	f.Fuzz(func(t *testing.T, syntax string, src []byte) {
		r := records[Syntax(syntax)]
		if r == nil {
			return
		}
		for _, force := range []bool{false, true} {
			after, servers, err := r.restore(src, force)
			if err != nil {
				continue
			}
			u, err := parse(after, r.Syntax, true)
			if err != nil {
				t.Fatalf("%q became %q: %v", src, after, err)
			}
			for _, s := range servers {
				if s.Action == Restored && u.find(s.At, s.Name) == nil {
					t.Fatalf("%q became %q: no %s", src, after, s.Name)
				}
			}
		}
	})
}
