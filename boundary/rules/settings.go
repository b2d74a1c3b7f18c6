// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

const (
	maxToolName = 256 // bytes
	maxTimeout  = 24 * time.Hour
)

// Bounds of max_chars.
const (
	minChars = 8       // of scrub.Policy
	maxChars = 1 << 25 // more than the largest message holds
)

// settings are what defaults, a server and a tool may say. Each begins as a copy
// of those around it, so that what is not said is inherited.
type settings struct {
	denied      bool
	profile     gateway.Profile
	tokens      scrub.TokenAction
	frame       frame.Kind
	framing     gateway.Framing
	validation  gateway.Validation
	passes      bool // a result that its schema cannot judge
	maxChars    int
	timeout     time.Duration
	hold        []finding.Code
	privileged  bool
	classifiers []string
	also        []string // of gateway.Elsewheres
	capture     []string // words of captureParts
	captureOf   []string
	llm         llmSettings
}

// llmSettings are the source form of frame.LLMPolicy and gateway.LLM.
type llmSettings struct {
	provider, tag string
	grounded      bool
	source        string
	model         *string           // nil: as the server says; "": none, a search
	models        map[string]string // by tool, of a server
}

// A level is where settings stand.
type level int

const (
	ofDefaults level = iota
	ofServer
	ofTool
)

var (
	// frames are the kinds of frame of a tool's text, profiles the ways to scrub it.
	frames   = choices[frame.Kind]{[]string{"fence", "meta", "llm"}, []frame.Kind{frame.KindFence, frame.KindMeta, frame.KindLLM}}
	profiles = choices[gateway.Profile]{[]string{"faithful", "mcp", "veritas-0.1"}, []gateway.Profile{gateway.Faithful, gateway.MCP, veritas}}
	// tokenActions are what becomes of control tokens; what is not said is the profile's.
	tokenActions = choices[scrub.TokenAction]{[]string{"defuse", "remove", "keep"}, []scrub.TokenAction{scrub.DefuseTokens, scrub.RemoveTokens, scrub.KeepTokens}}
	// modes are those of a check that runs before the delivery.
	modes = choices[policy.Mode]{[]string{"enforce", "audit", "off"}, []policy.Mode{policy.Enforce, policy.Audit, policy.Off}}

	// validations are what becomes of messages that do not fit their schemas.
	validations = choices[gateway.Validation]{[]string{"enforce", "strict", "audit", "off"},
		[]gateway.Validation{{}, {Strict: true}, {Mode: policy.Audit}, {Mode: policy.Off}}}

	// captureParts are the texts of a call, and captureVerdicts the verdicts on it.
	captureParts    = []string{"arguments", "received", "delivered"}
	captureVerdicts = []string{string(gateway.Passed), string(gateway.Changed), string(gateway.Withheld), string(gateway.Dropped)}

	// alsoWords are what classifiers judge beside results of tools.
	alsoWords = wordsOf(gateway.Elsewheres)

	// Of a tool the last of fenceWords alone can be said: it reads no resource.
	fenceWords      = []string{"resources", "prompts", anyType}
	structuredWords = []string{"keep", "text"}
)

