// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/classify/remote"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Classifier is one that judges what tools answer, by its name in the file.
type Classifier struct {
	name     string
	Provider string // a key of providerMembers
	URL      string
	Key      Value

	// What single providers need; the others refuse it.
	apiVersion                       string // azure
	region, guardrail, version       string // bedrock
	AccessKey, SecretKey, SessionKey Value  // bedrock
	config                           string // nemo
	Model                            string // nemo, judge, http
	Format                           Format // judge
	reasoning                        bool   // judge
	project, location, template      string // model-armor; Project: lakera
	texts, Chars                     int    // http: of one call
	plainHTTP                        bool   // dangerously_plain_http

	Mode       classify.Mode
	Fail       classify.Fail
	Flagged    classify.Outcome
	limit      float64 // 0: as the classifier says
	timeout    time.Duration
	concurrent int
	most       int   // bytes of one answer
	calls      int   // a minute
	DailyChars int64 // 0: no limit
	all        bool  // narrow surfaces too
}

// Local is the name of the model that comes with the program, which is there without
// being configured, in shadow mode.
const Local = "local"

// judgeProvider is the provider that is a language model.
const judgeProvider = "judge"

// providerMembers says which members a provider has beside those that all have, and which of them
// it needs.
var providerMembers = map[string]struct{ needs, may []string }{
	Local:         {},
	"azure":       {needs: []string{"url", "key"}, may: []string{"api_version", plainMember}},
	"bedrock":     {needs: []string{"url", "region", "guardrail", "version", "access_key", "secret_key"}, may: []string{"session_token", plainMember}},
	"nemo":        {needs: []string{"url", "config"}, may: []string{"key", "model", plainMember}},
	"model-armor": {needs: []string{"url", "key", "project", "location", "template"}, may: []string{plainMember}},
	"lakera":      {needs: []string{"url", "key"}, may: []string{"project", plainMember}},
	"http":        {needs: []string{"url", "model"}, may: []string{"key", "texts", "text_chars", plainMember}},
	judgeProvider: {needs: []string{"url", "model", "format"}, may: []string{"key", "reasoning", "text_chars"}},
}

const plainMember = "dangerously_plain_http"

var (
	classifierProviders = slices.Sorted(maps.Keys(providerMembers))
	classifyModes       = []classify.Mode{classify.Enforce, classify.Shadow}
	classifyModeWords   = []string{"enforce", "shadow"}
	classifyFails       = []classify.Fail{classify.FailHold, classify.FailOpen, classify.FailClosed}
	classifyFailWords   = []string{"hold", "open", "closed"}
	flaggedWords        = []string{"hold", "withhold"}
	flaggedOutcomes     = []classify.Outcome{classify.Hold, classify.Withhold}
)

const (
	maxClassifiers = 16
	maxOfTool      = 8
	maxCalls       = 1_000_000
	maxDailyChars  = 1 << 40
)

// newClassifier is one that says nothing. Only the model of the program begins as one
// that watches.
func newClassifier(name string) *Classifier {
	c := &Classifier{name: name, Flagged: classify.Hold, timeout: 2 * time.Second, concurrent: 8, most: 4 << 20, calls: 600}
	if name == Local {
		c.beLocal()
	}
	return c
}

func (c *Classifier) beLocal() {
	c.Provider, c.Mode, c.concurrent, c.calls = Local, classify.Shadow, 1, maxCalls
}

// classifiers reads the section; it is read before what refers to it.
func (c *compiler) classifiers(p place) {
	c.names(p, maxClassifiers, isName, func(name string, _, val place) {
		x := newClassifier(name)
		before := len(c.problems)
		c.classifier(val, x)
		if len(c.problems) == before {
			c.usable(val, x)
		}
		c.out.Classifiers[name] = x
	})
	// In the order of names: what stands where in the file changes nothing.
	for _, name := range slices.Sorted(maps.Keys(c.out.Classifiers)) {
		x := c.out.Classifiers[name]
		for _, v := range []Value{x.Key, x.AccessKey, x.SecretKey, x.SessionKey} {
			if v.text != "" {
				c.secret.add(name, v.text)
			}
		}
	}
}

