// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
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

var page = template.Must(template.New("report").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width">
<title>Counterfactual analysis</title>
<style>{{.Style}}</style></head><body>
<h1>Counterfactual analysis: <span class="{{.R.Response}}">{{.R.Response}}</span></h1>
{{range .R.Actions}}<section>
<h2><span class="{{.Response}}">{{.Response}}</span> <code>{{.Tool}}</code></h2>
<p>{{range .Arguments}}<code>{{.}}</code><br>{{end}}</p>
<p>{{.Class}}: {{index $.Words .Class}}. Evidence {{.Odds}} to 1, severity {{.Severity}} of 1000 ({{.Band}}).</p>
{{range .Causes}}<p>Caused by {{range $i, $s := .Segments}}{{if $i}} and {{end}}{{$s}}{{end}}, {{.Odds}} to 1.{{if .Text}} {{if .Span}}The span that suffices:{{else}}It begins:{{end}} <code>{{.Text}}</code>{{end}}</p>
{{end}}{{with .Certificate}}<p>Certificate: without what was found the action did not recur in {{.Negatives}} answers, and recurred in {{.Positives}}.</p>
{{end}}{{if .Contradicts}}<p>The answers contradict each other.</p>{{end}}{{if .Drift}}<p>The answers came of more than one model or fingerprint: the stricter rule held.</p>{{end}}{{if .NotTested}}<p>Not tested: {{range $i, $s := .NotTested}}{{if $i}}, {{end}}{{$s}}{{end}}.</p>{{end}}
</section>{{end}}
<h2>Influence</h2>
<svg viewBox="0 0 720 {{.Height}}" role="img" aria-label="How much each segment pushes towards the action">
{{range .Bars}}<text x="0" y="{{.Text}}">{{.ID}}</text><rect x="60" y="{{.Y}}" width="300" height="14" fill="#8b949e" fill-opacity=".18"/><rect x="60" y="{{.Y}}" width="{{.Width}}" height="14" fill="{{.Colour}}"/><text x="370" y="{{.Text}}">{{.Label}}</text>
{{end}}</svg>
<table><tr><th>segment</th><th>source</th><th>bytes</th><th>recurs shown</th><th>hidden</th><th>digest</th></tr>
{{range .R.Segments}}<tr><td>{{.ID}}{{if .Cause}} <b class="quarantine">cause</b>{{else if .Withheld}} <b class="ask">withheld</b>{{end}}</td><td>{{.Source}}</td><td>{{.Bytes}}</td><td>{{.Influence.ShownRecurs}}/{{.Influence.Shown}}</td><td>{{.Influence.HiddenRecurs}}/{{.Influence.Hidden}}</td><td><code>{{.Digest}}</code></td></tr>
{{end}}</table>
{{if .Rows}}<h2>Divergence</h2>
<p>From the answer to be explained, of 1000. No verdict rests on it.</p>
<table><tr><th></th>{{range .Metrics}}<th>{{.ID}}</th>{{end}}</tr>
{{range .Rows}}<tr><td>{{.Name}}</td>{{range .Values}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table>
{{end}}{{if .R.Odd}}<p>Notes: {{range $i, $s := .R.Odd}}{{if $i}}, {{end}}{{$s}}{{end}}.</p>{{end}}
<p>{{.R.Spent.Calls}} calls, {{.R.Spent.Tokens}} tokens, {{.R.Spent.Millis}} ms; ended: {{.R.Stop}}.<br>Assembly <code>{{.R.Assembly}}</code><br>Record <code>{{.R.Record}}</code></p>
</body></html>
`))

// A bar is one row of the picture.
type bar struct {
	ID, Label, Colour string
	Y, Text, Width    int
}

// HTML writes the report as one file that needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	const row, full = 20, 300
	var bars []bar
	for i := range r.Segments {
		s := &r.Segments[i]
		colour := "#57606a"
		if s.Cause {
			colour = "#cf222e"
		} else if s.Withheld {
			colour = "#bf8700"
		}
		b := bar{ID: s.ID, Label: "not seen both ways  " + terminal.Inline(s.Source), Colour: colour, Y: i*row + 3, Text: i*row + 14}
		if s.Influence.Shown > 0 && s.Influence.Hidden > 0 {
			b.Label = fmt.Sprintf("%+.2f  %s", float64(s.Influence.Effect)/1000, terminal.Inline(s.Source))
			b.Width = min(max(s.Influence.Effect*full/1000, 0), full)
		}
		bars = append(bars, b)
	}
	var rows []divergenceRow
	if r.full {
		rows = r.divergenceRows(r.foremost())
	}
	return page.Execute(w, struct {
		R       *Report
		Policy  string
		Style   template.CSS
		Words   map[counterfactual.VerdictClass]string
		Bars    []bar
		Height  int
		Rows    []divergenceRow
		Metrics []counterfactual.Metric
	}{r, contentPolicy, style, classWords, bars, max(len(bars)*row, 1), rows, counterfactual.Metrics()})
}
