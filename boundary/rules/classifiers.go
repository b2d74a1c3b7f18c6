// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/deep"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/classify/remote"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Classifier is one that judges what tools answer, by its name in the file.
type Classifier struct {
	name     string
	Provider string // of classifierProviders
	URL      string
	Key      Value

	// What single providers need; the others refuse it.
	apiVersion                       string     // azure
	region, guardrail, version       string     // bedrock
	AccessKey, SecretKey, SessionKey Value      // bedrock
	config                           string     // nemo
	Model                            string     // nemo, judge, http
	Format                           Format     // judge
	reasoning                        bool       // judge
	project, location, template      string     // model-armor; Project: lakera
	texts, Chars                     int        // http: of one call
	plainHTTP                        bool       // dangerously_plain_http
	deep                             *deepModel // local; nil: the fast model alone

	Mode       policy.Mode
	Fail       classify.Fail
	Flagged    policy.Action
	limit      float64 // 0: as the classifier says
	alarms     int     // local: false alarms of 10,000 honest texts, in place of limit
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

var (
	classifierProviders = []string{"azure", "bedrock", "http", judgeProvider, "lakera", Local, "model-armor", "nemo"}
	classifyModes       = []policy.Mode{policy.Enforce, policy.Shadow}
	classifyModeWords   = []string{"enforce", "shadow"}
	classifyFails       = []classify.Fail{classify.FailHold, classify.FailOpen, classify.FailClosed}
	classifyFailWords   = []string{"hold", "open", "closed"}
	flaggedWords        = []string{"hold", "withhold"}
	flaggedActions      = []policy.Action{policy.Hold, policy.Deny}
)

const (
	maxClassifiers = 16
	maxOfTool      = 8
	maxCalls       = 1_000_000
	maxDailyChars  = 1 << 40
)

// newClassifier is one that says nothing. Only the model of the program begins in shadow mode.
func newClassifier(name string) *Classifier {
	c := &Classifier{name: name}
	reset(c.members())
	if name == Local {
		c.beLocal()
	}
	return c
}

func (c *Classifier) beLocal() {
	c.Provider, c.Mode, c.concurrent, c.calls = Local, policy.Shadow, 1, maxCalls
}

// classifiers are those of a file, by name.
func classifiers(r *Rules) value {
	all := func(yield func(string, *Classifier) bool) {
		for _, name := range slices.Sorted(maps.Keys(r.Classifiers)) {
			if !yield(name, r.Classifiers[name]) {
				return
			}
		}
	}
	return named(maxClassifiers, isName, (*Classifier).members, func() *Classifier { return newClassifier("") },
		func(c *compiler, name string, _, val place) {
			x, before := newClassifier(name), len(c.problems)
			if c.provider(val, x) {
				c.object(val, x.members())
			}
			if len(c.problems) == before {
				c.usable(val, x)
			}
			c.out.Classifiers[name] = x
		}, all)
}

// provider reads which one it is, before the members that depend on it. It reports whether to read them.
func (c *compiler) provider(p place, x *Classifier) bool {
	at := p.at("provider")
	if p.kind != isObject || at.node == nil {
		return true
	}
	if instead, is := formerAt(at.path, at.text); is {
		c.report(at, "%s", instead)
		return false
	}
	switch x.Provider = choice(&c.reader, at, classifierProviders, classifierProviders); {
	case x.Provider == Local:
		x.beLocal()
	case x.name == Local && x.Provider != "":
		c.show(at, "the name local is that of the model that comes with the program")
	}
	return true
}

// A providerMember is one that some providers have.
type providerMember struct {
	needs, may string // the providers that need it, and those that may have it
	member
}

const remoteProviders = "azure bedrock nemo model-armor lakera http"

func (x *Classifier) ofProviders() []providerMember {
	label := func(v *string) value { return checked(v, "", "a label", isName) }
	return []providerMember{
		{remoteProviders + " " + judgeProvider, "", member{"url", live, text(&x.URL, 2048), "https, or http on this machine"}},
		{"azure model-armor lakera", "nemo http judge", member{"key", live, reference(&x.Key), "key of the service"}},
		{"", "azure", member{"api_version", live, label(&x.apiVersion), "default: 2024-09-01"}},
		{"bedrock", "", member{"region", live, label(&x.region), "region of the service"}},
		{"bedrock", "", member{"guardrail", live, text(&x.guardrail, 2048), "identifier of the guardrail"}},
		{"bedrock", "", member{"version", live, label(&x.version), "version of the guardrail"}},
		{"bedrock", "", member{"access_key", live, reference(&x.AccessKey), "access key id"}},
		{"bedrock", "", member{"secret_key", live, reference(&x.SecretKey), "secret access key"}},
		{"", "bedrock", member{"session_token", live, reference(&x.SessionKey), "token of a temporary session"}},
		{"nemo", "", member{"config", live, text(&x.config, 256), "the configuration of guardrails"}},
		{"http judge", "nemo", member{"model", live, modelName(&x.Model), "the model; of `http`, with its version"}},
		{"judge", "", member{"format", live, word(&x.Format, "", providerWords, providers), "the format of the provider's API, as `review.provider`"}},
		{"", "judge", member{"reasoning", live, boolean(&x.reasoning, false), "the model takes no temperature"}},
		{"model-armor", "lakera", member{"project", live, label(&x.project), "the project"}},
		{"model-armor", "", member{"location", live, label(&x.location), "location of the template"}},
		{"model-armor", "", member{"template", live, label(&x.template), "the template"}},
		{"", Local, member{"deep", live, optional(&x.deep, (*deepModel).members, func(_ *compiler, _ place, _ *deepModel, sound bool) bool { return sound }), "a second model, which looks at what the first one does not let by ([classify](classify.md))"}},
		{"", "http", member{"texts", live, integer(&x.texts, 0, 1, 1024), "texts of one question"}},
		{"", Local, member{"false_alarms", live, integer(&x.alarms, 0, local.Rates[0], local.Rates[len(local.Rates)-1]), "of 10,000 honest texts, in place of `limit`"}},
		{"", "http judge", member{"text_chars", live, integer(&x.Chars, 0, 200, 1_000_000), "characters of one question"}},
		{"", remoteProviders, member{"dangerously_plain_http", live, boolean(&x.plainHTTP, false), "allow an http URL beyond this machine"}},
	}
}

// members are those of every provider, and those of its own. All are while the provider is not known.
func (x *Classifier) members() []member {
	provider := word(&x.Provider, x.Provider, classifierProviders, classifierProviders)
	provider.read = func(*compiler, place) {} // which compiler.provider has done
	out := []member{{"provider", live, provider, "the service; of the classifier `local`: `local`"}}
	if x.Provider == "" {
		out[0].trait = needed
	}
	for _, m := range x.ofProviders() {
		switch needs := slices.Contains(strings.Fields(m.needs), x.Provider); {
		case needs:
			m.trait |= needed
			fallthrough
		case x.Provider == "", slices.Contains(strings.Fields(m.may), x.Provider):
			out = append(out, m.member)
		}
	}
	return append(out, []member{
		{"mode", live, word(&x.Mode, policy.Enforce, classifyModeWords, classifyModes), "`enforce` is asked before a result is delivered; `shadow` behind it, which changes nothing (default of `local`)"},
		{"fail", live, word(&x.Fail, classify.FailHold, classifyFailWords, classifyFails), "what becomes of a result that was not judged: `open` delivers it, `closed` withholds it"},
		{"flagged", live, word(&x.Flagged, policy.Hold, flaggedWords, flaggedActions), "what becomes of a flagged result: `withhold` is for good"},
		{"limit", live, number(&x.limit, 0, 1), "score from which a text is flagged; 0: as the classifier says"},
		{"timeout", live, duration(&x.timeout, 2*time.Second, 10*time.Millisecond, time.Minute), "of all questions about one result"},
		{"concurrent", live, integer(&x.concurrent, 8, 1, 1024), "questions at one time; default of `local`: 1"},
		{"max_bytes", live, size(&x.most, 4<<20, 1<<10, 64<<20), "bytes of one result; of a longer one nothing is judged"},
		{"calls", live, integer(&x.calls, 600, 1, maxCalls), "questions a minute, beyond which nothing is judged; default of `local`: 1,000,000"},
		{"chars", live, integer(&x.DailyChars, 0, 1, maxDailyChars), "characters a day, counted by this process; default: no limit"},
		{"all_tools", live, boolean(&x.all, false), "also judge what cannot hold an injection ([classify](classify.md))"},
	}...)
}

// usable tries whether a classifier can be made of it.
func (c *compiler) usable(p place, x *Classifier) {
	var of classify.Classifier = local.Classifier{Model: local.Default()}
	var err error
	switch {
	case x.IsJudge():
		var e *llm.Endpoint
		if e, err = x.Endpoint(); err == nil {
			e.Close()
		}
	default:
		of, err = x.Service()
	}
	if err == nil {
		_, err = classify.New(x.Options(of, nil))
	}
	if x.limit > 0 && x.alarms > 0 {
		c.report(p.at("false_alarms"), "stands beside limit: give one of them")
	}
	c.strict(p, x)
	if err != nil {
		_, fault, found := strings.Cut(err.Error(), ": ")
		if !found {
			fault = err.Error()
		}
		c.report(p, "%s", fault)
	}
}

// IsJudge reports whether it is a language model, which Endpoint asks. Any other is its Service.
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
		return x.here()
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
	return classify.Options{Name: x.name, Classifier: of, Mode: x.Mode, Fail: x.Fail, Flagged: x.Flagged, Limit: x.score(of), Timeout: x.timeout,
		Concurrent: x.concurrent, Most: x.most, Calls: x.calls, Chars: x.DailyChars, All: x.all, Cache: cache}
}

// score is the one from which of flags a text; 0: as the classifier says.
func (x *Classifier) score(of classify.Classifier) float64 {
	if x.alarms == 0 {
		return x.limit
	}
	find := local.Default().LimitFor // what it does not know, the reader refuses
	if _, both := of.(deep.Cascade); both {
		find = deep.LimitFor
	}
	limit, _ := find(x.alarms)
	return float64(limit)
}

// Equal reports whether two mean the same, keys included.
func (x *Classifier) Equal(y *Classifier) bool { return reflect.DeepEqual(x, y) }
