// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"net/url"
	"slices"
	"strings"
)

// A former is a flag that wrap once had, and its replacement.
type former struct {
	flag        string
	takesValue  bool
	member      string // that --set sets; empty if replacement is another flag
	replacement string // the value for --set, or the text before the value that the flag took
	repeatable  bool   // its values make one list
}

var formers = []former{
	{"--validate", true, "validate", "", false},
	{"--max-chars", true, "max_chars", "", false},
	{"--fence", true, "fence", "", true},
	{"--structured", true, "structured", "", false},
	{"--hold", true, "hold", "", true},
	{"--capture", true, "capture", "", true},
	{"--capture-of", true, "capture_of", "", true},
	{"--classify", false, "classify", "local", false},
	{"--reviewer", true, "quarantine.recipients", "", true},
	{"--quarantine", false, "", "--evidence best-effort", false},
	{"--pins", true, "admission.pins", "", false},
	{"--no-wide", false, "admission.wide", "false", false},
	{"--wide", false, "admission.wide", "true", false},
	{"--pin", true, "pin", "", false},
	{"--dangerously-allow-sampling", false, "dangerously_allow_sampling", "true", false},
	{"--llm-provider", true, "llm.provider", "", false},
	{"--llm-tag", true, "llm.tag", "", false},
	{"--llm-source", true, "llm.source", "", false},
	{"--llm-model", true, "llm.model", "", false},
	{"--llm-search", false, "llm.model", "", false},
	{"--llm-grounded", false, "llm.grounded", "true", false},
	{"--client-cert", true, "tls.cert", "file:", false},
	{"--client-key", true, "tls.key", "file:", false},
	{"--ca", true, "tls.ca", "file:", false},
	{"--tokens", true, "tokens", "file:", false},
	{"--db", true, "store", "file:", false},
	{"--review-model", true, "review.model", "", false},
	{"--review-url", true, "review.url", "", false},
	{"--review-api", true, "review.provider", "", false},
	{"--review-key", true, "review.key", "", false},
	{"--review-reasoning", false, "review.reasoning", "true", false},
	{"--review-timeout", true, "review.timeout", "", false},
	{"--review-tokens", true, "review.tokens", "", false},
	{"--log-format", true, "telemetry.log_format", "", false},
}

func formerOf(word string) (f *former, value string, inside bool) {
	name, value, inside := strings.Cut(word, "=")
	if i := slices.IndexFunc(formers, func(f former) bool { return f.flag == name }); i >= 0 {
		return &formers[i], value, inside
	}
	return nil, "", false
}

// describe tells the user the replacement.
func (f *former) describe() string {
	switch {
	case f.member == "":
		return f.flag + " is now " + f.replacement
	case f.takesValue:
		return f.flag + " is now --set " + f.member + "=" + f.replacement + "…"
	}
	return f.flag + " is now --set " + f.member + "=" + f.replacement
}

// settingValue returns the value of a former flag as --set takes it.
func (f *former) settingValue(value string) string {
	if f.flag == "--db" && strings.Contains(value, "://") {
		return value // the URL of a database
	}
	return f.replacement + value
}

// setsPassword reports whether a word sets a store with a password, which wrap refuses.
func setsPassword(word string) bool {
	at, is := strings.CutPrefix(word, "store=")
	if !is || !strings.Contains(at, "://") {
		return false
	}
	u, err := url.Parse(at)
	if err != nil {
		return true
	}
	_, set := u.User.Password()
	return set || strings.Contains(u.RawQuery, "pass")
}

// WithoutFormer returns the words of a command line that begins with wrap, with --set in the place of the
// flags that wrap no longer has, and for each of these a sentence that names its replacement.
func WithoutFormer(words []string) (now, said []string) {
	lists := map[string]int{} // places in now of the values of a flag
	api := false
	for i := 0; i < len(words); i++ {
		if i > 0 && (words[i] == "--" || !strings.HasPrefix(words[i], "-")) { // the server's command
			now = append(now, words[i:]...)
			break
		}
		f, value, inside := formerOf(words[i])
		if f == nil {
			now = append(now, words[i])
			if takesValue(words[i]) && i+1 < len(words) { // which may look like a flag
				i++
				now = append(now, words[i])
			}
			continue
		}
		said = append(said, f.describe())
		if f.takesValue && !inside && i+1 < len(words) {
			i++
			value = words[i]
		}
		api = api || f.flag == "--review-api"
		switch at, again := lists[f.flag]; {
		case f.member == "":
			now = append(now, strings.Fields(f.replacement)...)
		case again:
			now[at] += "," + value
		default:
			if f.repeatable {
				lists[f.flag] = len(now) + 1
			}
			now = append(now, "--set", f.member+"="+f.settingValue(value))
		}
		if f.flag == "--review-model" { // whose API was openai-chat where no other was named
			lists["api"] = len(now)
		}
	}
	if at := lists["api"]; at > 0 && !api {
		now = slices.Insert(now, at, "--set", "review.provider=openai-chat")
	}
	return now, said
}

// takesValue reports whether a flag that wrap has takes a value.
func takesValue(word string) bool {
	return slices.Contains([]string{"--name", "--env", "--cwd", "--url", "--header", "--bearer", "--transport", "--timeout", "--config", "-c",
		"--profile", "--frame", "--policy", "--evidence", "--log-level", "--set"}, word)
}
