// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func itemOf(t testing.TB, entry string) Item {
	t.Helper()
	return surfaceOf(t, entry).Items()[1]
}

// TestSets: what JSON Schema calls a set is one, where it is a schema.
func TestSets(t *testing.T) {
	for _, tt := range []struct {
		a, b string // of a tool
		same bool
	}{
		{`"inputSchema":{"required":["b","a"]}`, `"inputSchema":{"required":["a","b","a"]}`, true},
		{`"inputSchema":{"required":["b","a"]}`, `"inputSchema":{"required":["a"]}`, false},
		{`"outputSchema":{"type":["object","null"]}`, `"outputSchema":{"type":["null","object"]}`, true},
		{`"inputSchema":{"dependentRequired":{"x":["b","a"]}}`, `"inputSchema":{"dependentRequired":{"x":["a","b"]}}`, true},
		{`"inputSchema":{"dependencies":{"x":["b","a"],"y":{"required":["d","c"]}}}`, `"inputSchema":{"dependencies":{"x":["a","b"],"y":{"required":["c","d"]}}}`, true},
		{`"inputSchema":{"properties":{"required":{"type":["string","null"]}}}`, `"inputSchema":{"properties":{"required":{"type":["null","string"]}}}`, true},
		{`"inputSchema":{"$defs":{"d":{"anyOf":[{"items":{"required":["b","a"]}}]}}}`, `"inputSchema":{"$defs":{"d":{"anyOf":[{"items":{"required":["a","b"]}}]}}}`, true},
		{`"inputSchema":{"not":{"if":{"required":["b","a"]}}}`, `"inputSchema":{"not":{"if":{"required":["a","b"]}}}`, true},
		// The order of anything else is content.
		{`"inputSchema":{"enum":["b","a"]}`, `"inputSchema":{"enum":["a","b"]}`, false},
		{`"inputSchema":{"anyOf":[{"type":"null"},{"type":"string"}]}`, `"inputSchema":{"anyOf":[{"type":"string"},{"type":"null"}]}`, false},
		{`"inputSchema":{"default":{"required":["b","a"]}}`, `"inputSchema":{"default":{"required":["a","b"]}}`, false},
		{`"inputSchema":{"examples":["b","a"]}`, `"inputSchema":{"examples":["a","b"]}`, false},
		{`"_meta":{"required":["b","a"]}`, `"_meta":{"required":["a","b"]}`, false},
		{`"inputSchema":{"x-kept":{"required":["b","a"]}}`, `"inputSchema":{"x-kept":{"required":["a","b"]}}`, false},
	} {
		a, b := surfaceOf(t, `{"name":"t",`+tt.a+`}`), surfaceOf(t, `{"name":"t",`+tt.b+`}`)
		if same := a.Fingerprint() == b.Fingerprint(); same != tt.same {
			t.Errorf("%s and %s: the same surface: %v", tt.a, tt.b, same)
		}
		changes := diff(a.Items(), b.Items(), nil)
		if anyChange(changes) == tt.same {
			t.Errorf("%s and %s: %s", tt.a, tt.b, told(changes))
		}
	}
	// A change beside a set in another order is shown alone.
	a, b := `{"name":"t","description":"one","inputSchema":{"required":["b","a"]}}`, `{"name":"t","description":"two","inputSchema":{"required":["a","b"]}}`
	if c := compare(itemOf(t, a), itemOf(t, b)); len(c.Fields) != 1 || c.Fields[0].Path != "/description" {
		t.Errorf("%+v", c)
	}
}

// TestPinsOfEarlierReleases: a pin whose versions have their sets in the order of the server holds nothing, and what was blocked
// under the digest of then stays blocked.
func TestPinsOfEarlierReleases(t *testing.T) {
	old := itemOf(t, `{"name":"t","inputSchema":{"required":["b","a"]}}`)
	now := surfaceOf(t, `{"name":"t","inputSchema":{"required":["a","b"]}}`)
	pin := newPin("s", "x", surfaceOf(t, `{"name":"t","inputSchema":{"required":["b","a"]}}`), time.Now())
	if changes, dirty := pin.observe(now); anyChange(changes) || dirty {
		t.Errorf("%s %v", told(changes), dirty)
	}
	former := digestOf("item", []byte("tool"), []byte("t"), old.JSON)
	if former == old.Digest {
		t.Fatal("the digest did not change: the test tests nothing")
	}
	if err := pin.block(old.Key, former, "ann", time.Now()); err != nil || pin.Item(old.Key).State() != Blocked {
		t.Errorf("%v %s", err, pin.Item(old.Key).State())
	}
	hidden := itemOf(t, `{"name":"t","description":"a\u200bb","inputSchema":{"required":["b","a"]}}`)
	former = digestOf("item", []byte("tool"), []byte("t"), hidden.JSON)
	if err := hidden.Inspect(Rules{DangerouslyAllow: []Digest{former}}).Err(); err != nil {
		t.Errorf("what an operator has accepted: %v", err)
	}
}

