// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy/values"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/platform/egress"
)

// A Guard is what a file says of pellucid guard. A zero member is that verb's default.
type Guard struct {
	Upstream string    // URL of the provider
	Key      Value     // for the provider; "": clients bring their own
	AWS      *GuardAWS // keys for Amazon Bedrock; nil: none
	Audit    bool      // nothing is held
	FailOpen bool      // what was not decided goes through
	Buffer   bool      // every answer is held whole
	Pass     []string  // routes that are forwarded although nothing inspects their answers
	Headers  []string  // of requests that go out with their probes

	Planner  GuardPlanner
	Verdicts delegation.Policy // what each verdict does, where the file says
	// IgnoreReaders leaves calls alone that are not privileged, whatever address they reach.
	IgnoreReaders bool

	Tools          []GuardTool // the first whose pattern matches decides
	NoGuess        bool        // what no pattern matches is privileged, whatever it is called
	SharedHosts    []string    // where each owner has pages below the first part of the path
	UntrustedTools []string    // patterns: the description is a stranger's text as well
	Capsules       []GuardCapsule
	AttenuateBelow int // trust in thousandths, below which a repair shows a source as quoted data

	Lists  map[string]string // files of values, absolute, by name
	Values []values.Rule     // about the values of calls
	Task   string            // "user-turns", "declared" or "both"

	Calls, Concurrency int
	Time               time.Duration
	Factor, MinTokens  int // tokens, of what the held answer has cost, and in any case
	Strategy           string
	Refine             bool
	Calibration        string // file, absolute; "": not measured
	Severity           GuardSeverity
	Blame              *int // thousandths: from which severity a source loses trust
	Quarantine         GuardQuarantine
	Context            bool // what the model has read is kept with a call that is held
}

// A GuardAWS is what signs requests to Amazon Bedrock.
type GuardAWS struct {
	AccessKey, SecretKey, SessionToken Value  // the last "": the keys are not temporary
	Region, Service                    string // Region "": that of the upstream's host

	resolve func(ref string) (string, error)
}

// Read reads one of the values anew where a file holds it, so that temporary keys may change.
func (a *GuardAWS) Read(v Value) (string, error) {
	if a.resolve != nil && strings.HasPrefix(v.ref, "file:") {
		return a.resolve(v.ref)
	}
	return v.text, nil
}

// AWSFromEnv are the keys in the variables that Amazon's clients read, with what else a says;
// a may be nil.
func AWSFromEnv(o Options, a *GuardAWS) (*GuardAWS, error) {
	out := &GuardAWS{Service: "bedrock"}
	if a != nil {
		out.Region, out.Service = a.Region, a.Service
	}
	var err error
	if out.AccessKey, err = o.Reference("env:AWS_ACCESS_KEY_ID"); err != nil {
		return nil, err
	}
	if out.SecretKey, err = o.Reference("env:AWS_SECRET_ACCESS_KEY"); err != nil {
		return nil, err
	}
	if token, err := o.Reference("env:AWS_SESSION_TOKEN"); err == nil { // only temporary keys have one
		out.SessionToken = token
	}
	return out, nil
}

func (a *GuardAWS) members() []member {
	label := func(v *string, usual string) value { return checked(v, usual, "a label", isName) }
	return []member{
		{"access_key", live | needed, reference(&a.AccessKey), "access key id"},
		{"secret_key", live | needed, reference(&a.SecretKey), "secret access key"},
		{"session_token", live, reference(&a.SessionToken), "token of temporary keys"},
		{"region", live, label(&a.Region, ""), "region of the service; default: the one in the host of the upstream"},
		{"service", live, label(&a.Service, "bedrock"), "name of the service in the signature"},
	}
}

