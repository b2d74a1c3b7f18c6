// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// style is the only style of the HTML report; the policy in its head names its hash
// and lets nothing else in: no script, no image, no connection.
const style = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}code{font:13px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.allow{color:#116329}.ask{color:#7d4e00}.hold,.quarantine{color:#a40e26}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid #d0d7de;vertical-align:top}
svg{width:100%;height:auto}svg text{font:12px ui-monospace,monospace;fill:#1b1f24}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}svg text{fill:#e6edf3}td,th{border-color:#30363d}.allow{color:#56d364}.ask{color:#e3b341}.hold,.quarantine{color:#ff7b72}}`

var contentPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

// A page writes HTML: what its methods take as values is escaped, and stands in text or in a
// quoted attribute. It is not html/template, which calls methods by name: with it the linker
// keeps every exported method of the program, 5 MB of the binary.
type page struct{ strings.Builder }

// put writes format with its values escaped.
func (p *page) put(format string, values ...any) {
	for i, v := range values {
		values[i] = html.EscapeString(fmt.Sprint(v))
	}
	fmt.Fprintf(p, format, values...)
}

// when writes text, which is HTML, where it holds.
func (p *page) when(holds bool, text string) {
	if holds {
		p.WriteString(text)
	}
}

// HTML writes the report as one file that needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	var p page
	p.put(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%v">
<meta name="viewport" content="width=device-width">
<title>Counterfactual analysis</title>
<style>`, contentPolicy)
	p.WriteString(style)
	p.put("</style></head><body>\n<h1>Counterfactual analysis: <span class=\"%v\">%v</span></h1>\n", r.Response, r.Response)
	for i := range r.Attributions {
		p.action(&r.Attributions[i])
	}
	for _, b := range r.Breaches {
		p.put("<p><b class=\"quarantine\">breach</b> %v</p>\n", b.words())
	}
	p.influence(r)
	if r.full {
		p.divergence(r.metrics, r.divergenceRows(r.foremost()))
	}
	if len(r.Odd) > 0 {
		p.put("<p>Notes: %v.</p>\n", strings.Join(r.Odd, ", "))
	}
	if e := r.Embedding; e != nil && e.Failed > 0 {
		p.put("<p>Note: %v.</p>\n", e.words())
	}
	p.put("<p>%v calls, %v tokens, %v ms; ended: %v.<br>Assembly <code>%v</code><br>Record <code>%v</code></p>\n</body></html>\n",
		r.Spent.Calls, r.Spent.Tokens, r.Spent.Millis, r.Stop, r.Assembly, r.Record)
	_, err := io.WriteString(w, p.String())
	return err
}

// proposal writes the attribution of one proposal and what has caused it.
func (p *page) action(a *Attribution) {
	p.put("<section>\n<h2><span class=\"%v\">%v</span> <code>%v</code></h2>\n<p>", a.Response, a.Response, a.Tool)
	for _, argument := range a.Arguments {
		p.put("<code>%v</code><br>", argument)
	}
	p.put("</p>\n<p>%v: %v. Evidence %v to 1, severity %v of 1000 (%v).</p>\n", a.Class, classWords[a.Class], a.Odds, a.Severity, a.Band)
	for _, c := range a.Causes {
		p.put("<p>Caused by %v, %v to 1.", strings.Join(c.Segments, " and "), c.Odds)
		if c.Text != "" {
			what := "It begins:"
			if c.Span {
				what = "The span that suffices:"
			}
			p.put(" %v <code>%v</code>", what, c.Text)
		}
		p.WriteString("</p>\n")
	}
	if c := a.Certificate; c != nil {
		p.put("<p>Certificate: without what was found the action did not recur in %v answers, and recurred in %v.</p>\n", c.Negatives, c.Positives)
	}
	p.when(a.Contradicts, "<p>The answers contradict each other.</p>")
	p.when(a.Drift, "<p>The answers came of more than one model or fingerprint: the stricter rule held.</p>")
	if len(a.NotTested) > 0 {
		p.put("<p>Not tested: %v.</p>", strings.Join(a.NotTested, ", "))
	}
	p.WriteString("\n</section>")
}

// influence writes how much each segment pushes towards the proposal: as a picture, and as a table.
func (p *page) influence(r *Report) {
	const row, full = 20, 300
	p.put("\n<h2>Influence</h2>\n<svg viewBox=\"0 0 720 %v\" role=\"img\" aria-label=\"How much each segment pushes towards the action\">\n", max(len(r.Segments)*row, 1))
	for i := range r.Segments {
		s := &r.Segments[i]
		colour, width, label := "#57606a", 0, "not seen both ways"
		if s.Cause {
			colour = "#cf222e"
		} else if s.Withheld {
			colour = "#bf8700"
		}
		if s.Influence.Shown > 0 && s.Influence.Hidden > 0 {
			label = fmt.Sprintf("%+.2f", float64(s.Influence.Effect)/1000)
			width = min(max(s.Influence.Effect*full/1000, 0), full)
		}
		y, text := i*row+3, i*row+14
		p.put(`<text x="0" y="%v">%v</text><rect x="60" y="%v" width="300" height="14" fill="#8b949e" fill-opacity=".18"/>`, text, s.ID, y)
		p.put(`<rect x="60" y="%v" width="%v" height="14" fill="%v"/><text x="370" y="%v">%v  %v</text>`+"\n", y, width, colour, text, label, terminal.Inline(s.Source))
	}
	p.WriteString("</svg>\n<table><tr><th>segment</th><th>source</th><th>bytes</th><th>recurs shown</th><th>hidden</th><th>digest</th></tr>\n")
	for _, s := range r.Segments {
		p.put("<tr><td>%v", s.ID)
		p.when(s.Cause, ` <b class="quarantine">cause</b>`)
		p.when(s.Withheld && !s.Cause, ` <b class="ask">withheld</b>`)
		in := s.Influence
		p.put("</td><td>%v</td><td>%v</td><td>%v/%v</td><td>%v/%v</td><td><code>%v</code></td></tr>\n", s.Source, s.Bytes, in.ShownRecurs, in.Shown, in.HiddenRecurs, in.Hidden, s.Digest)
	}
	p.WriteString("</table>\n")
}

// divergence writes how far answers with pieces withheld are from the answer to be explained.
func (p *page) divergence(metrics []string, rows []divergenceRow) {
	if len(rows) == 0 {
		return
	}
	p.WriteString("<h2>Divergence</h2>\n<p>From the answer to be explained, of 1000. No verdict rests on it.</p>\n<table><tr><th></th>")
	for _, id := range metrics {
		p.put("<th>%v</th>", id)
	}
	p.WriteString("</tr>\n")
	for _, row := range rows {
		p.put("<tr><td>%v</td>", row.Name)
		for _, v := range row.Values {
			p.put("<td>%v</td>", v)
		}
		p.WriteString("</tr>\n")
	}
	p.WriteString("</table>\n")
}