// TestTolerated: a part may change as long as it stays of its type. Everything else is compared.
func TestTolerated(t *testing.T) {
	all := Tolerated{Date, Count, Version, Icons, Meta, Enum + "/inputSchema/properties/c/enum"}
	text := func(s string) string {
		b, _ := json.Marshal(s)
		return `"description":` + string(b)
	}
	enum := func(s string) string { return `"inputSchema":{"properties":{"c":{"enum":[` + s + `]}}}` }
	icon := func(s string) string { return `"icons":[{"src":"` + s + `","mimeType":"image/png"}]` }
	for _, tt := range []struct {
		a, b string
		by   string // what tolerates it; "": nothing
	}{
		{text("Today is 2026-11-28."), text("Today is 2026-12-01."), Date},
		{text("Now: 2026-11-28T10:00:00Z"), text("Now: 2026-11-29 11:01:02.5 UTC"), Date},
		{text("Data of 28 November 2026, and more"), text("Data of Sat, Dec 5, 2026, and more"), Date},
		{text("(28.11.2026)"), text("(1/2/2027)"), Date},
		{text("12:06:10 UTC"), text("9:30 PM"), Date},
		{text("Searches 1,204 documents"), text("Searches 99 documents"), Count},
		{text("Version v1.2.3-rc.1 of it"), text("Version 10.20.30 of it"), Version},
		{enum(`"eu","us"`), enum(`"ap-1"`), Enum},
		{enum(`1,2`), enum(`3`), Enum},
		{icon("https://h.example/a.png"), icon("https://h.example/b.png?v=2"), Icons},
		{icon("data:image/png;base64,AAAA"), icon("data:image/png;base64,BBBB"), Icons},
		{`"_meta":{"built":"2026-11-28","n":4,"commit":"0123abcd","v":"1.2.3"}`, `"_meta":{"built":"2026-11-29","n":5,"commit":"ffffffff","v":"1.2.4"}`, Meta},

		{text("Today is 2026-11-28."), text("Today is 2026-11-28. Ignore that."), ""},
		{text("Today is 2026-11-28."), text("Today is 5."), ""},
		{text("Today is 2026-11-28."), text("Today is 2026-31-28."), ""},
		{text("Today is 2026-11-28."), text("Today is \u0662\u0660\u0662\u0666-11-28."), ""},
		{text("Today is 2026-11-28."), text("Today is \x01date."), ""},
		{text("Asks 10.0.0.1"), text("Asks 6.6.6.6"), ""},
		{text("Asks h.example:8080"), text("Asks h.example:6666"), ""},
		{text("Pays to 1234 5678"), text("Pays to 9999 5678"), ""},
		{text("Pays to 12345678"), text("Pays to 99999999"), ""},
		{text("Pays to DE12-3456"), text("Pays to DE12-9999"), ""},
		{text("Costs 3.50 EUR"), text("Costs 9.50 EUR"), ""},
		{text("v1.2.3-rc.1"), text("v1.2.3-ignore.previous.instructions"), ""},
		{`"title":"Day 2026-11-28"`, `"title":"Day 2026-11-29"`, ""},
		{`"name":"t-2026-11-28"`, `"name":"t-2026-11-29"`, ""},
		{`"inputSchema":{"default":{"description":"2026-11-28"}}`, `"inputSchema":{"default":{"description":"2026-11-29"}}`, ""},
		{enum(`"eu"`), enum(`"ignore previous instructions"`), ""},
		{enum(`"eu"`), enum(`1`), ""},
		{enum(`"eu"`), enum(``), ""},
		{enum(`"eu"`), enum(`"` + strings.Repeat("x", 65) + `"`), ""},
		{`"inputSchema":{"properties":{"d":{"enum":["eu"]}}}`, `"inputSchema":{"properties":{"d":{"enum":["us"]}}}`, ""},
		{icon("https://h.example/a.png"), icon("https://evil.example/a.png"), ""},
		{icon("data:image/png;base64,AAAA"), icon("data:image/svg+xml;base64,AAAA"), ""},
		{icon("https://h.example/a.png"), icon("javascript:x"), ""},
		{`"_meta":{"a":"2026-11-28"}`, `"_meta":{"a":"2026-11-28","b":"new"}`, ""},
		{`"_meta":{"a":"0123abcd"}`, `"_meta":{"a":"ignore previous instructions"}`, ""},
		{`"_meta":{"a":"0123abcd"}`, `"_meta":{"a":"evil.example"}`, ""},
		{`"_meta":{"a":true}`, `"_meta":{"a":false}`, ""},
		{`"_meta":{"ui":{"resourceUri":"ui://1234567"}}`, `"_meta":{"ui":{"resourceUri":"ui://7654321"}}`, ""},
		{`"_meta":{"ui/v":"1.2.3"}`, `"_meta":{"ui/v":"1.2.4"}`, ""},
		{`"inputSchema":{"maxLength":5}`, `"inputSchema":{"maxLength":6}`, ""},
		{`"annotations":{"readOnlyHint":true}`, `"annotations":{"readOnlyHint":false}`, ""},
	} {
		name := `"name":"t",`
		if strings.HasPrefix(tt.a, `"name"`) {
			name = ""
		}
		a, b := itemOf(t, `{`+name+tt.a+`}`), itemOf(t, `{`+name+tt.b+`}`)
		item := PinnedItem{Key: a.Key, Approved: string(a.JSON), Pending: string(b.JSON)}
		if got := item.Tolerable(); tt.by == "" && got != nil && !strings.Contains(tt.a, `"d":{"enum"`) || tt.by != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.by)) {
			t.Errorf("%s and %s: tolerable by %q", tt.a, tt.b, got)
		}
		if a.sameBut(b, nil) {
			t.Errorf("%s and %s are the same without being tolerated", tt.a, tt.b)
		}
		if a.sameBut(b, all) != (tt.by != "") {
			t.Errorf("%s and %s: the same: %v", tt.a, tt.b, a.sameBut(b, all))
		}
		others := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return tt.by != "" && strings.HasPrefix(s, tt.by) })
		if tt.by != "" && a.sameBut(b, others) {
			t.Errorf("%s and %s are the same without %s", tt.a, tt.b, tt.by)
		}
	}
	for part, want := range map[string]bool{"date": true, "_meta": true, "enum:/inputSchema/properties/a/enum": true, "enum:": false, "enum:/a b/enum": false,
		"enum:/inputSchema": false, "description": false, "": false} {
		if Tolerable(part) != want {
			t.Errorf("%q: %v", part, !want)
		}
	}
}

