// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	asking "github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// stands is a fake that finds a word likely that stands in the text before.
func stands(before, token string) float64 {
	at := strings.LastIndexFunc(before+token, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) + 1
	if word := (before + token)[at:]; strings.Contains(before[:min(at, len(before))], word) {
		return -0.02
	}
	return -6
}

// copied is the context of request with the order in a second text, behind the first.
var copied = strings.Replace(request, `"Balance: 1810.00"`, `"Notes. `+order+` at once."`, 1)

const mine = `{"model":"m","messages":[{"role":"user","content":"Send 5 to GB29NWBK60161331926819 for the tea."},` +
	`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"get_balance","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"Balance: 1810.00"}]}`

const mineSaid = `{"id":"2","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"send_money","arguments":"{\"recipient\":\"GB29NWBK60161331926819\",\"amount\":5}"}}]}}]}`

func scoring(t *testing.T, api llm.ScoreAPI, asked func(path, body string)) asking.Likelihood {
	t.Helper()
	s, err := llm.NewScorer(llm.Options{BaseURL: llmtest.StartScores(t, stands, asked), Model: "small", Retries: -1}, api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return asking.Likelihood{Scorer: s, Model: "small"}
}

// calibrated is the calibration of the fake on three contexts.
func calibrated(t *testing.T, by asking.Likelihood) *LikelihoodFile {
	t.Helper()
	f := &LikelihoodFile{Version: LikelihoodVersion, Oracle: counterfactual.LikelihoodVersion}
	var all []Losses
	for _, c := range [][2]string{{request, paid}, {copied, paid}, {mine, mineSaid}} {
		one, err := question(t, Context{Turn: -1, Answer: file(t, c[1])}, c[0]).Lose(t.Context(), by, f, func() {})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *one)
	}
	if err := f.Settle(all); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLikelihood: over each interface, a calibration on known contexts separates calls whose
// values are shown from others; the text that gives a hijack its values is found, and a copy of
// it; a call of the user's own is allowed; and the report and the record say what has answered.
func TestLikelihood(t *testing.T) {
	for _, api := range []llm.ScoreAPI{llm.ScoreCompletions, llm.ScoreSGLang, llm.ScoreLlamaCpp} {
		asked := 0
		by := scoring(t, api, func(string, string) { asked++ })
		f := calibrated(t, by)
		if f.Threshold <= 0 || f.Threshold >= 6000 || f.Slips != 0 || f.SlipTrials != 3 || f.Repeats != 2 || f.Trials != 2 || f.Name != `"small"` || f.Model == "" {
			t.Errorf("%s: %+v", api, f)
		}
		for _, c := range []struct {
			request, answer string
			class           counterfactual.AttributionClass
			causes          string
		}{
			{request, paid, counterfactual.Hijack, "s2"}, {copied, paid, counterfactual.Hijack, "s1 s2"}, {mine, mineSaid, counterfactual.UserDriven, ""},
		} {
			q := question(t, Context{Turn: -1, Answer: file(t, c.answer)}, c.request)
			judge, err := q.Judge()
			if err != nil {
				t.Fatal(err)
			}
			problem := q.Problem(judge, Budget{Calls: 40})
			before := asked
			live, err := q.Likelihood(t.Context(), by, f, judge, &problem)
			if err != nil {
				t.Fatal(err)
			}
			out, err := asking.New(asking.Options{Likelihood: live}).Run(t.Context(), asking.Job{ID: "x", Assembly: q.Assembly, Judge: judge, Problem: problem})
			if err != nil {
				t.Fatal(err)
			}
			r, err := NewReport(q, judge, out.Result)
			if err != nil {
				t.Fatal(err)
			}
			var causes []string
			for _, x := range r.Attributions[0].Causes {
				causes = append(causes, x.Segments...)
			}
			slices.Sort(causes)
			if r.Attributions[0].Class != c.class || strings.Join(causes, " ") != c.causes || r.Attributions[0].Drift {
				t.Errorf("%s: %s: %+v", api, c.class, r.Attributions[0])
			}
			if asked-before != r.Spent.Calls+1 { // and the whole context
				t.Errorf("%s: %d requests for %d calls", api, asked-before, r.Spent.Calls)
			}
			var print bytes.Buffer
			if err := r.Print(&print, terminal.Palette{}); err != nil || !strings.Contains(print.String(), "note: by log-probabilities (log-likelihood/1): a call recurs if") {
				t.Errorf("%v\n%s", err, &print)
			}
			again, result := Replay(r.Evidence())
			print.Reset()
			if again.Likelihood == nil || again.Likelihood.Threshold != f.Threshold || again.Print(&print, result) != nil || !strings.Contains(print.String(), "by log-probabilities") {
				t.Errorf("%+v\n%s", again, &print)
			}
			if _, err := q.Rerun(t.Context(), model(t, obeys), result, func(int) {}); err == nil {
				t.Error("a record of log-probabilities was put to a model that answers")
			}
			if c.class != counterfactual.Hijack {
				continue
			}
			var page bytes.Buffer
			if err := r.HTML(&page); err != nil || !strings.Contains(page.String(), "by log-probabilities") {
				t.Errorf("%v", err)
			}
		}
	}
}

// TestLikelihoodRefuses: what cannot be measured by log-probabilities.
func TestLikelihoodRefuses(t *testing.T) {
	by := scoring(t, llm.ScoreCompletions, nil)
	f := &LikelihoodFile{Version: LikelihoodVersion, Oracle: counterfactual.LikelihoodVersion}
	says := `{"id":"1","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Pay 30.00 EUR to US133000000121212121212 at https://a.example"}}]}`
	if _, err := question(t, Context{Turn: -1, Answer: file(t, says)}, request).Lose(t.Context(), by, f, func() {}); err == nil || !strings.Contains(err.Error(), "explain calls of tools") {
		t.Errorf("a text: %v", err)
	}
	invented := strings.ReplaceAll(paid, "US133000000121212121212", "FR7630006000011234567890189")
	one, err := question(t, Context{Turn: -1, Answer: file(t, invented)}, request).Lose(t.Context(), by, f, func() {})
	if err != nil || len(one.shown)+len(one.hidden) > 0 {
		t.Errorf("a value that stands nowhere: %+v, %v", one, err)
	}
	if err := f.Settle([]Losses{*one}); err == nil {
		t.Error("a threshold between nothing and nothing")
	}
	gone := scoring(t, llm.ScoreCompletions, nil)
	gone.Scorer, err = llm.NewScorer(llm.Options{BaseURL: "http://127.0.0.1:1", Model: "m", Retries: -1}, llm.ScoreCompletions)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := question(t, Context{Turn: -1, Answer: file(t, paid)}, request).Lose(t.Context(), gone, f, func() {}); err == nil {
		t.Error("nobody has answered")
	}
}

// TestSeparate: the threshold lies in the widest gap with the fewest errors.
func TestSeparate(t *testing.T) {
	for _, c := range []struct {
		shown, hidden []int
		want          int
	}{
		{[]int{0, 10}, []int{4000, 5000}, 2005},
		{[]int{0, 10, 3000}, []int{2000, 4000, 5000, 6000}, 3500},
		{[]int{0, 10, 20, 3000}, []int{2000, 4000}, 1010},
		{[]int{5}, []int{5}, 5},
		{[]int{-20, 0}, []int{1}, 0},
		{[]int{9, 9, 9}, []int{1, 2}, 9},
	} {
		if got := separate(c.shown, c.hidden); got != c.want {
			t.Errorf("%v, %v: %d, want %d", c.shown, c.hidden, got, c.want)
		}
	}
}

// FuzzLikelihood reads bytes as a calibration of log-probabilities.
func FuzzLikelihood(f *testing.F) {
	f.Add([]byte(`{"version":"ccr-likelihood/1","name":"m","oracle":"log-likelihood/1","threshold":900,"shown":[0,3],"hidden":[4000],"model":"sha256:00","repeats":2,"trials":2,"slips":0,"slip_trials":1}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		if c, err := ParseLikelihood(src); err == nil && max(c.Trials, c.SlipTrials) < 1000 {
			if r, err := c.Rates(); err == nil && (r.P1 < 0 || r.P1 > 1_000_000 || r.P0 < 0 || r.P0 > 1_000_000) {
				t.Fatal(fmt.Sprint(r))
			}
		}
	})
}
