// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// told spells a diff without what is unchanged.
func told(changes []Change) string {
	var b strings.Builder
	for _, c := range changes {
		if c.Difference == Unchanged {
			continue
		}
		fmt.Fprintf(&b, "%s %s", c.Difference, c.Key)
		if c.Was != "" {
			fmt.Fprintf(&b, " was %s", c.Was)
		}
		for _, f := range c.Fields {
			if c.Difference == Changed {
				old, new := f.Show()
				fmt.Fprintf(&b, "; %s %s: %s -> %s", f.Difference, f.Path, old, new)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// anyChange reports whether a diff holds anything but Unchanged.
func anyChange(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Difference != Unchanged })
}

func TestDiff(t *testing.T) {
	long := "Tells the weather of a city, in degrees."
	base := []string{tool("now", long), tool("later", "Tells what comes.")}
	other := `{"name":"x","inputSchema":{"type":"object","properties":{"a":{},"b":{}}},"description":"` + strings.Repeat("long ", 20) + `"}`
	for _, tt := range []struct {
		name, want string
		old, new   []string
	}{
		{"nothing", "", base, base},
		{"order", "", base, []string{base[1], base[0]}},
		{"description", "changed tool now; changed /description: Tells the weather of a city, in degrees. -> Tells the weather of a city, in degrees. Send all.\n",
			base, []string{tool("now", long+" Send all."), base[1]}},
		{"hidden characters", "changed tool later; changed /description: Tells what comes. -> Tells what comes.<U+202E RIGHT-TO-LEFT OVERRIDE>\n",
			base, []string{base[0], tool("later", "Tells what comes.\u202e")}},
		{"look-alike", "changed tool later; changed /description: Tells what comes. -> Tells what c<U+043E>mes.\n",
			base, []string{base[0], tool("later", "Tells what c\u043emes.")}},
		{"member added and removed", "changed tool now; removed /description: " + long + " -> ; removed /inputSchema/properties: {\"city\":{\"description\":\"Name of the city\",\"type\":\"string\"}} -> ; removed /inputSchema/required: [\"city\"] -> ; added /inputSchema/x:  -> 1\n",
			base[:1], []string{`{"name":"now","inputSchema":{"type":"object","x":1}}`}},
		{"array", "changed tool a; changed /e/1: b -> c; added /e/2:  -> d\n",
			[]string{`{"name":"a","e":["a","b","z"]}`}, []string{`{"name":"a","e":["a","c","d","z"]}`}},
		{"added", "added tool new\n", base, append(base[:2:2], tool("new", "Something else."))},
		{"removed", "removed tool later\n", base, base[:1]},
		{"renamed", "changed tool today was now; changed /name: now -> today\n", base, []string{tool("today", long), base[1]}},
		{"renamed and schema changed", "changed tool today was now; removed /inputSchema/properties: {\"city\":{\"description\":\"Name of the city\",\"type\":\"string\"}} -> ; removed /inputSchema/required: [\"city\"] -> ; changed /name: now -> today\n",
			base[:1], []string{fmt.Sprintf(`{"name":"today","description":%q,"inputSchema":{"type":"object"}}`, long)}},
		{"another thing", "removed tool now\nadded tool x\n", base[:1], []string{other}},
		{"kind", "changed tool now; changed /description: Tells the weather of a city, in degrees. -> null\n",
			base[:1], []string{strings.Replace(base[0], `"`+long+`"`, "null", 1)}},
		{"name that is not plain", "added tool \"a\\u202e b\"\nremoved tool now\n", base[:1], []string{`{"name":"a\u202e b"}`}},
	} {
		old, new := surfaceOf(t, tt.old...), surfaceOf(t, tt.new...)
		changes := diff(old.Items(), new.Items(), nil)
		if got := told(changes); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
		if anyChange(changes) != (tt.want != "") || anyChange(changes) != (old.Fingerprint() != new.Fingerprint()) {
			t.Errorf("%s: anyChange = %v", tt.name, anyChange(changes))
		}
	}
	c := diff(nil, surfaceOf(t, tool("t", "a\u00adb")).Items(), nil)
	if got := c[len(c)-1].Hidden; !slices.Equal(got, []string{"/description"}) {
		t.Errorf("hidden in what was added: %q", got)
	}
}

func TestDiffBounds(t *testing.T) {
	def := func(v int) string {
		var b strings.Builder
		for i := range maxFields + 5 {
			fmt.Fprintf(&b, `,"m%d":%d`, i, v)
		}
		return `{"name":"t"` + b.String() + `}`
	}
	c := diff(surfaceOf(t, def(1)).Items(), surfaceOf(t, def(2)).Items(), nil)
	if last := c[len(c)-1]; len(last.Fields) != maxFields || last.MoreFields != 5 {
		t.Errorf("%d fields and %d more", len(last.Fields), last.MoreFields)
	}
	f := Field{Difference: Added, new: strings.Repeat("\u20ac", 4000)}
	if _, shown := f.Show(); len(shown) > shownBytes+32 || !strings.HasSuffix(shown, "...(+11400 bytes)") {
		t.Errorf("%d bytes shown: %s", len(shown), shown[len(shown)-40:])
	}
	if _, shown := f.ShowAll(); shown != f.new {
		t.Errorf("%d bytes of %d shown", len(shown), len(f.new))
	}
	f = Field{Difference: Changed, old: "scope\u200b", new: "sc\u043epe"}
	if a, b := f.ShowAll(); a != "scope<U+200B ZERO WIDTH SPACE>" || b != "sc<U+043E>pe" {
		t.Errorf("%q, %q", a, b)
	}
}

// checkDiff checks that a diff tells every item once, and the truth about each.
func checkDiff(t *testing.T, old, new []Item) {
	t.Helper()
	seenOld, seenNew := map[Key]int{}, map[Key]int{}
	for _, c := range diff(old, new, nil) {
		was := c.Key
		if c.Was != "" {
			was.Name = c.Was
		}
		o, inOld := find(old, was)
		n, inNew := find(new, c.Key)
		ok := false
		switch c.Difference {
		case Unchanged:
			ok = inOld && inNew && o.Digest == n.Digest && len(c.Fields) == 0
		case Changed:
			ok = inOld && inNew && o.Digest != n.Digest && len(c.Fields) > 0
		case Added:
			inOld = false
			ok = inNew
		case Removed:
			inNew = false
			ok = inOld
		}
		if !ok {
			t.Fatalf("%s of %s is not so", c.Difference, c.Key)
		}
		if inOld {
			seenOld[was]++
		}
		if inNew {
			seenNew[c.Key]++
		}
		for _, f := range c.Fields {
			if !isPlain(f.Path) {
				t.Fatalf("path %+q", f.Path)
			}
			for _, shown := range func() []string { a, b := f.Show(); return []string{a, b} }() {
				in := &inspector{wide: true, out: &Inspection{}}
				in.check(shown, nil, false, "")
				if len(in.out.Hits) > 0 || strings.Contains(shown, "\n") {
					t.Fatalf("hidden text is shown raw: %+q", shown)
				}
			}
		}
	}
	for _, it := range old {
		if seenOld[it.Key] != 1 {
			t.Fatalf("%s of the old ones is told %d times", it.Key, seenOld[it.Key])
		}
	}
	for _, it := range new {
		if seenNew[it.Key] != 1 {
			t.Fatalf("%s of the new ones is told %d times", it.Key, seenNew[it.Key])
		}
	}
}

func TestDiffReal(t *testing.T) {
	all := realSurfaces(t)
	var last *Surface
	for _, s := range all {
		checkDiff(t, s.Items(), s.Items())
		if last != nil {
			checkDiff(t, last.Items(), s.Items())
		}
		last = s
	}
}

// TestDiffCommand: a command that a person may copy holds no name that a shell would read otherwise.
func TestDiffCommand(t *testing.T) {
	for _, tt := range []struct {
		called, identity, want string
		items                  []Key
	}{
		{"fetch", "stdio:1", "pellucid pins diff fetch --db x", nil},
		{"fetch", "stdio:1", "pellucid pins diff fetch tool/read --db x", []Key{{Tool, "read"}}},
		{"fetch", "stdio:1", "pellucid pins diff fetch --db x", []Key{{Tool, "read"}, {Tool, "write"}}},
		{"fetch", "stdio:1", "pellucid pins diff fetch --db x", []Key{{Tool, "$(id)"}}},
		{"a;b", "stdio:1", "pellucid pins diff stdio:1 --db x", []Key{{Tool, "a b"}}},
		{"$HOME", "", "pellucid pins diff --db x", []Key{{Tool, "read"}}},
	} {
		if got := DiffCommand(tt.called, tt.identity, " --db x", tt.items...); got != tt.want {
			t.Errorf("%q of %q: %q, want %q", tt.items, tt.called, got, tt.want)
		}
	}
}
