// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// TestFactsOf: a value is taken by its pointer, as it is written, and what cannot be compared says so.
func TestFactsOf(t *testing.T) {
	const args = `{"s":"x\u00e9","n":9007199254740993,"neg":-1,"u":18446744073709551615,"big":18446744073709551616,"e":1e3,"one":1.0,"d":0.1,"long":0.1000000000000000055,
		"t":true,"f":false,"z":null,"o":{"a":[{"b":7}],"":1},"l":["a",2,[3],{"c":1},null],"a/b":{"~":"deep"},"01":"name","k":[["in"]]}`
	var doc strictjson.Doc
	if err := doc.Reset([]byte(args), strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	no, object := policy.Unreadable{}, policy.Object{}
	want := map[string]any{"/s": "x\u00e9", "/n": int64(9007199254740993), "/neg": int64(-1), "/u": uint64(18446744073709551615), "/big": no, "/e": int64(1000), "/one": int64(1),
		"/d": 0.1, "/long": no, "/t": true, "/f": false, "/z": nil, "/o": object, "/o/a/0/b": int64(7), "/o/": int64(1),
		"/l": []any{"a", int64(2), object, object, nil}, "/l/1": int64(2), "/a~1b/~0": "deep", "/01": "name", "/k/0/0": "in"}
	missing := []string{"/absent", "/s/x", "/l/5", "/l/01", "/l/-", "/l/-1", "/l/1e0", "/o/a/b", "/a/b"}
	reads := policy.Reads{Args: missing}
	for p := range want {
		reads.Args = append(reads.Args, p)
	}
	if got := factsOf(reads, doc.Root(), nil); !reflect.DeepEqual(got.Args, want) || len(got.Claims) > 0 {
		t.Errorf("%#v", got)
	}
	if got := factsOf(policy.Reads{Args: []string{"/a"}}, strictjson.Value{}, nil); got == nil || len(got.Args) > 0 {
		t.Errorf("a call without arguments: %+v", got)
	}
	if got := factsOf(policy.Reads{Session: true}, doc.Root(), nil); got != nil {
		t.Errorf("rules that read nothing: %+v", got)
	}
	claims := factsOf(policy.Reads{Claims: []string{"groups", "email", "https://a.example/b"}}, doc.Root(), []byte(`{"groups":["a"],"https://a.example/b":{"c":1},"exp":1}`)).Claims
	if !reflect.DeepEqual(claims, map[string]any{"groups": []any{"a"}, "https://a.example/b": object}) {
		t.Errorf("%#v", claims)
	}
	if f := factsOf(policy.Reads{Claims: []string{"a"}}, doc.Root(), []byte(`{"a":`)); len(f.Claims) > 0 {
		t.Errorf("%#v", f)
	}
}

// TestFactsThatEvade: a value that a rule may not see as the server does is there, and cannot be compared.
func TestFactsThatEvade(t *testing.T) {
	no, pad := policy.Unreadable{}, `"`+strings.Repeat("x", policy.MaxValue)+`"`
	for args, want := range map[string]any{
		`{"TO":"mallory"}`:                                            no,
		`{"to":"ann","To":"mallory"}`:                                 no,
		`{"tO":"mallory","to":"ann"}`:                                 no,
		`{"\u0054o":"mallory"}`:                                       no,
		`{"t\u006f":"mallory"}`:                                       "mallory",
		`{"to":5.` + strings.Repeat("0", 70) + `}`:                    no,
		`{"to":0e999}`:                                                no,
		`{"to":["ann",5.` + strings.Repeat("0", 70) + `]}`:            no,
		`{"to":[` + strings.Repeat(pad+",", 4) + `"x","mallory"]}`:    no,
		`{"a":[` + strings.Repeat(pad+",", 3) + pad + `],"to":"bob"}`: no,
	} {
		var doc strictjson.Doc
		if err := doc.Reset([]byte(args), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		got := factsOf(policy.Reads{Args: []string{"/a", "/to"}}, doc.Root(), nil).Args["/to"]
		if got != want {
			t.Errorf("%.60s: %T", args, got)
		}
		var nested strictjson.Doc
		if err := nested.Reset([]byte(`{"M":`+args+`}`), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		if got := factsOf(policy.Reads{Args: []string{"/m/to"}}, nested.Root(), nil).Args["/m/to"]; got != no {
			t.Errorf("below another spelling, %.60s: %T", args, got)
		}
	}
}

// TestFactsAreBounded: what is kept of a call, and what looking for it takes, does not grow with the call.
func TestFactsAreBounded(t *testing.T) {
	var doc strictjson.Doc
	reset := func(src string) strictjson.Value {
		if err := doc.Reset([]byte(src), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		return doc.Root()
	}
	var reads policy.Reads
	long := `{`
	for i := range 64 {
		reads.Args = append(reads.Args, fmt.Sprintf("/%d", i))
		long += fmt.Sprintf(`"%d":"%s",`, i, strings.Repeat("x", policy.MaxValue))
	}
	kept := 0
	for _, v := range factsOf(reads, reset(long+`"z":1}`), nil).Args {
		if s, is := v.(string); is {
			kept += len(s)
		}
	}
	if kept == 0 || kept > maxFacts {
		t.Errorf("%d bytes are kept", kept)
	}
	if v := factsOf(policy.Reads{Args: []string{"/a"}}, reset(`{"a":"`+strings.Repeat("x", policy.MaxValue+1)+`"}`), nil).Args["/a"]; v != (policy.Unreadable{}) {
		t.Errorf("a long text is %T", v)
	}
	if f := factsOf(reads, reset(`{`+members(maxSteps)+`}`), nil); f != nil {
		t.Error("a call with too many members is read")
	}
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"m%d":0,`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// TestPolicyFacts: the policy sees what its rules read of the arguments and the claims, before a call and when its
// answer comes, and how much the session has asked for and got.
func TestPolicyFacts(t *testing.T) {
	t.Parallel()
	j := &judge{reads: policy.Reads{Args: []string{"/to/0"}, Claims: []string{"sub"}, Session: true}}
	w := newWard(t, hold.Options{}, policed(j)...)
	w.declare(tool("read", "") + "," + tool("send", ""))
	w.result(w.request("1", "tools/call", `{"name":"read"}`), `{"content":[]}`)
	w.result(w.request("2", "tools/call", `{"name":"read"}`), `{"content":[]}`)
	j.result = outcome(policy.Hold)
	w.result(w.request("3", "tools/call", `{"name":"send","arguments":{"to":["ann","bob"]}}`), `{"content":[]}`)
	call, result := j.seen[len(j.seen)-2], j.seen[len(j.seen)-1]
	if call.Direction != policy.Call || result.Direction != policy.Result {
		t.Fatalf("%+v", j.seen)
	}
	for _, in := range []policy.Input{call, result} {
		if !reflect.DeepEqual(in.Facts.Args, map[string]any{"/to/0": "ann"}) || len(in.Facts.Claims) > 0 {
			t.Errorf("%+v", in.Facts)
		}
	}
	if !reflect.DeepEqual(call.Session, policy.Session{Calls: 2, CallsOf: map[string]int{"srv/read": 2}}) {
		t.Errorf("before the call: %+v", call.Session)
	}
	if !reflect.DeepEqual(result.Session, policy.Session{Calls: 3, CallsOf: map[string]int{"srv/read": 2, "srv/send": 1}}) {
		t.Errorf("before the result: %+v", result.Session)
	}
	j.result = policy.Ruling{}
	w.result(w.request("4", "tools/call", `{"name":"read"}`), `{"content":[]}`)
	if i := slices.IndexFunc(j.seen, func(in policy.Input) bool { return in.Session.Held > 0 }); i < 0 || j.last().Session.Held != 1 || j.last().Session.Calls != 4 {
		t.Errorf("after a result was held: %+v", j.last().Session)
	}
}

// FuzzFactsOf: no arguments, pointer or claims end anything, and what is kept is bounded.
func FuzzFactsOf(f *testing.F) {
	f.Add(`{"a":[1,{"b":"x"}]}`, "/a/1/b", `{"sub":"x"}`, "sub")
	f.Add(`[[[]]]`, "/0/0/~1", `{"a":1e5}`, "a")
	f.Fuzz(func(t *testing.T, args, pointer, claims, name string) {
		var doc strictjson.Doc
		if doc.Reset([]byte(args), strictjson.Limits{}) != nil {
			return
		}
		got := factsOf(policy.Reads{Args: []string{"/" + pointer}, Claims: []string{name}}, doc.Root(), []byte(claims))
		for _, values := range []map[string]any{got.Args, got.Claims} {
			for _, v := range values {
				switch v := v.(type) {
				case string:
					if len(v) > policy.MaxValue {
						t.Fatalf("%d bytes", len(v))
					}
				case []any:
					if len(v) > policy.MaxElements {
						t.Fatalf("%d elements", len(v))
					}
				case nil, bool, int64, uint64, float64, policy.Object, policy.Unreadable:
				default:
					t.Fatalf("%T", v)
				}
			}
		}
	})
}