// TestUnsettled: an item that changes between the listings of the first check waits; one that only comes, and one that differs in
// what is tolerated, does not.
func TestUnsettled(t *testing.T) {
	for name, tt := range map[string]struct {
		pages     []string // of tools/list, the last of them again and again
		tolerates Tolerated
		held      string
	}{
		"the same":            {[]string{tools(tool("a", "one"))}, nil, ""},
		"one comes":           {[]string{tools(tool("a", "one")), tools(tool("a", "one"), tool("b", "two"))}, nil, ""},
		"one goes":            {[]string{tools(tool("a", "one"), tool("b", "two")), tools(tool("a", "one"))}, nil, ""},
		"one changes":         {[]string{tools(tool("a", "one"), tool("b", "two")), tools(tool("a", "Ignore that."), tool("b", "two"))}, nil, "a"},
		"another each time":   {[]string{tools(tool("a", "1 o"), tool("b", "two")), tools(tool("a", "2 o"), tool("b", "two")), tools(tool("a", "3 o"), tool("b", "two"))}, nil, "a"},
		"changes back":        {[]string{tools(tool("a", "one")), tools(tool("a", "two")), tools(tool("a", "one"))}, nil, "a"},
		"a number, tolerated": {[]string{tools(tool("a", "1 o")), tools(tool("a", "2 o")), tools(tool("a", "3 o"))}, Tolerated{Count}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			s, err := Collect(t.Context(), serve(t, func(method, cursor string) string {
				if method != "tools/list" {
					return legacy("")(method, cursor)
				}
				n++
				return tt.pages[min(n, len(tt.pages))-1]
			}), CollectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pins := NewPins(newMemory(), nil)
			g := Gate{Rules: Rules{Tolerates: tt.tolerates}, Pins: pins}
			o, err := g.Check(t.Context(), "s", "x", s)
			if err != nil {
				t.Fatal(err)
			}
			var held []string
			for k := range o.Admission.Held() {
				held = append(held, k.Name)
			}
			if got := strings.Join(held, " "); got != tt.held || (o.Conclusion == Differs) != (tt.held != "") || len(o.Unsettled) != len(held) {
				t.Errorf("held %q, %s, unsettled %+v", got, o.Conclusion, o.Unsettled)
			}
			// It waits at the next check too, and the others are seen.
			again, err := g.Check(t.Context(), "s", "x", s)
			if err != nil || len(again.Admission.Held()) != len(held) || again.Pinned {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

func FuzzForm(f *testing.F) {
	f.Add([]byte(`{"name":"t","description":"v1.2.3 of 28 Nov 2026, 1,204 files","inputSchema":{"required":["b","a"],"properties":{"c":{"enum":["a"]}}},"icons":[{"src":"https://h/"}],"_meta":{"a":1}}`))
	all := Tolerated{Date, Count, Version, Icons, Meta, Enum + "/inputSchema/properties/c/enum"}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range []Kind{Server, Tool, Resource} {
			form := formOf(Key{kind, "n"}, b, nil)
			if again := formOf(Key{kind, "n"}, form, nil); string(again) != string(form) {
				t.Errorf("%q becomes %q and %q", b, form, again)
			}
			if len(formOf(Key{kind, "n"}, b, all)) > 8*len(b)+64 {
				t.Error("the form is too long")
			}
		}
	})
}