func (c *compiler) classifier(p place, x *Classifier) {
	if p.kind == isObject && p.member("provider") != nil {
		at := p.join("provider", p.member("provider"))
		switch x.Provider = choice(&c.reader, at, classifierProviders, classifierProviders); {
		case x.Provider == Local:
			x.beLocal()
		case x.name == Local && x.Provider != "":
			c.show(at, "the name local is that of the model that comes with the program")
		}
	}
	own := members{
		"url":           func(p place) { x.URL = c.text(p, 2048) },
		"key":           func(p place) { x.Key = c.reference(p) },
		"api_version":   func(p place) { x.apiVersion = c.checked(p, "a label", isName) },
		"region":        func(p place) { x.region = c.checked(p, "a label", isName) },
		"guardrail":     func(p place) { x.guardrail = c.text(p, 2048) },
		"version":       func(p place) { x.version = c.checked(p, "a label", isName) },
		"access_key":    func(p place) { x.AccessKey = c.reference(p) },
		"secret_key":    func(p place) { x.SecretKey = c.reference(p) },
		"session_token": func(p place) { x.SessionKey = c.reference(p) },
		"config":        func(p place) { x.config = c.text(p, 256) },
		"model":         func(p place) { x.Model = c.checked(p, "the name of a model, without spaces", isModel) },
		"format":        func(p place) { x.Format = choice(&c.reader, p, providerWords, providers) },
		"reasoning":     func(p place) { x.reasoning = c.boolean(p) },
		"project":       func(p place) { x.project = c.checked(p, "a label", isName) },
		"location":      func(p place) { x.location = c.checked(p, "a label", isName) },
		"template":      func(p place) { x.template = c.checked(p, "a label", isName) },
		"texts":         func(p place) { x.texts = c.integer(p, 1, 1024) },
		"text_chars":    func(p place) { x.Chars = c.integer(p, 200, 1_000_000) },
		plainMember:     func(p place) { x.plainHTTP = c.boolean(p) },
	}
	m := members{
		"provider":   func(place) {},
		"mode":       func(p place) { x.Mode = choice(&c.reader, p, classifyModeWords, classifyModes) },
		"fail":       func(p place) { x.Fail = choice(&c.reader, p, classifyFailWords, classifyFails) },
		"flagged":    func(p place) { x.Flagged = choice(&c.reader, p, flaggedWords, flaggedOutcomes) },
		"limit":      func(p place) { x.limit = c.number(p, 1) },
		"timeout":    func(p place) { x.timeout = c.duration(p, 10*time.Millisecond, time.Minute) },
		"concurrent": func(p place) { x.concurrent = c.integer(p, 1, 1024) },
		"max_bytes":  func(p place) { x.most = c.size(p, 1<<10, 64<<20) },
		"calls":      func(p place) { x.calls = c.integer(p, 1, maxCalls) },
		"chars":      func(p place) { x.DailyChars = int64(c.integer(p, 1, maxDailyChars)) },
		"all_tools":  func(p place) { x.all = c.boolean(p) },
	}
	of, known := providerMembers[x.Provider]
	if !known { // which has been told, if there is one
		maps.Copy(m, own)
		c.object(p, m, "provider")
		return
	}
	for _, name := range slices.Concat(of.needs, of.may) {
		m[name] = own[name]
	}
	c.object(p, m, of.needs...)
}

// usable tries whether a classifier can be made of it.
func (c *compiler) usable(p place, x *Classifier) {
	var of classify.Classifier = local.Classifier{Model: local.Default()}
	var err error
	if x.IsJudge() {
		var e *llm.Endpoint
		if e, err = x.Endpoint(); err == nil {
			e.Close()
		}
	} else {
		of, err = x.Service()
	}
	if err == nil {
		_, err = classify.New(x.Options(of, nil))
	}
	if err != nil {
		_, fault, found := strings.Cut(err.Error(), ": ")
		if !found {
			fault = err.Error()
		}
		c.report(p, "%s", fault)
	}
}

// IsJudge reports whether it is a language model: then Endpoint asks it, and else
// Service is the classifier.
func (x *Classifier) IsJudge() bool { return x.Provider == judgeProvider }

// Endpoint asks the model of a judge. Whoever is done with it closes it.
func (x *Classifier) Endpoint() (*llm.Endpoint, error) {
	o := llm.Options{Format: x.Format, BaseURL: x.URL, Model: x.Model, Timeout: x.timeout,
		NoTemperature: x.reasoning, MaxCompletionTokens: x.reasoning}
	if x.Key.text != "" {
		o.Key = llm.NewKey(x.Key.ref, func() (string, error) { return x.Key.text, nil })
	}
	return llm.New(o)
}