// A GuardPlanner says which model is asked what a request may need, and how.
type GuardPlanner struct {
	Model    *Review // nil: that of the request, with the credentials of the client
	Examples string  // file, absolute; "": none
	Confirm  bool    // ask a second question
	Ahead    bool    // while the main request is under way
	// SkipStated leaves out calls whose values and verb are the user's.
	SkipStated bool
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

func (g *Guard) members() []member {
	return []member{
		{"upstream", live, parsed(&g.Upstream, "an http or https URL", (*compiler).upstream), "the provider, such as https://api.openai.com/v1"},
		{"key", live, reference(&g.Key), "key for the provider; without it, clients bring their own"},
		{"aws", live, optional(&g.AWS, (*GuardAWS).members, func(c *compiler, _ place, a *GuardAWS, sound bool) bool {
			opt := c.opt
			a.resolve = opt.resolve
			return sound
		}), "keys of the guard's own by which requests to Amazon Bedrock are signed; a `file:` is read for each request"},
		{"mode", live, word(&g.Audit, false, enforceOrAudit, []bool{false, true}), "`enforce` holds privileged calls; `audit` holds nothing, and records what would have been held"},
		{"fail", live, word(&g.FailOpen, false, []string{"closed", "open"}, []bool{false, true}), "what happens to a call that could not be decided: `closed` refuses it, `open` lets it through"},
		{"buffer", live, boolean(&g.Buffer, false), "hold every answer whole: a streamed one can be repaired then, and text comes only at its end"},
		{"pass", live, list(&g.Pass, nil, maxGuardNames, `a method and a path, such as "GET /v1/files/*?limit&after"`, isGuardRoute),
			"routes that are forwarded although nothing inspects their answers"},
		{"headers", live, list(&g.Headers, nil, maxGuardNames, "the name of a header, or its beginning and a *", isGuardHeader),
			"further headers of a request that go out with its probes, such as `Helicone-*`: those by which a gateway on the way knows whose request it is"},
		{"guess", live, opposite(&g.NoGuess), "take a tool for read-only whose name says so; `false`: what no pattern matches is privileged"},
		{"untrusted_tools", live, list(&g.UntrustedTools, nil, maxGuardTools, "the name of a tool, where * stands for any characters", isToolKey),
			"tools whose description is third-party text as well"},
		{"capsules", live, guardCapsules(g), "texts that are withheld together, and what must not be called while one of them is in the context"},
		{"attenuate_below", live, share(&g.AttenuateBelow, 0), "[trust](trust.md) below which a repaired answer is made with a text shown as quoted data; what no fence proves has the trust 0"},
		{"planner", live, section(g.Planner.members), "who says which calls a request may need"},
		{"verdicts", live, section(func() []member { return verdicts(&g.Verdicts) }).when(func() bool { return len(g.Verdicts) > 0 }), "what happens to a call, by what was found out about it"},
		{"shared_hosts", live, list(&g.SharedHosts, nil, maxGuardNames, "the name of a host in small letters", isSharedHost), "further hosts, such as a GitLab of your own, where each owner has pages below the first part of the path: that the user names one owner's page says nothing of another's"},
		{"readers", live, opposite(&g.IgnoreReaders), "look at calls of read-only tools, too, if they go to an address that the user has not named"},
		{"tools", live, guardTools(g), "what is at stake, by the name or pattern of tools; the first that matches decides"},
		{"lists", live, guardLists(g), "files of values, one on a line, that `listed` looks up in the conditions of `values`"},
		{"values", live, guardValues(g), "rules about the values of calls"},
		{"task", live, word(&g.Task, "declared", taskWords, taskWords), "what counts as the user's words: `user-turns`; the task that the host declares in `X-Pellucid-Task`, where it is there; or `both`"},
		{"budget", live, section(func() []member {
			return []member{
				{"calls", live, integer(&g.Calls, 0, 1, maxGuardCalls), "calls of the model that one decision may take"},
				{"concurrency", live, integer(&g.Concurrency, 0, 1, 64), "of these at one time"},
				{"time", live, duration(&g.Time, 0, time.Second, time.Hour), "that one decision may take"},
				{"factor", live, integer(&g.Factor, 0, 1, 1000), "tokens, as a multiple of what the held answer has cost"},
				{"min_tokens", live, integer(&g.MinTokens, 0, 1, 100_000_000), "tokens in any case"},
			}
		}), "what one decision may cost"},
		{"strategy", live, word(&g.Strategy, "", strategyWords, strategyWords), "the order in which pieces are withheld"},
		{"refine", live, boolean(&g.Refine, false), "search inside the piece that took control"},
		{"calibration", live, parsed(&g.Calibration, "PATH or `file:PATH`", (*compiler).file), "a file of `pellucid-lab calibrate`; default: not measured"},
		{"severity", live, section(g.Severity.members).then(func(c *compiler, p place) {
			if s := g.Severity; s.Low > s.Medium || s.Medium > s.High || s.High > s.Critical {
				c.report(p, "the bands do not begin in their order")
			}
		}).when(func() bool { return g.Severity != GuardSeverity{} }), "where the bands of severity begin"},
		{"blame", live, someShare(&g.Blame), "severity from which a source loses trust"},
		{"quarantine", live, section(func() []member {
			q := &g.Quarantine
			return []member{
				{"scope", live, word(&q.Scope, "", scopeWords, scopeWords), "what gateways on the same store hold once a text has taken control: that text, all results of its tool, or of its server"},
				{"from", live, someShare(&q.From), "severity from which they do"},
				{"for", live, duration(&q.For, 0, time.Minute, 365*24*time.Hour), "how long"},
			}
		}), "what becomes of a source that took control"},
		{"context", live, boolean(&g.Context, false), "keep the untrusted text that the model has read, encrypted, with a call that waits for a reviewer"},
	}
}

func (p *GuardPlanner) members() []member {
	return []member{
		{"model", live, optional(&p.Model, (*Review).endpoint, (*compiler).review), "the planner's own model; default: that of the request, with the client's key"},
		{"examples", live, parsed(&p.Examples, "PATH or `file:PATH`", (*compiler).file), "a file of requests and their plans, for a small model"},
		{"confirm", live, boolean(&p.Confirm, false), "ask as well whether the request asks for what the tool does: better with a small model"},
		{"always", live, opposite(&p.SkipStated), "ask, too, where all values of the call are the user's, and the request has the tool's verb"},
		{"ahead", live, boolean(&p.Ahead, false), "ask while the main request is under way: faster, and one call for each turn of the user"},
	}
}

// verdicts are the members that say what each verdict does.
func verdicts(p *delegation.Policy) (out []member) {
	for _, v := range delegation.Verdicts {
		one := delegation.Response("")
		x := word(&one, "", responseWords, delegation.Responses)
		read := x.read
		x.reset = nil
		x.read = func(c *compiler, at place) {
			if read(c, at); *p == nil {
				*p = delegation.Policy{}
			}
			(*p)[v] = one
		}
		x.write = func(d *dumper, name string) {
			if r, ok := (*p)[v]; ok {
				d.word(name, string(r))
			}
		}
		out = append(out, member{string(v), live, x, delegation.Meaning(v) + "; default: `" + string(delegation.Default(v)) + "`"})
	}
	return out
}

func (c *compiler) guard(_ place, _ *Guard, sound bool) bool { return sound }

func (s *GuardSeverity) members() []member {
	return []member{
		{"low", needed, share(&s.Low, 0), "where low severity begins"},
		{"medium", needed, share(&s.Medium, 0), "where medium severity begins"},
		{"high", needed, share(&s.High, 0), "where high severity begins"},
		{"critical", needed, share(&s.Critical, 0), "where critical severity begins"},
	}
}

func guardTools(g *Guard) value {
	return named(maxGuardTools, isToolKey, (*GuardTool).members, newGuardTool,
		func(c *compiler, name string, _, val place) {
			t := newGuardTool()
			t.Tool = name
			c.object(val, t.members())
			g.Tools = append(g.Tools, *t)
		},
		func(yield func(string, *GuardTool) bool) {
			for i := range g.Tools {
				if !yield(g.Tools[i].Tool, &g.Tools[i]) {
					return
				}
			}
		})
}

func newGuardTool() *GuardTool {
	t := new(GuardTool)
	reset(t.members())
	return t
}

func (t *GuardTool) members() []member {
	names := func(v *[]string) value { return list(v, nil, maxGuardNames, "the name of an argument", isToolKey) }
	return []member{
		{"privilege", live, share(&t.Privilege, 1000), "how much is at stake; 0: its calls need no verdict"},
		{"critical", live, names(&t.Critical), "arguments that have to come from a trusted text"},
		{"free", live, names(&t.Free), "arguments that may come from any text"},
	}
}

// isGuardRoute reports whether s names a method and a path; package guard says which of
// them it forwards.
func isGuardRoute(s string) bool {
	method, path, ok := strings.Cut(s, " ")
	below := strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1beta/") || strings.HasPrefix(path, "/openai/")
	return ok && method != "" && len(s) <= maxText && below
}

func isSharedHost(s string) bool {
	return strings.Contains(s, ".") && !strings.ContainsFunc(s, func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '-') })
}

