// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strconv"
	"strings"
	"time"
)

// A Guard is what a file says of pellucid guard. A zero member is that verb's default.
type Guard struct {
	Upstream string   // URL of the provider
	Key      Value    // for the provider; "": clients bring their own
	Audit    bool     // nothing is held
	FailOpen bool     // what was not decided goes through
	Buffer   bool     // every answer is held whole
	Pass     []string // routes that are forwarded although nothing inspects their answers

	Tools          []GuardTool // the first whose pattern matches decides
	NoGuess        bool        // what no pattern matches is privileged, whatever it is called
	UntrustedTools []string    // patterns: the description is a stranger's text as well

	Calls, Concurrency int
	Time               time.Duration
	Factor, MinTokens  int // tokens, of what the held answer has cost, and in any case
	Strategy           string
	Refine             bool
	Calibration        string // file, absolute; "": not measured
	Severity           GuardSeverity
	Blame              *int // thousandths: from which severity a source loses trust
	Quarantine         GuardQuarantine
}

// A GuardTool says how much is at stake when tools are called whose names match.
type GuardTool struct {
	Tool           string // pattern
	Privilege      int    // thousandths; 0: its calls need no verdict
	Critical, Free []string
}

// GuardSeverity is where the bands of severity begin, in thousandths; zero: the usual ones.
type GuardSeverity struct{ Low, Medium, High, Critical int }

// GuardQuarantine says what gateways withhold once a text has taken control.
type GuardQuarantine struct {
	Scope string        // "text", "tool", "server", "off"; "": the default
	From  *int          // severity, in thousandths
	For   time.Duration // 0: the default
}

var (
	strategyWords = []string{"prior", "uniform", "stratified"}
	// scopeWords are what a quarantine may cover.
	scopeWords = []string{"text", "tool", "server", "off"}
)

const (
	maxGuardTools = 1024
	maxGuardCalls = 10_000
	maxGuardNames = 64
)

func (c *compiler) guard(p place) {
	g := &Guard{}
	before := len(c.problems)
	var calibration place
	c.object(p, members{
		"upstream": func(p place) { g.Upstream = c.upstream(p) },
		"key":      func(p place) { g.Key = c.reference(p) },
		"mode":     func(p place) { g.Audit = choice(&c.reader, p, []string{"enforce", "audit"}, []bool{false, true}) },
		"fail":     func(p place) { g.FailOpen = choice(&c.reader, p, []string{"closed", "open"}, []bool{false, true}) },
		"buffer":   func(p place) { g.Buffer = c.boolean(p) },
		"pass": func(p place) {
			g.Pass = c.checkedList(p, maxGuardNames, `a method and a path, such as "GET /v1/files/*?limit&after"`, isGuardRoute)
		},
		"guess": func(p place) { g.NoGuess = !c.boolean(p) },
		"untrusted_tools": func(p place) {
			g.UntrustedTools = c.checkedList(p, maxGuardTools, "the name of a tool, where * stands for any characters", isToolKey)
		},
		"tools": func(p place) {
			c.names(p, maxGuardTools, isToolKey, func(name string, _, val place) { g.Tools = append(g.Tools, c.guardTool(name, val)) })
		},
		"budget": func(p place) {
			c.object(p, members{
				"calls":       func(p place) { g.Calls = c.integer(p, 1, maxGuardCalls) },
				"concurrency": func(p place) { g.Concurrency = c.integer(p, 1, 64) },
				"time":        func(p place) { g.Time = c.duration(p, time.Second, time.Hour) },
				"factor":      func(p place) { g.Factor = c.integer(p, 1, 1000) },
				"min_tokens":  func(p place) { g.MinTokens = c.integer(p, 1, 100_000_000) },
			})
		},
		"strategy":    func(p place) { g.Strategy = choice(&c.reader, p, strategyWords, strategyWords) },
		"refine":      func(p place) { g.Refine = c.boolean(p) },
		"calibration": func(p place) { calibration = p },
		"severity": func(p place) {
			s := &g.Severity
			c.object(p, members{
				"low": func(p place) { s.Low = c.share(p) }, "medium": func(p place) { s.Medium = c.share(p) },
				"high": func(p place) { s.High = c.share(p) }, "critical": func(p place) { s.Critical = c.share(p) },
			}, "low", "medium", "high", "critical")
			if s.Low > s.Medium || s.Medium > s.High || s.High > s.Critical {
				c.report(p, "the bands do not begin in their order")
			}
		},
		"blame": func(p place) { n := c.share(p); g.Blame = &n },
		"quarantine": func(p place) {
			q := &g.Quarantine
			c.object(p, members{
				"scope": func(p place) { q.Scope = choice(&c.reader, p, scopeWords, scopeWords) },
				"from":  func(p place) { n := c.share(p); q.From = &n },
				"for":   func(p place) { q.For = c.duration(p, time.Minute, 365*24*time.Hour) },
			})
		},
	})
	if calibration.node != nil {
		if s := c.text(calibration, maxText); s != "" {
			g.Calibration = c.opt.locate(strings.TrimPrefix(s, "file:"))
		}
	}
	if len(c.problems) > before {
		return
	}
	c.secret.add(g.Key.text)
	c.out.Guard = g
}