// Service is the classifier, unless it is a judge.
func (x *Classifier) Service() (classify.Classifier, error) {
	s := remote.Service{URL: x.URL, Key: secretOf(x.Key), DangerouslyPlainHTTP: x.plainHTTP}
	switch x.Provider {
	case Local:
		return local.Classifier{Model: local.Default()}, nil
	case "azure":
		return remote.NewAzure(s, x.apiVersion)
	case "bedrock":
		return remote.NewBedrock(s, remote.BedrockOptions{Region: x.region, Guardrail: x.guardrail, Version: x.version,
			AccessKey: secretOf(x.AccessKey), SecretKey: secretOf(x.SecretKey), SessionToken: secretOf(x.SessionKey)})
	case "nemo":
		return remote.NewNeMo(s, x.config, x.Model)
	case "model-armor":
		return remote.NewModelArmor(s, x.project, x.location, x.template)
	case "lakera":
		return remote.NewLakera(s, x.project)
	case "http":
		limits := classify.Limits{}
		if x.texts > 0 || x.Chars > 0 {
			limits = classify.Limits{Texts: cmp.Or(x.texts, 16), Chars: cmp.Or(x.Chars, 8_000)}
		}
		return remote.NewHTTP(s, x.Model, limits)
	}
	return nil, errors.New("rules: no such provider")
}

func secretOf(v Value) remote.Secret {
	if v.text == "" {
		return nil
	}
	return func() (string, error) { return v.text, nil }
}

// Options are those of a member that asks of.
func (x *Classifier) Options(of classify.Classifier, cache classify.Cache) classify.Options {
	return classify.Options{Name: x.name, Classifier: of, Mode: x.Mode, Fail: x.Fail, Flagged: x.Flagged, Limit: x.limit, Timeout: x.timeout,
		Concurrent: x.concurrent, Most: x.most, Calls: x.calls, Chars: x.DailyChars, All: x.all, Cache: cache}
}

// Equal reports whether two mean the same, keys included.
func (x *Classifier) Equal(y *Classifier) bool { return *x == *y }

// classifierList reads names of classifiers of this file.
func (c *compiler) classifierList(p place) []string {
	return c.checkedList(p, maxOfTool, "the name of a classifier of this file, or local", func(name string) bool {
		return c.out.Classifiers[name] != nil
	})
}

func (d *dumper) classifiers(all map[string]*Classifier) {
	d.object("classifiers", func() {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			d.object(quoted(name), func() { d.classifier(all[name]) })
		}
	})
}

func (d *dumper) classifier(x *Classifier) {
	d.word("provider", x.Provider)
	text := map[string]string{"url": x.URL, "api_version": x.apiVersion, "region": x.region, "guardrail": x.guardrail, "version": x.version,
		"config": x.config, "model": x.Model, "project": x.project, "location": x.location, "template": x.template,
		"key": x.Key.ref, "access_key": x.AccessKey.ref, "secret_key": x.SecretKey.ref, "session_token": x.SessionKey.ref}
	of := providerMembers[x.Provider]
	for _, name := range slices.Sorted(slices.Values(slices.Concat(of.needs, of.may))) {
		switch {
		case text[name] != "":
			d.quote(name, text[name])
		case name == "format":
			d.word(name, providerWords[slices.Index(providers, x.Format)])
		case name == "reasoning":
			d.boolean(name, x.reasoning)
		case name == plainMember:
			d.boolean(name, x.plainHTTP)
		case name == "texts" && x.texts > 0:
			d.integer(name, x.texts)
		case name == "text_chars" && x.Chars > 0:
			d.integer(name, x.Chars)
		}
	}
	d.word("mode", x.Mode.String())
	d.word("fail", x.Fail.String())
	d.word("flagged", x.Flagged.String())
	d.word("limit", strconv.FormatFloat(x.limit, 'f', -1, 64))
	d.duration("timeout", x.timeout)
	d.integer("concurrent", x.concurrent)
	d.word("max_bytes", spellSize(x.most))
	d.integer("calls", x.calls)
	if x.DailyChars > 0 {
		d.word("chars", strconv.FormatInt(x.DailyChars, 10))
	}
	d.boolean("all_tools", x.all)
}

func sameClassifiers(a, b *Rules) bool {
	return maps.EqualFunc(a.Classifiers, b.Classifiers, (*Classifier).Equal)
}