func isGuardHeader(s string) bool {
	name := strings.TrimSuffix(s, "*")
	return len(name) >= 2 && len(name) <= 128 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// file reads the name of a file, relative to that of the configuration.
func (c *compiler) file(p place) string {
	if s := c.text(p, maxText); s != "" {
		return c.opt.locate(strings.TrimPrefix(s, "file:"))
	}
	return ""
}

func (c *compiler) upstream(p place) string {
	s := c.text(p, 2048)
	if s != "" && !egress.IsHTTP(s) {
		c.report(p, "want an http or https URL")
	}
	return s
}

// share is a number from 0 to 1, kept in thousandths.
func share(v *int, or int) value {
	return value{
		reset: func() { *v = or },
		read:  func(c *compiler, p place) { *v = c.share(p) },
		write: func(d *dumper, name string) { d.word(name, strconv.FormatFloat(float64(*v)/1000, 'f', -1, 64)) },
		kind:  "number, 0 to 1, at most three decimals", schema: schema{"type": "number", "minimum": 0, "maximum": 1},
	}
}

// someShare is one that need not be said.
func someShare(v **int) value {
	n := new(int)
	x := share(n, 0).then(func(*compiler, place) { *v = n })
	x.reset = nil
	x.write = func(d *dumper, name string) {
		if *v != nil {
			share(*v, 0).write(d, name)
		}
	}
	return x
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
