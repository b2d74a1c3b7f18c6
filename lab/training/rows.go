// SPDX-License-Identifier: Apache-2.0

package training

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/lab/injections"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// A text is one row of the data, read.
type text struct {
	id     string
	family string
	lang   string // where the data say so
	group  string // families that share authors, templates or payloads; of our own texts, the family
	author string // the group; of our own texts, what is written alike
	attack bool
	free   bool   // its licence lets a model be trained on it
	clean  string // as the boundary shows it to a classifier
	sort   int    // which calibration it has
	held   bool   // of our own texts: on the held side
	test   bool   // of our own texts: by a test author, and so not free

	windows []window
}

// A side is the attacks or the benign texts of a group.
type side struct {
	group  string
	attack bool
}

func (t *text) side() side { return side{t.group, t.attack} }

// A window is what is judged together.
type window struct {
	features   []uint32
	norm       float32
	start, end int     // in the text
	holds      float32 // the share of the order that it holds; less than 0: it is not known where the order stands
}

// permissive lists the licences under which a text may be trained on: those that
// ask for no more than to be named, which MODELS.md does.
var permissive = []string{"MIT", "MIT (README badge)", "MIT (README)", "MIT repo", "Apache-2.0", "Apache-2.0 (HF card)", "BSD-3-Clause", "ISC",
	"Unicode-DFS-2016", "CC BY 4.0", "MIT (with garak Apache-2.0, PromptInject MIT parts)", "MIT (OpenAI Evals invoices)", "project-own"}

// groups names what is left out together, by the beginning of a family's name; a
// family that is not named is a group of its own.
var groups = []struct{ prefix, group string }{
	{"ipi-agentdojo", "agentdojo"}, {"ipi-agentdyn", "agentdojo"}, {"agentdojo", "agentdojo"}, {"agentdyn", "agentdojo"},
	{"ipi-bipia", "bipia"}, {"email", "bipia"}, {"table", "bipia"}, {"code-stackoverflow", "bipia"},
	{"ipi-garak", "garak"},
	{"ipi-cyberseceval", "cyberseceval"}, {"direct-cyberseceval", "cyberseceval"}, {"cyberseceval", "cyberseceval"},
	{"ipi-asb", "asb"}, {"tool-poison-asb", "asb"}, {"tool-description-asb", "asb"},
	{"direct-deepset", "deepset"}, {"deepset", "deepset"},
	{"direct-pallms", "pallms"},
	{"direct-openclay", "openclay"}, {"openclay", "openclay"},
	{"direct-piguard", "piguard"}, {"piguard", "piguard"}, {"notinject", "notinject"},
	{"direct-giskard", "giskard"}, {"direct-preamble", "preamble"},
	{"tool-poison", "tool-poison"}, {"tool-description-safe-mcp", "tool-poison"}, {"ipi-tool-return", "tool-poison"},
	{"egress", "egress"}, {"taxonomy", "taxonomy"},
	{"tool-description", "tool-description"}, {"server-instructions", "tool-description"},
	{"code", "code"}, {"git", "code"}, {"file-listing", "code"}, {"math-agda", "code"},
	{"agents-md", "agent-instructions"}, {"agent-skill", "agent-instructions"},
	{"tldr", "tldr"}, {"ud-", "ud"}, {"udhr", "udhr"}, {"emoji", "emoji"},
}

func groupOf(family string) string {
	for _, g := range groups {
		if strings.HasPrefix(family, g.prefix) {
			return g.group
		}
	}
	return family
}

// judged reports whether a family is text whose meaning a model can judge. The
// others are inputs for what scrubbing undoes (derived, order, uri, length), for
// escapes and for browsers.
func judged(family string) bool {
	for _, p := range []string{"derived-", "order-", "uri-", "length-", "html-js", "ansi-", "unicode-", "markdown-exfil", "chat-template", "robustness-blns", "utf8-demo"} {
		if strings.HasPrefix(family, p) {
			return false
		}
	}
	return true
}