// isGuardRoute reports whether s names a method and a path; package guard says which of
// them it forwards.
func isGuardRoute(s string) bool {
	method, path, ok := strings.Cut(s, " ")
	return ok && method != "" && len(s) <= maxText && strings.HasPrefix(path, "/v1/")
}

func (c *compiler) upstream(p place) string {
	s := c.text(p, 2048)
	if s != "" && !IsHTTP(s) {
		c.report(p, "want an http or https URL")
	}
	return s
}

func (c *compiler) guardTool(name string, p place) GuardTool {
	t := GuardTool{Tool: name, Privilege: 1000}
	list := func(to *[]string) func(place) {
		return func(p place) {
			*to = c.checkedList(p, maxGuardNames, "the name of an argument", isToolKey)
		}
	}
	c.object(p, members{
		"privilege": func(p place) { t.Privilege = c.share(p) },
		"critical":  list(&t.Critical),
		"free":      list(&t.Free),
	})
	return t
}

// share reads a number from 0 to 1 in thousandths.
func (c *compiler) share(p place) int {
	before := len(c.problems)
	f := c.number(p, 1)
	n := int(f*1000 + 0.5)
	if len(c.problems) == before && float64(n)/1000 != f {
		c.show(p, "want a number from 0 to 1, of at most three decimals")
		return 0
	}
	return n
}

func spellShare(n int) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

func (d *dumper) guard(g *Guard) {
	if g == nil {
		return
	}
	pick := func(no, yes string, v bool) string {
		if v {
			return yes
		}
		return no
	}
	d.object("guard", func() {
		if g.Upstream != "" {
			d.quote("upstream", g.Upstream)
		}
		if g.Key.ref != "" {
			d.quote("key", g.Key.ref)
		}
		d.word("mode", pick("enforce", "audit", g.Audit))
		d.word("fail", pick("closed", "open", g.FailOpen))
		d.boolean("buffer", g.Buffer)
		if len(g.Pass) > 0 {
			d.list("pass", g.Pass)
		}
		d.boolean("guess", !g.NoGuess)
		if len(g.UntrustedTools) > 0 {
			d.list("untrusted_tools", g.UntrustedTools)
		}
		d.guardTools(g.Tools)
		d.guardBudget(g)
		if g.Strategy != "" {
			d.word("strategy", g.Strategy)
		}
		d.boolean("refine", g.Refine)
		if g.Calibration != "" {
			d.quote("calibration", g.Calibration)
		}
		d.guardSeverity(g.Severity)
		if g.Blame != nil {
			d.word("blame", spellShare(*g.Blame))
		}
		d.guardQuarantine(g.Quarantine)
	})
}

func (d *dumper) guardTools(list []GuardTool) {
	if len(list) == 0 {
		return
	}
	d.object("tools", func() {
		for _, t := range list {
			d.object(quoted(t.Tool), func() {
				d.word("privilege", spellShare(t.Privilege))
				if len(t.Critical) > 0 {
					d.list("critical", t.Critical)
				}
				if len(t.Free) > 0 {
					d.list("free", t.Free)
				}
			})
		}
	})
}

func (d *dumper) guardBudget(g *Guard) {
	if g.Calls+g.Concurrency+g.Factor+g.MinTokens+int(g.Time) == 0 {
		return
	}
	number := func(name string, n int) {
		if n > 0 {
			d.integer(name, n)
		}
	}
	d.object("budget", func() {
		number("calls", g.Calls)
		number("concurrency", g.Concurrency)
		if g.Time > 0 {
			d.duration("time", g.Time)
		}
		number("factor", g.Factor)
		number("min_tokens", g.MinTokens)
	})
}

func (d *dumper) guardSeverity(s GuardSeverity) {
	if s == (GuardSeverity{}) {
		return
	}
	d.object("severity", func() {
		d.word("low", spellShare(s.Low))
		d.word("medium", spellShare(s.Medium))
		d.word("high", spellShare(s.High))
		d.word("critical", spellShare(s.Critical))
	})
}

func (d *dumper) guardQuarantine(q GuardQuarantine) {
	if q == (GuardQuarantine{}) {
		return
	}
	d.object("quarantine", func() {
		if q.Scope != "" {
			d.word("scope", q.Scope)
		}
		if q.From != nil {
			d.word("from", spellShare(*q.From))
		}
		if q.For > 0 {
			d.duration("for", q.For)
		}
	})
}

func sameGuard(a, b *Rules) bool {
	key := func(g *Guard) Value {
		if g == nil {
			return Value{}
		}
		return g.Key
	}
	return key(a.Guard) == key(b.Guard) && same(func(d *dumper) { d.guard(a.Guard) }, func(d *dumper) { d.guard(b.Guard) })
}
