// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

const (
	maxToolName = 256 // bytes
	maxTimeout  = 24 * time.Hour
	minChars    = 8       // of scrub.Policy
	maxChars    = 1 << 25 // more than the largest message holds
)

// settings are what defaults, a server and a tool may say. Each begins as a copy
// of those around it, so that what is not said is inherited.
type settings struct {
	denied      bool
	profile     gateway.Profile
	frame       frame.Kind
	framing     gateway.Framing
	validation  gateway.Validation
	maxChars    int
	timeout     time.Duration
	hold        []finding.Code
	privileged  bool
	classifiers []string
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

func newSettings() settings {
	return settings{
		profile:     gateway.Faithful,
		validation:  gateway.Validation{PassUnverifiable: true},
		maxChars:    1 << 20,
		privileged:  true,
		timeout:     10 * time.Minute,
		classifiers: []string{Local},
	}
}

// A level is where settings stand.
type level int

const (
	ofDefaults level = iota
	ofServer
	ofTool
)

var (
	frameWords = []string{"fence", "meta", "llm"}
	frameKinds = []frame.Kind{frame.KindFence, frame.KindMeta, frame.KindLLM}
	// Of a tool the last of fenceWords alone can be said: it reads no resource.
	fenceWords      = []string{"resources", "prompts", anyType}
	structuredWords = []string{"keep", "text"}
	modeWords       = []string{"enforce", "audit", "off"}
	modes           = []gateway.Mode{gateway.Enforce, gateway.Audit, gateway.Off}
	profileWords    = []string{"faithful", "mcp"}
	profiles        = []gateway.Profile{gateway.Faithful, gateway.MCP}
)

// settings says how to read what may be set at a level.
func (c *compiler) settings(s *settings, at level) members {
	m := members{
		"frame": func(p place) { s.frame = choice(&c.reader, p, frameWords, frameKinds) },
		"fence": func(p place) { c.fence(p, &s.framing, at) },
		"structured": func(p place) {
			s.framing.StructuredText = choice(&c.reader, p, structuredWords, []bool{false, true})
		},
		"validate": func(p place) { s.validation.Mode = choice(&c.reader, p, modeWords, modes) },
		"unverifiable": func(p place) {
			s.validation.PassUnverifiable = choice(&c.reader, p, []string{"pass", "hold"}, []bool{true, false})
		},
		"max_chars":  func(p place) { s.maxChars = c.integer(p, minChars, maxChars) },
		"privileged": func(p place) { s.privileged = c.boolean(p) },
		"timeout":    func(p place) { s.timeout = c.duration(p, time.Second, maxTimeout) },
		"hold": func(p place) {
			s.hold = nil
			for _, code := range c.checkedList(p, maxNames, "the code of a finding", isCode) {
				s.hold = append(s.hold, finding.Code(code))
			}
			slices.Sort(s.hold)
		},
		"classify": func(p place) { s.classifiers = c.classifierList(p) },
		"profile":  func(p place) { s.profile = choice(&c.reader, p, profileWords, profiles) },
	}
	if at != ofDefaults {
		m["llm"] = func(p place) { c.llm(p, &s.llm, at) }
	}
	if at == ofTool {
		m["allow"] = func(p place) { s.denied = !c.boolean(p) }
	}
	return m
}

// anyType is the element of fence by which the type of a text does not count.
const anyType = "any-type"

// fence reads what is framed beside the text of tools: a list, or all.
func (c *compiler) fence(p place, f *gateway.Framing, at level) {
	words := fenceWords
	if at == ofTool {
		words = words[len(words)-1:]
	}
	list := words
	if p.kind != isText || p.node.text != "all" {
		list = c.checkedList(p, len(words), orList(words), func(s string) bool { return slices.Contains(words, s) })
	}
	if at != ofTool {
		f.Resources, f.Prompts = slices.Contains(list, "resources"), slices.Contains(list, "prompts")
	}
	f.AnyType = slices.Contains(list, anyType)
}

func (c *compiler) llm(p place, l *llmSettings, at level) {
	c.object(p, members{
		"provider": func(p place) { l.provider = c.text(p, 64) },
		"tag": func(p place) {
			l.tag = c.checked(p, "NAME-response", func(s string) bool { return strings.HasSuffix(s, llmSuffix) })
		},
		"grounded": func(p place) { l.grounded = c.boolean(p) },
		"source":   func(p place) { l.source = c.checked(p, "a label", frame.IsLabel) },
		"model": func(p place) {
			if at == ofServer && p.kind == isObject {
				l.models = map[string]string{}
				c.names(p, maxTools, isToolName, func(tool string, _, val place) { l.models[tool] = c.model(val) })
				return
			}
			model := c.model(p)
			l.model, l.models = &model, nil
		},
	})
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

// tool compiles settings at p.
func (c *compiler) tool(s settings, p place) *Tool {
	t := &Tool{
		Rule: gateway.Rule{
			Denied: s.denied, Profile: s.profile, Frame: s.frame, Framing: s.framing, MaxChars: s.maxChars,
			Timeout: s.timeout, Validation: s.validation, Hold: s.hold, Unprivileged: !s.privileged,
		},
		Classifiers: s.classifiers,
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
	llm, err := LLM{Provider: s.llm.provider, Tag: s.llm.tag, Source: s.llm.source, Grounded: s.llm.grounded}.Compile()
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

// slug is that of the tag, or made from the provider's name.
func (l *llmSettings) slug() string { return LLM{Provider: l.provider, Tag: l.tag}.slug() }

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