// load reads every row under dir, and which features are kinds of words.
func load(dir string) (all []*text, kind []bool, err error) {
	s, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP})
	if err != nil {
		return nil, nil, err
	}
	paths, err := datatest.Files(dir)
	if err != nil {
		return nil, nil, err
	}
	free := map[string]bool{}
	for _, l := range permissive {
		free[l] = true
	}
	kind = make([]bool, local.Buckets)
	var r scrub.Result
	for _, path := range paths {
		err := datatest.Read(path, func(row datatest.Row) error {
			if !judged(row.Family) {
				return nil
			}
			s.Scrub(row.Text, &r)
			t := &text{id: row.ID, family: row.Family, lang: languageOf(row.Notes), group: groupOf(row.Family), author: groupOf(row.Family), attack: row.Attack, free: free[row.Licence], clean: r.Clean.String()}
			t.windows, t.sort = windowsOf(t.clean, kind)
			all = append(all, t)
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return all, kind, nil
}

// languageOf is the language that a note names.
func languageOf(notes string) string {
	_, l, _ := strings.Cut(notes, "lang=")
	l, _, _ = strings.Cut(l, ";")
	return l
}

// own reads the texts that were written for this project, and those of the packages in folder.
func own(folder string, kind []bool) (all []*text, err error) {
	s, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP})
	if err != nil {
		return nil, err
	}
	rows, err := injections.Rows(injections.Seed)
	if err != nil {
		return nil, err
	}
	more, err := injections.Translations(folder, injections.Seed)
	if err != nil {
		return nil, err
	}
	var r scrub.Result
	apart := slices.Clone(kind) // so that texts of test authors change nothing in the weights
	for _, row := range append(rows, more...) {
		if row.Attack && slices.Contains(unsaid, row.Family) {
			continue
		}
		kind := kind
		if row.Test {
			kind = apart
		}
		s.Scrub(row.Text, &r)
		t := &text{id: row.ID, family: ownPrefix + row.Family, lang: row.Language, group: ownPrefix + row.Family, author: ownPrefix + row.Family, attack: row.Attack, free: !row.Test, held: row.Held, test: row.Test, clean: r.Clean.String()}
		t.windows, t.sort = windowsOf(t.clean, kind)
		if row.Order != "" {
			s.Scrub(row.Order, &r)
			t.place(r.Clean.String())
		}
		all = append(all, t)
	}
	return all, nil
}

// place tells the windows which part of an order they hold, where it is found in the text.
func (t *text) place(order string) {
	at, n := -1, 0
	for _, way := range []*strings.Replacer{strings.NewReplacer(), strings.NewReplacer("\n", " "), strings.NewReplacer("\n", `\n`, `"`, `\"`, `\`, `\\`)} {
		form := way.Replace(order)
		if at, n = strings.Index(t.clean, form), len(form); at >= 0 {
			break
		}
	}
	if at < 0 {
		return
	}
	for i := range t.windows {
		w := &t.windows[i]
		w.holds = float32(max(0, min(at+n, w.end)-max(at, w.start))) / float32(n)
	}
}

// windowsOf reads the features of a text, window by window, and marks those that
// are kinds.
func windowsOf(s string, kind []bool) (out []window, sort int) {
	var r local.Reader
	var all []uint32
	var ends, starts, stops []int
	var c local.Count
	for r.Reset(s); r.Next(); {
		c.Add(&r)
		all = append(all, r.Features[:r.Count]...)
		for _, f := range r.Features[r.Words:r.Count] {
			kind[f] = true
		}
		ends = append(ends, len(all))
		start, end := r.Span()
		starts, stops = append(starts, start), append(stops, end)
	}
	from := func(token int) int {
		if token == 0 {
			return 0
		}
		return ends[token-1]
	}
	for _, size := range local.Windows {
		for i := 0; i < len(ends); i += size / 2 {
			end := min(i+size, len(ends))
			i = max(0, min(i, end-size))
			f := all[from(i):ends[end-1]]
			out = append(out, window{f, local.Norm(len(f)), starts[i], stops[end-1], -1})
			if end == len(ends) {
				break
			}
		}
		if len(ends) <= size {
			break // a larger window would be the same
		}
	}
	return out, c.Sort()
}