// members are what may be set at a level, in a file of r.
func (s *settings) members(r *Rules, at level) []member {
	var out []member
	if at == ofTool {
		out = []member{{"allow", live, opposite(&s.denied), "`false` leaves the tool out of the list, and refuses its calls"}}
	}
	out = append(out, []member{
		{"profile", live, word(&s.profile, gateway.Faithful, profiles.words, profiles.values), "how text is scrubbed: `faithful` (removes what is hidden, leaves a blank or a line break where that kept words apart, and defuses control tokens), or `mcp` (removes control tokens too, and makes NFKC of the text, which changes digits, fractions and some scripts); `veritas-0.1` is for a grounding adapter, which has cleaned and framed what it says: `faithful` with `control_tokens: keep` and `frame: meta` ([scrub](scrub.md))"},
		{"control_tokens", live, word(&s.tokens, scrub.ProfileTokens, tokenActions.words, tokenActions.values), "what becomes of control tokens: `defuse` makes look-alikes of their delimiters, and restores them in what a client sends; `keep` is a deviation that is logged and recorded; default: `faithful` defuses and `mcp` removes ([scrub](scrub.md#48-defusing))"},
		{"frame", live, word(&s.frame, frame.KindFence, frames.words, frames.values), "`fence` puts the text of tools between tags; `meta` marks it in `_meta` only, for programs that parse it; `llm` puts it into the envelope of text that an external language model has written ([frame](frame.md))"},
		{"fence", live, fence(&s.framing, at), "what is put between tags beside the text of tools ([Framing](#framing))"},
		{"structured", live, word(&s.framing.StructuredText, false, structuredWords, []bool{false, true}), "`text` delivers structured content as JSON between tags, and takes `outputSchema` from the tools"},
		{"validate", live, word(&s.validation, gateway.Validation{}, validations.words, validations.values), "what becomes of structured content that its tool's `outputSchema` refuses, and of messages of another form ([shape](shape.md)): `enforce` withholds it, `strict` also a result that lacks the content its schema promises, `audit` records it"},
		{"unverifiable", live, word(&s.passes, true, []string{"pass", "hold"}, []bool{true, false}), "what becomes of a result whose schema cannot be evaluated"},
		{"max_chars", live, integer(&s.maxChars, 1<<20, minChars, maxChars), "characters of a text, behind which it is cut: the text, the log and the provenance say so"},
		{"timeout", live, duration(&s.timeout, 10*time.Minute, time.Second, maxTimeout), "how long the server may be silent about a request"},
		{"privileged", live, boolean(&s.privileged, true), "`false`: delivered even if evidence is required and cannot be written"},
		{"hold", live, codes(&s.hold), "hold a tool's result for review where one of these is found in it, `hidden-tag` for one ([scrub](scrub.md)), instead of delivering it without"},
		{"classify", live, list(&s.classifiers, []string{}, maxOfTool, "the name of a classifier of this file, or local",
			func(name string) bool { return r.Classifiers[name] != nil }), "classifiers that judge results; `[]`: no classifier"},
		{"capture", live, words(&s.capture, captureParts), "texts of calls that are kept, encrypted, for a reviewer: `arguments` (of a result that is held too), `received`, `delivered`; default: none ([Captures](#captures))"},
		{"capture_of", live, words(&s.captureOf, captureVerdicts), "the verdicts of calls of which `capture` keeps texts, beside results that are held; default: none"},
	}...)
	if at != ofTool {
		out = append(out, member{"classify_also", live, words(&s.also, alsoWords, alsoWords...), "what else of a server the classifiers that `classify` names for it judge, always behind delivery ([classify](classify.md))"})
	}
	if at != ofDefaults {
		out = append(out, member{"llm", live, section(func() []member { return s.llm.members(at) }).when(func() bool { return s.llm.provider != "" }),
			"whose text `frame: llm` says it is ([Framing](#framing))"})
	}
	return out
}

// newCapture is what is kept by the words of capture and capture_of.
func newCapture(parts, of []string) gateway.Capture {
	c := gateway.Capture{Arguments: slices.Contains(parts, "arguments"), Received: slices.Contains(parts, "received"), Delivered: slices.Contains(parts, "delivered")}
	for _, v := range of {
		c.Of = append(c.Of, gateway.Verdict(v))
	}
	return c
}

// codes are those of findings, in order.
func codes(v *[]finding.Code) value {
	x := list(v, nil, maxNames, "the code of a finding", isCode).then(func(*compiler, place) { slices.Sort(*v) })
	x.write = func(d *dumper, name string) { writeList(d, name, *v) }
	return x
}

// anyType is the element of fence by which the type of a text does not count.
const anyType = "any-type"

// fence is what is framed beside the text of tools: a list, or all.
func fence(f *gateway.Framing, at level) value {
	words := fenceWords
	if at == ofTool {
		words = words[len(words)-1:]
	}
	return value{
		read: func(c *compiler, p place) {
			list := words
			if p.kind != isText || p.node.text != "all" {
				list = c.checkedList(p, len(words), orList(words), func(s string) bool { return slices.Contains(words, s) })
			}
			if at != ofTool {
				f.Resources, f.Prompts = slices.Contains(list, "resources"), slices.Contains(list, "prompts")
			}
			f.AnyType = slices.Contains(list, anyType)
		},
		write: func(d *dumper, name string) {
			list := []string{}
			for i, set := range []bool{f.Resources && at != ofTool, f.Prompts && at != ofTool, f.AnyType} {
				if set {
					list = append(list, fenceWords[i])
				}
			}
			writeList(d, name, list)
		},
		kind: "`all`, or a list of `" + strings.Join(words, "`, `") + "`",
		schema: schema{"anyOf": []schema{{"const": "all"},
			{"type": "array", "maxItems": len(words), "uniqueItems": true, "items": schema{"enum": words}}}},
	}
}

func (l *llmSettings) members(at level) []member {
	tag := checked(&l.tag, "", "NAME-response", func(s string) bool { return strings.HasSuffix(s, llmSuffix) })
	tag.write = func(d *dumper, name string) {
		if l.provider != "" {
			d.word(name, quoted(l.slug()+llmSuffix))
		}
	}
	return []member{
		{"provider", live, text(&l.provider, 64), "its name for people, of `A-Z a-z 0-9`, space and `. _ + -`; needed"},
		{"tag", live, tag, "NAME of `a-z 0-9 -`; default: made from the provider's name"},
		{"grounded", live, boolean(&l.grounded, false), "the answers rest on live web search"},
		{"source", live, checked(&l.source, "", "a label", frame.IsLabel), "label of the service; default: NAME"},
		{"model", live, llmModel(l, at), "label of the model. `\"\"`: no model, the answers are what a search found. Default: what the server's answer names"},
	}
}

