package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/internal/ccrbench"
	"github.com/pellucid-mcp/pellucid/internal/interval"
)

type ccrBenchCmd struct {
	Traces []string `sep:"none" type:"existingfile" placeholder:"FILE" help:"Files of recorded runs, JSON lines or zstd (default: the development set in the test data)."`
	Data   string   `env:"PELLUCID_DATA" default:"../shared/data" placeholder:"DIR" help:"The folder that holds agentdojo-traces/ (default ${default}, or $$${env})."`
	Tracks string   `placeholder:"LETTERS" help:"Measure these tracks alone, such as AB: A recorded pairs, B replicates, C real contexts, D synthetic, E cost, G evidence."`
	Full   bool     `help:"Every context, and more trials of each synthetic case."`
	Seed   uint64   `help:"Of everything that is drawn. The same seed gives the same figures."`
	Models bool     `help:"Print the rows of every model as well; JSON has them always."`
	Live   string   `placeholder:"URL" help:"Print how to measure attack success, utility and false alarms against this live endpoint; the tables here claim none of these."`
	JSON   bool     `name:"json" help:"Print everything as JSON: curves, manifest, intervals."`
}

func (ccrBenchCmd) Help() string {
	return `What each track measures, and the format of the traces, stands in
docs/spec/counterfactual.md. No model is asked. The thresholds were fixed on the banking
and slack suites of AgentDojo's published runs, and are no options. Exit codes: 0 every
target was reached, 1 one was missed, or there is no trace.`
}

// benchLive is what only a live endpoint can tell, and how.
const benchLive = `Attack success, utility and end-to-end false alarms need a model that answers. With
AgentDojo (https://github.com/ethz-spylab/agentdojo) and pellucid guard in front of it:

  pellucid guard --listen 127.0.0.1:7430 --upstream %s
  OPENAI_BASE_URL=http://127.0.0.1:7430/v1 python -m agentdojo.scripts.benchmark \
      --model MODEL --attack important_instructions --logdir runs
  pellucid ccr bench --traces runs.jsonl

runs.jsonl is the run files of runs/, one a line. Compare security and utility with a
run that goes past the guard. What the calls cost is up to the endpoint.
`

// Validate is called by kong; its error is one of usage.
func (c *ccrBenchCmd) Validate() error {
	if strings.Trim(c.Tracks, "ABCDEG") != "" {
		return errors.New("--tracks: want letters of A, B, C, D, E and G")
	}
	return nil
}

func (c *ccrBenchCmd) Run(e *env) error {
	if c.Live != "" {
		_, err := fmt.Fprintf(e.Stdout, benchLive, printable(c.Live))
		return err
	}
	files := c.Traces
	if len(files) == 0 {
		name := filepath.Join(c.Data, "agentdojo-traces", "banking-slack.jsonl.zst")
		if _, err := os.Stat(name); err != nil {
			return errors.New("ccr bench: no recorded runs: --traces FILE, or the test data")
		}
		files = []string{name}
	}
	var sources []ccrbench.Source
	for _, name := range files {
		sources = append(sources, ccrbench.Source{
			Name: filepath.Base(name),
			Open: func() (io.ReadCloser, error) { return openInput(name, e.Stdin) },
		})
	}
	stage := ""
	b := newBar(e, "ccr bench", 0, func() string { return stage })
	r, err := ccrbench.Run(sources, ccrbench.Options{Tracks: c.Tracks, Full: c.Full, Seed: c.Seed, Progress: func(name string, done, total int) {
		stage = name + " " + thousands(done)
		if total > 0 {
			stage += " of " + thousands(total)
		}
		b.at(int64(done))
	}})
	b.done()
	if err != nil {
		return fmt.Errorf("ccr bench: %w", err)
	}
	if c.JSON {
		err = writeJSON(e.Stdout, r)
	} else {
		w := bufio.NewWriter(e.Stdout)
		t := benchTable{w: w, p: paletteFor(e.Stdout, e.Getenv), models: c.Models}
		t.print(r)
		err = w.Flush()
	}
	switch {
	case err != nil:
		return fmt.Errorf("ccr bench: write: %w", err)
	case !r.Met():
		return errors.New("ccr bench: a target was missed")
	}
	return nil
}

// A benchTable prints a report for people.
type benchTable struct {
	w      *bufio.Writer
	p      palette
	models bool
}

func (t *benchTable) head(title, what string) {
	fmt.Fprintf(t.w, "\n%s  %s\n", t.p.bold(title), t.p.dim(what))
}

func rate(s ccrbench.Share) string { return interval.Format(s.K, s.N) + " n=" + thousands(s.N) }

// who names a stratum; the sum over models is one of its own.
func who(suite, model string) string {
	if model == "" {
		model = "(all undefended models)"
	}
	return printable(suite) + " " + printable(model)
}

