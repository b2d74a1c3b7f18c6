// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// spent evaluates once and returns what is left of both budgets beside the result.
func spent(t *testing.T, ctx context.Context, schema, value string) (Result, *engine) {
	t.Helper()
	e, err := compile([]byte(schema))
	if err != nil {
		return Compile([]byte(schema)).Check(ctx, parse(t, value)), &engine{}
	}
	v := parse(t, value)
	decoded, err := decode(v)
	if err != nil {
		t.Fatal(err)
	}
	return e.evaluate(ctx, []byte(schema), v, decoded), e
}

// TestPatternWork: an evaluation takes at most maxMatches instructions times characters of the
// patterns of a schema, wherever they stand, and says which of them would have taken more.
func TestPatternWork(t *testing.T) {
	long := `"` + strings.Repeat("a", 50_000) + `"`
	const slow = `^(([a-z]{1,30}){1,30})$` // more than 900 instructions
	const two = `"(x+x+)+y"`
	many := func(n int, of func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = of(i)
		}
		return strings.Join(all, ",")
	}
	for _, c := range []struct {
		name, schema, value string
		want                Result
	}{
		{"pattern", `{"pattern":"` + slow + `"}`, long, Result{Keyword: "pattern", Pointer: "/pattern"}},
		{"alternation", `{"properties":{"ignore all":{"pattern":"` + strings.Repeat("(a|b|ab)*", 50) + `$"}}}`, `{"ignore all":` + long + `}`,
			Result{Keyword: "pattern", Pointer: "/properties/#0/pattern"}},
		{"repeat of a thousand", `{"items":{"anyOf":[{"pattern":"^.{1,1000}$"}]}}`, `["",` + long + `]`, Result{Keyword: "pattern", Pointer: "/items/anyOf/0/pattern"}},
		{"chain of definitions", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b~1%25"},"b/%":{"pattern":"` + slow + `"}}}`, long,
			Result{Keyword: "pattern", Pointer: "/$defs/#1/pattern"}},
		{"names", `{"propertyNames":{"pattern":"` + slow + `"}}`, `{` + long + `:1}`, Result{Keyword: "pattern", Pointer: "/propertyNames/pattern"}},
		{"pattern of names", `{"patternProperties":{"b":{},"` + slow + `":{}}}`, `{` + long + `:1}`,
			Result{Keyword: "patternProperties", Pointer: "/patternProperties/#1"}},
		{"many patterns and members", `{"patternProperties":{` + many(1000, func(i int) string { return fmt.Sprintf(`"^a%d+$":{}`, i) }) + `}}`,
			`{` + many(1000, func(i int) string { return fmt.Sprintf(`"a%d":1`, i) }) + `}`, Result{Keyword: "patternProperties", Pointer: "?"}},
		{"many short texts", `{"items":{"pattern":` + two + `}}`, `[` + many(100_000, func(int) string { return `"xxxxxxxxxxxxxxxx"` }) + `]`,
			Result{Keyword: "pattern", Pointer: "/items/pattern"}},
		{"under not", `{"not":{"pattern":"` + slow + `"}}`, long, Result{Keyword: "pattern", Pointer: "/not/pattern"}},
		{"draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#","pattern":"` + slow + `"}`, long, Result{Keyword: "pattern", Pointer: "/pattern"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, e := spent(t, t.Context(), c.schema, c.value)
			if c.want.Pointer == "?" && strings.HasPrefix(r.Pointer, "/patternProperties/#") {
				c.want.Pointer = r.Pointer // which of them is met first is the order of a map
			}
			c.want.Conformity, c.want.Reason = Unverifiable, tooCostly
			if r != c.want {
				t.Errorf("got %+v, want %+v", r, c.want)
			}
			if e.matchesLeft >= 0 {
				t.Errorf("%d of the matches were left", e.matchesLeft)
			}
		})
	}
}

// TestPatternWeight: what is taken for a match is the instructions of the compiled program times the
// characters, and an honest list of ids is far below the bound.
func TestPatternWeight(t *testing.T) {
	r, e := spent(t, t.Context(), `{"pattern":"^a+$"}`, `"`+strings.Repeat("a", 999)+`"`)
	if per := (maxMatches - e.matchesLeft) / 1000; r.Conformity != Valid || per < 4 || per > 8 {
		t.Errorf("%+v, %d instructions a character", r, per)
	}
	if two, one := maxMatches-left(t, `"é"`), maxMatches-left(t, `"e"`); two != one {
		t.Errorf("a character of two bytes weighs %d, one of one %d", two, one)
	}
	const uuid = `{"items":{"pattern":"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}}`
	list := `[` + strings.TrimSuffix(strings.Repeat(`"0b7d7f61-6f3a-4a58-9a3b-8f4c9e0d1a2b",`, 5000), ",") + `]`
	if r, _ := spent(t, t.Context(), uuid, list); r.Conformity != Valid {
		t.Errorf("5,000 ids: %+v", r)
	}
}

func left(t *testing.T, value string) int64 {
	_, e := spent(t, t.Context(), `{"pattern":"."}`, value)
	return e.matchesLeft
}

// TestPatternSize: a pattern whose program would be large is not compiled, and neither are patterns that
// the schema is full of, nor one that is only a value.
func TestPatternSize(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		want   Reason
	}{
		"repeats of repeats": {`{"pattern":"((a{0,30}){0,30}){0,30}$|((((x{0,9}){0,9}){0,9}){0,9}){0,9}"}`, badPattern},
		"large class often":  {`{"pattern":"` + strings.Repeat(`\\pL`, maxPattern/3+1) + `"}`, badPattern},
		"many":               {`{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":"`+strings.Repeat("a", 8000)+`"},`, 40), ",") + `]}`, badPattern},
	} {
		if got := Compile([]byte(c.schema)).Reason(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	const schema = `{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`
	for value, want := range map[string]Conformity{`"(a{1000}){1000}"`: Invalid, `"a{1000}"`: Valid, `"` + strings.Repeat("((a", 300_000) + `"`: Unverifiable} {
		if r, _ := spent(t, t.Context(), schema, value); r.Conformity != want {
			t.Errorf("regex %.20s: %+v, want %v", value, r, want)
		}
	}
}

// TestWork: what the library does beside the subschemas that it visits is counted too.
func TestWork(t *testing.T) {
	list := func(n int, of string) string { return strings.TrimSuffix(strings.Repeat(of+",", n), ",") }
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"n%d",`, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	chain := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
		}
		return fmt.Sprintf(`{"$defs":{%s"d%d":{"type":"number"}},"items":{"$ref":"#/$defs/d0"}}`, b.String(), n)
	}
	members := `{` + strings.ReplaceAll(names(20_000), `",`, `":1,`) + `:1}`
	for _, c := range []struct {
		name, schema, value string
		want                Result
	}{
		{"dependent names", `{"items":{"dependentRequired":{"a":[` + names(20_000) + `]}}}`, `[` + list(2_000, `{"a":1}`) + `]`, Result{Unverifiable, tooCostly, "", ""}},
		{"dependencies", `{"$schema":"http://json-schema.org/draft-07/schema#","items":{"dependencies":{"a":[` + names(20_000) + `]}}}`,
			`[` + list(2_000, `{"a":1}`) + `]`, Result{Unverifiable, tooCostly, "", ""}},
		{"unevaluated members", `{"unevaluatedProperties":true,"allOf":[` + list(2_000, `{"type":"object"}`) + `]}`, members, Result{Unverifiable, tooCostly, "", ""}},
		{"long chain", chain(3_000), `[1]`, Result{Unverifiable, tooCostly, "", ""}},
		{"short chain", chain(maxChain - 2), `[` + list(5_000, "1") + `]`, Result{Conformity: Valid}},
		{"enum of numbers", `{"items":{"enum":[` + numbers(10_000) + `]}}`, `[` + list(1_000, "-1") + `]`, Result{Unverifiable, tooCostly, "", ""}},
		{"contains", `{"items":{"contains":{"const":1}}}`, `[` + list(900, `[`+list(1_000, "0")+`]`) + `]`, Result{Unverifiable, tooCostly, "", ""}},
		{"too many subschemas", `{"allOf":[` + list(maxSchemas, "true") + `]}`, `1`, Result{Unverifiable, tooLarge, "", ""}},
		{"one long text beside a costly list", `{"properties":{"rows":{"items":{"allOf":[` + list(40, `{"minLength":1}`) + `]}},"text":{"type":"string"}}}`,
			`{"rows":[` + list(2_000, `"a"`) + `],"text":"` + strings.Repeat("a", 1<<20) + `"}`, Result{Conformity: Valid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r, e := spent(t, t.Context(), c.schema, c.value); r != c.want {
				t.Errorf("got %+v, want %+v; %d left", r, c.want, e.workLeft)
			}
		})
	}
}

// ending is a context that ends after a number of looks.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestCallEnded: nothing is matched or visited on once the call has ended.
func TestCallEnded(t *testing.T) {
	for name, c := range map[string]struct{ schema, value string }{
		"patterns":    {`{"items":{"pattern":"^a$"}}`, `["a","a","a","a","a","a","a","a"]`},
		"no patterns": {doubling(25), `1`},
	} {
		r, e := spent(t, &ending{t.Context(), 3}, c.schema, c.value)
		if r.Conformity != Unverifiable || r.Reason != callEnded {
			t.Errorf("%s: %+v", name, r)
		}
		if visits := maxWork - e.workLeft; visits > 4*everyWork {
			t.Errorf("%s: %d visits", name, visits)
		}
		if got := maxMatches - e.matchesLeft; got > 100 {
			t.Errorf("%s: %d instructions times characters", name, got)
		}
	}
}

// TestSideBySide: evaluations by one schema do not wait for each other and do not share their bounds.
func TestSideBySide(t *testing.T) {
	s := Compile([]byte(`{"items":{"pattern":"^a+$"}}`))
	value := `[` + strings.TrimSuffix(strings.Repeat(`"aaaaaaaa",`, 100_000), ",") + `]`
	const n = 8
	done := make(chan Result, n)
	for range n {
		v := parse(t, value)
		go func() { done <- s.Check(context.Background(), v) }()
	}
	for range n {
		if r := <-done; r.Conformity != Valid {
			t.Errorf("%+v", r)
		}
	}
}
