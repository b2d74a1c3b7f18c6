// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page shows the lists that run, and its worked example is what happens.
func TestSpec(t *testing.T) {
	b, err := os.ReadFile("../../docs/spec/scrub.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	if !strings.Contains(page, "\nVersion "+Version+".") || !strings.Contains(page, "Unicode "+UnicodeVersion) {
		t.Error("the page is of another version")
	}
	if !strings.Contains(page, stepLists()) {
		t.Errorf("the page lacks:\n%s", stepLists())
	}
	for c := Bidi; c <= Noncharacter; c++ {
		if !strings.Contains(page, "`"+string(c.Code())+"`") {
			t.Errorf("the page lacks the class %s", c.Code())
		}
	}
	for _, x := range []struct {
		policy  Policy
		in, out string
		size    int
	}{
		{Policy{}, "A\u200b<|im_\u202estart|>\uff21e\u0301.", "AA\u00e9.", 26},
		{Policy{Profile: Veritas}, "2\u00bd", "21/2", 3},
	} {
		out, r := clean(t, compile(t, x.policy), x.in)
		rows := ""
		for _, e := range r.Edits {
			rows += fmt.Sprintf("| `%s` | %d | %d | %d | %d |\n", e.Class.Code(), e.Start, e.End, e.Out, e.OutEnd)
		}
		if out != x.out || len(x.in) != x.size || !strings.Contains(page, "|---|---|---|---|---|\n"+rows) {
			t.Errorf("the worked example is %+q (%d bytes), %+q\n%s", x.in, len(x.in), out, rows)
		}
	}
}

// stepLists are the steps of each profile, and what each step does.
func stepLists() string {
	var lists, table strings.Builder
	seen := map[string]bool{}
	for p := range numProfiles {
		var names []string
		for _, s := range Steps(p) {
			row := fmt.Sprintf("| %s | %s | %s |\n", s.Name, s.Clause, s.Does)
			if names = append(names, s.Name); !seen[row] {
				seen[row] = true
				table.WriteString(row)
			}
		}
		fmt.Fprintf(&lists, "* `%s`: %s\n", p, strings.Join(names, ", "))
	}
	return lists.String() + "\n| step | clause | what it does |\n|---|---|---|\n" + table.String()
}

// TestTokenTable: the table that the page names is whole, and whoever asks for it gets a copy.
//
// spec: scrub/4.1
func TestTokenTable(t *testing.T) {
	table := Tokens()
	if n := len(table); n < 100 {
		t.Errorf("%d tokens", n)
	}
	for i := range table {
		if table[i].Family == "" || table[i].Text == "" || table[i].Treatment != Remove && table[i].Why == "" {
			t.Errorf("%+v", table[i])
		}
		table[i] = Token{}
	}
	if Tokens()[0].Text == "" {
		t.Error("the table can be changed from outside")
	}
}