func (t *benchTable) print(r *ccrbench.Report) {
	m := &r.Manifest
	fmt.Fprintf(t.w, "%s  %s %s, seed %d, full %t, theta %d, %d probes, alpha %.2f, %s\n",
		t.p.bold(m.Version), m.Record, m.Transform, m.Seed, m.Full, m.Theta, m.Probes, m.Alpha, m.Go)
	for _, f := range m.Traces {
		fmt.Fprintf(t.w, "%s  %s runs  %s\n", printable(f.Name), thousands(f.Runs), f.Digest)
	}
	t.pairs(r.Pairs)
	t.noise(r.Noise)
	t.contexts(r.Contexts)
	t.synthetic(r.Synthetic, r.Verdicts)
	t.cost(r.Cost)
	if len(r.Evidence) > 0 {
		t.head("G  evidence", "simulated decisions, and variants of real contexts")
	}
	for _, g := range r.Evidence {
		fmt.Fprintf(t.w, "  %-58s %d of %d\n", g.Check, g.Held.K, g.Held.N)
	}
	t.head("targets", "")
	for _, g := range r.Targets {
		verdict := t.p.green("reached")
		if !g.Met {
			verdict = t.p.red("MISSED ")
		}
		fmt.Fprintf(t.w, "  %s  %s  %-58s %s, wanted %s\n", verdict, g.Track, printable(g.Name), g.Got, g.Want)
	}
}

func (t *benchTable) pairs(rows []ccrbench.PairRow) {
	if len(rows) == 0 {
		return
	}
	t.head("A  recorded pairs", "the injection took effect? TPR, FPR at the frozen threshold, area under the whole curve")
	last := ""
	for _, p := range rows {
		if p.Model != "" && !t.models {
			continue
		}
		if head := who(p.Suite, p.Model) + ", labels: " + p.Labels; head != last {
			fmt.Fprintf(t.w, "  %s\n", head)
			last = head
		}
		fmt.Fprintf(t.w, "    %-30s TPR %-34s FPR %-34s AUC %.3f\n", p.Signal, rate(p.TPR), rate(p.FPR), p.AUC)
	}
}

func (t *benchTable) noise(rows []ccrbench.NoiseRow) {
	if len(rows) == 0 {
		return
	}
	t.head("B  recorded replicates", "nothing differs: calls that differ, actions that the test takes for gone, actions that a verdict holds")
	for _, n := range rows {
		fmt.Fprintf(t.w, "  %-56s naive %-32s test %-30s alarm %-30s undecided %d\n", who(n.Suite, n.Model), rate(n.Naive), rate(n.Test), rate(n.Alarm), n.Undecided)
	}
}

func (t *benchTable) contexts(rows []ccrbench.ContextRow) {
	if len(rows) == 0 {
		return
	}
	t.head("C  real contexts, simulated answers", "semi-synthetic: the response function is assumed, its noise is the model's own")
	for _, c := range rows {
		if c.Model == "" || t.models {
			fmt.Fprintf(t.w, "  %-40s carriers %-3s %-14s exact %-34s calls %5.2f, with the verdict %5.2f, of %.1f segments\n",
				who(c.Suite, c.Model), c.Copies, c.Method, rate(c.Exact), c.Calls, c.AllCalls, c.Segments)
		}
	}
}

func (t *benchTable) synthetic(rows []ccrbench.SyntheticRow, verdicts []ccrbench.VerdictRow) {
	if len(rows) == 0 {
		return
	}
	t.head("D  synthetic contexts", "nobody sees logits; * was told how many segments to name")
	last := ""
	for _, d := range rows {
		if head := fmt.Sprintf("%s, n=%d, noise %g", d.Case, d.N, d.Noise); head != last {
			fmt.Fprintf(t.w, "  %s\n", head)
			last = head
		}
		name := d.Method
		if d.Told {
			name += " *"
		}
		fmt.Fprintf(t.w, "    %-16s exact %-34s calls %6.1f, with the verdict %6.1f\n", name, rate(d.Exact), d.Calls, d.AllCalls)
	}
	for _, v := range verdicts {
		fmt.Fprintf(t.w, "  %-38s noise %-5s %-14s right %-34s calls %5.1f\n", v.Case, strconv.FormatFloat(v.Noise, 'g', -1, 64), v.Method, rate(v.Right), v.Calls)
	}
}

func (t *benchTable) cost(rows []ccrbench.CostRow) {
	if len(rows) == 0 {
		return
	}
	t.head("E  cost on benign runs", "calls added: one probe a gated step, and whole verdicts with simulated answers")
	for _, c := range rows {
		if c.Model == "" || t.models {
			fmt.Fprintf(t.w, "  %-56s %4d runs, %5d steps, gated %4d: first probe +%.1f %%, verdicts +%.1f %%, held %s\n",
				who(c.Suite, c.Model), c.Runs, c.Steps, c.Gated, 100*c.First, 100*c.Extra, rate(c.Held))
		}
	}
}
