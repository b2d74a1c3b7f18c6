// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"
	"strings"
)

// reaching are words of names of arguments that a tool connects to.
var reaching = []string{"url", "urls", "uri", "link", "href", "host", "hostname", "domain", "webhook", "endpoint", "ip"}

// local are words of names of arguments that hold a place on this machine.
var local = []string{"path", "paths", "file", "files", "filename", "filepath", "folder", "dir", "directory"}

// Reaches reports whether a tool that gets the value may send something there.
func (o *Origin) Reaches() bool {
	if o.Form == FormURL || o.Form == FormMail {
		return true
	}
	_, leaf := cutLast(o.path, ".")
	named := words(leaf)
	is := func(list []string) bool {
		return slices.ContainsFunc(named, func(w string) bool { return slices.Contains(list, w) })
	}
	return !o.Inside && (is(reaching) || !is(local) && hostLike(o.plain()))
}

// MayReach is a quick look at the arguments of a call: false if none of its values Reaches.
func MayReach(args []byte) bool {
	s := strings.ToLower(string(args))
	for i := 1; i+1 < len(s); i++ { // a host has a dot between two letters or digits
		if s[i] == '.' && letter(s[i-1]) != 0 && letter(s[i+1]) != 0 {
			return true
		}
	}
	return slices.ContainsFunc([]string{`\`, "//", "@", `ip"`}, func(sign string) bool { return strings.Contains(s, sign) }) ||
		slices.ContainsFunc(reaching, func(w string) bool { return len(w) > 2 && strings.Contains(s, w) })
}

// extensions of files that look like the end of a host, beside those of which no domain is.
const extensions = " md py rs sh pl zip mov ps so cc cd ml tf app doc docx pdf txt csv tsv json jsonl yaml yml toml xml html htm log ini cfg conf lock go js ts jsx tsx java c h cpp hpp rb php sql png jpg jpeg gif svg webp mp3 mp4 wav tar gz tgz xz bz2 exe dll bin bak tmp ipynb xls xlsx ppt pptx odt ods rtf tex bib env "

// hostLike reports whether a text that is no URL by its spelling begins with a host all the
// same: "//example.com/x", "example.com:8080/x".
func hostLike(s string) bool {
	rest, slashes := strings.CutPrefix(strings.ReplaceAll(s, `\`, "/"), "//")
	end := strings.IndexAny(rest, "/?#:")
	if end < 0 {
		end = len(rest)
	}
	host := rest[:end]
	_, last := cutLast(host, ".")
	if host == last || len(host) > 253 || strings.ContainsAny(host, " \t\n@,") || strings.Contains(host, "..") || host[0] == '.' {
		return slashes && host != ""
	}
	return slashes || len(last) > 1 && !digits(last) && !strings.Contains(extensions, " "+strings.ToLower(last)+" ") || end < len(rest) && rest[end] != ':' && digits(last)
}

// hostOf is the host of a canonical URL.
func hostOf(url string) string {
	host := strings.TrimPrefix(url, "u:")
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	return strings.TrimPrefix(host, "www.")
}
