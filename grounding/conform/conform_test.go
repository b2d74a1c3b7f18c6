// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/corpus"
)

// TestFetch: the door for one attestation is judged where there is one.
func TestFetch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(string) string
		ok     bool
	}{
		"clean":      {func(s string) string { return s }, true},
		"unframed":   {func(s string) string { return strings.ReplaceAll(s, "_untrusted_text", "text") }, false},
		"raw":        {func(s string) string { return strings.Replace(s, `"rationale":"`, `"rationale":"\u202e`, 1) }, false},
		"not strict": {func(s string) string { return `{"a":1,` + s[1:] + "}" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReference(t, attest.Policy{})
			rep := run(t, &Runner{Adapter: fetching{r, c.change}, Vectors: few(t)})
			if rep.Conforms != c.ok {
				t.Errorf("conforms = %v: %v", rep.Conforms, rep.Deviations)
			}
		})
	}
}

// A fetching adapter has the other door too.
type fetching struct {
	*reference
	change func(string) string
}

func (f fetching) Fetch(ctx context.Context, hash string) (Answer, bool, error) {
	for claim, held := range f.held {
		for _, a := range held {
			if a.Hash().String() == hash {
				ans, err := f.Query(ctx, claim)
				return Answer{JSON: []byte(f.change(string(ans.JSON)))}, true, err
			}
		}
	}
	return Answer{}, true, errors.New("not held")
}

// TestAgain: an adapter that was fed before passes as well.
func TestAgain(t *testing.T) {
	a := newReference(t, attest.Policy{})
	for range 2 {
		if rep := run(t, &Runner{Adapter: a, Vectors: few(t)}); !rep.Conforms {
			t.Errorf("does not conform: %v", rep.Deviations)
		}
	}
}

// TestReport: RFC 8.1's list is the head, and the JSON has the members that the
// command line promises.
func TestReport(t *testing.T) {
	var n int
	rep := run(t, &Runner{Adapter: newReference(t, attest.Policy{}), Each: func(*Result) { n++ }})
	var b bytes.Buffer
	if err := rep.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) < 9 || !strings.HasPrefix(lines[0], "The adapter conforms: ") || !strings.HasPrefix(lines[2], "  yes  type-checks") ||
		!strings.HasPrefix(lines[8], "  yes  returns sanitation_version truthfully") {
		t.Errorf("%s", b.String())
	}
	out, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Passed, Failed, Skipped int
		Conforms                bool
		Vectors                 []struct{ ID, Status string }
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.Passed+got.Failed+got.Skipped != len(got.Vectors) || len(got.Vectors) != n || !got.Conforms || got.Passed < 600 {
		t.Errorf("%d passed, %d failed, %d skipped of %d", got.Passed, got.Failed, got.Skipped, len(got.Vectors))
	}
}

// TestUntruthful: a version that is claimed and not kept is seen in the head.
func TestUntruthful(t *testing.T) {
	d := newSecond()
	d.without["4.4"] = true
	rep := run(t, &Runner{Adapter: d})
	if last := rep.Requirements[len(rep.Requirements)-1]; last.Met {
		t.Errorf("%+v", last)
	}
}

func TestCancelled(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := (&Runner{Adapter: constant("{}")}).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzAnswer: whatever an adapter answers, it is judged without an accident, and
// nothing of it is in the report.
func FuzzAnswer(f *testing.F) {
	all, err := corpus.All()
	if err != nil {
		f.Fatal(err)
	}
	r := newReference(f, attest.Policy{})
	for i := 0; i < len(all); i += 40 {
		for _, src := range attestations(&all[i]) {
			if _, err := r.Ingest(context.Background(), src); err != nil {
				f.Fatal(err)
			}
		}
		a, err := r.Query(context.Background(), newSubject(&all[i]).query)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, a.JSON)
	}
	f.Fuzz(func(t *testing.T, i int, out []byte) {
		i = ((i % len(all)) + len(all)) % len(all)
		rep, err := (&Runner{Adapter: constant(out), Vectors: all[i : i+1]}).Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := rep.WriteText(&b); err != nil || !plainASCII(b.String()) {
			t.Errorf("report: %v", err)
		}
	})
}

// TestBroken: an adapter that answers nonsense, or not at all, is a result and no
// accident.
func TestBroken(t *testing.T) {
	for _, out := range []string{"", "nonsense", "[]", "{}", `{"attestations":7,"_meta":[]}`, `{"a":1,"a":2}`, strings.Repeat("[", 300)} {
		rep := run(t, &Runner{Adapter: constant(out), Vectors: few(t)})
		if rep.Conforms || rep.Passed > len(few(t))/2 {
			t.Errorf("%q: %d passed", out, rep.Passed)
		}
		var b bytes.Buffer
		if err := rep.WriteText(&b); err != nil || !slices.ContainsFunc(rep.Requirements, func(r Requirement) bool { return !r.Met }) {
			t.Errorf("%q: %v", out, err)
		}
	}
}

// A constant accepts everything and answers always the same.
type constant string

func (constant) Ingest(context.Context, []byte) (Receipt, error) { return Receipt{Accepted: true}, nil }

func (c constant) Query(context.Context, string) (Answer, error) {
	return Answer{JSON: []byte(c)}, nil
}

func TestNumClauses(t *testing.T) {
	if len(corpus.Clauses) != numClauses {
		t.Errorf("%d clauses, numClauses is %d", len(corpus.Clauses), numClauses)
	}
}
