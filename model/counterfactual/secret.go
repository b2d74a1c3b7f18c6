// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A segment holds a secret where a name that says so stands before a value, where a value begins as keys of services do, or
// where the agent read a file of credentials.
var (
	assigned = regexp.MustCompile(`(?i)(?:^|[^a-z0-9])([a-z0-9_.-]*(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|passw(?:or)?d|passphrase|pwd|credential|[_.-]key)[a-z0-9_.-]*|key)["']?\s*(?:=>|=|:)\s*["']?([^\s"',]{6,512})`)
	prefixed = regexp.MustCompile(`\b(?:sk-|sk_live_|rk_live_|gh[pousr]_|github_pat_|glpat-|xox[abposr]-|AKIA|ASIA|AIza|npm_|pypi-|hf_|eyJ)[A-Za-z0-9_\-.=+/]{3,512}`)
	keyFile  = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----\s*([A-Za-z0-9+/=]{16,512})`)
	anyValue = regexp.MustCompile(`[A-Za-z0-9_\-.=+/@!$%^*~]{8,512}`)
)

// Credentials are names of files, and parts of paths, that hold credentials.
var Credentials = []string{".ssh", ".env", ".aws", ".netrc", ".npmrc", ".pypirc", ".kube", ".gnupg", ".git-credentials", ".docker/config", "id_rsa", "id_ed25519", "id_ecdsa", "/etc/passwd", "/etc/shadow", "credentials", "secrets.", ".pgpass", "keychain"}

// maxSecrets bounds the secrets of one context.
const maxSecrets = 256

// secretsIn are the values of the segments that look like secrets, each once.
func (a *Assembly) secretsIn() []string {
	seen := map[string]bool{}
	var out []string
	add := func(v string) {
		if v = strings.TrimRight(v, ".,;:)]}"); len(v) >= 6 && len(out) < maxSecrets && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	for i := range a.Segments {
		s := &a.Segments[i]
		text := s.Text
		for _, m := range assigned.FindAllStringSubmatch(text, maxSecrets) {
			if strings.ContainsAny(m[2], "0123456789") || len(m[2]) >= 16 {
				add(m[2])
			}
		}
		for _, m := range prefixed.FindAllString(text, maxSecrets) {
			if strings.ContainsAny(m, "0123456789") {
				add(m)
			}
		}
		for _, m := range keyFile.FindAllStringSubmatch(text, maxSecrets) {
			add(m[1])
		}
		if call := strings.ToLower(s.Call[:min(len(s.Call), maxValue)]); ContainsAny(call, Credentials) {
			for _, m := range anyValue.FindAllString(text, maxSecrets) {
				if strings.ContainsAny(m, "0123456789") {
					add(m[strings.IndexByte(m, '=')+1:])
				}
			}
		}
	}
	return out
}

// ContainsAny reports whether a text contains one of a list.
func ContainsAny(s string, list []string) bool {
	for _, w := range list {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// secretsOf are those secrets of the context that stand in the text of an argument, also in the encodings by which they are
// smuggled.
func (f *Finder) secretsOf(path, text string) (out []Origin) {
	if !f.sought {
		f.sought, f.secrets = true, f.a.secretsIn()
	}
	for _, s := range f.secrets {
		plain := base64.StdEncoding.EncodeToString([]byte(s))
		for _, spelled := range []string{s, url.QueryEscape(s), strings.TrimRight(plain, "="), strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(s)), "="), hex.EncodeToString([]byte(s))} {
			if strings.Contains(text, spelled) {
				out = append(out, Origin{Argument: frame.Label(path), path: path, value: "s:" + s, Form: FormSecret, Inside: true})
				break
			}
		}
	}
	return out
}