// llmModel is a label, or, of a server, an object of labels by tool.
func llmModel(l *llmSettings, at level) value {
	x := value{
		read: func(c *compiler, p place) {
			if at == ofServer && p.kind == isObject {
				l.models = map[string]string{}
				c.names(p, maxTools, isToolName, func(tool string, _, val place) { l.models[tool] = c.model(val) })
				return
			}
			model := c.model(p)
			l.model, l.models = &model, nil
		},
		write: func(d *dumper, name string) {
			if l.model != nil {
				d.word(name, quoted(*l.model))
				return
			}
			head, inside := d.open(name)
			for _, tool := range slices.Sorted(maps.Keys(l.models)) {
				d.word(quoted(tool), quoted(l.models[tool]))
			}
			d.close(head, inside)
		},
		kind: "a label, or `\"\"`", schema: schema{"type": "string"},
	}
	if at == ofServer {
		x.kind += ", or an object of these by tool"
		x.schema = schema{"type": []string{"string", "object"}, "maxProperties": maxTools, "additionalProperties": schema{"type": "string"}}
	}
	return x
}

const llmSuffix = "-response"

// model reads the label of a model; "" is none.
func (c *compiler) model(p place) string {
	if p.kind == isText && p.node.text == "" {
		return ""
	}
	return c.checked(p, `a label, or "" for a search`, frame.IsLabel)
}

// isToolName: what no pattern is.
func isToolName(s string) bool { return s != "" && len(s) <= maxToolName && !strings.Contains(s, "*") }

func isToolKey(s string) bool { return s != "" && len(s) <= maxToolName }

// veritas is the profile of a grounding adapter: its quotes keep control tokens, and its frames pass as they are.
//
// spec: RFC-VERITAS-MCP-GROUNDING 9, negative tests
const veritas = gateway.Faithful + 1

// tool compiles settings at p.
func (c *compiler) tool(s settings, p place) *Tool {
	if s.profile == veritas {
		s.profile, s.tokens, s.frame = gateway.Faithful, scrub.KeepTokens, frame.KindMeta
	}
	t := &Tool{
		Rule: gateway.Rule{
			Denied: s.denied, Profile: s.profile, ControlTokens: s.tokens, Frame: s.frame, Framing: s.framing, MaxChars: s.maxChars,
			Timeout: s.timeout, Validation: gateway.Validation{Mode: s.validation.Mode, Strict: s.validation.Strict, PassUnverifiable: s.passes}, Hold: s.hold, Unprivileged: !s.privileged,
			Capture: newCapture(s.capture, s.captureOf),
		},
		Classifiers: s.classifiers, also: s.also,
	}
	if s.frame != frame.KindLLM {
		return t
	}
	if s.framing.StructuredText {
		c.report(p, "frame: llm says in structuredContent whose text it is, so that structured: text does not go with it")
	}
	if s.llm.provider == "" {
		c.report(p, "frame: llm needs llm.provider")
		return t
	}
	llm, err := s.llm.compile()
	if err != nil {
		c.report(p, "%s", err)
		return t
	}
	t.Rule.LLM = llm
	if s.llm.model != nil {
		t.Rule.LLM.Model = *s.llm.model
		t.Rule.LLM.Search = *s.llm.model == ""
	}
	return t
}

// compileTools makes the tables of a server. What is given by a tool's name, beside
// its settings, makes a rule of the tool's own, of what applies to it.
func (c *compiler) compileTools(s *Server, at map[string]place, own place) {
	source := newTable(s.toolKeys)
	all := maps.Clone(s.toolKeys)
	named := func(tool string) settings {
		of, ok := all[tool]
		if !ok {
			if of, ok = source.find(tool); !ok {
				of = s.settings
			}
		}
		return of
	}
	for tool, model := range s.settings.llm.models {
		of := named(tool)
		if of.llm.model == nil {
			of.llm.model = &model
		}
		all[tool] = of
	}
	for _, e := range c.out.Exceptions {
		if e.server == s.Name && e.tool != "" {
			all[e.tool] = named(e.tool)
		}
	}
	compiled := map[string]*Tool{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		p, ok := at[key]
		if !ok {
			p = own
		}
		compiled[key] = c.tool(all[key], p)
		compiled[key].Rule.Except = c.excepted(s.Name, key)
	}
	s.tools = newTable(compiled)
	s.base = c.tool(s.settings, own)
	s.base.Rule.Except = c.excepted(s.Name, "")
}

// excepted returns the exceptions of a server's tool, or of what is no name of one.
func (c *compiler) excepted(server, tool string) (out []gateway.Exception) {
	for _, e := range c.out.Exceptions {
		if e.server == server && (e.tool == "" || e.tool == tool) {
			out = append(out, gateway.Exception{Code: e.code, Until: e.until})
		}
	}
	return out
}
