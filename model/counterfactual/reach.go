// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"
	"strings"
)

// reaching are words of names of arguments that a tool connects to.
var reaching = []string{"url", "urls", "uri", "link", "href", "host", "hostname", "domain", "webhook", "endpoint", "ip"}

// outward are words of names of tools that send what they are given to the web.
var outward = set("web internet google bing duckduckgo brave tavily perplexity serp url http https fetch browse browser page site website online crawl scrape curl download")

// local are words of names of arguments that hold a place on this machine.
var local = []string{"path", "paths", "file", "files", "filename", "filepath", "folder", "dir", "directory"}

// Reaches reports whether a tool that gets the value may send something there.
func (o *Origin) Reaches() bool {
	if o.Form == FormURL || o.Form == FormMail || o.Form == FormSecret || o.Leaks {
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
	run, digit, many := 0, false, 0 // of what may be a secret, or a number in groups
	for _, c := range args {
		if '0' <= c && c <= '9' {
			if many++; many > 8 {
				return true
			}
		}
		switch {
		case letter(c) == 0 && strings.IndexByte("-=+", c) < 0:
			run, digit = 0, false
			continue
		case '0' <= c && c <= '9':
			digit = true
		}
		if run++; run >= 16 || run >= 6 && digit {
			return true
		}
	}
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

// sharedHosts are hosts where many owners have pages, and how many parts of a path name the owner.
var sharedHosts = map[string]int{"github.com": 1, "raw.githubusercontent.com": 1, "api.github.com": 2, "gist.github.com": 1, "gitlab.com": 1, "bitbucket.org": 1, "codeberg.org": 1, "huggingface.co": 1,
	"docs.google.com": 3, "drive.google.com": 3, "sites.google.com": 2, "storage.googleapis.com": 1, "s3.amazonaws.com": 1, "notion.so": 1, "notion.site": 1, "dropbox.com": 2, "medium.com": 1, "pastebin.com": 1,
	"trello.com": 2, "airtable.com": 1, "figma.com": 2, "miro.com": 2, "discord.com": 2, "reddit.com": 2, "youtube.com": 1, "x.com": 1, "twitter.com": 1, "linkedin.com": 2, "t.me": 1, "webhook.site": 1, "hooks.slack.com": 2,
	"npmjs.com": 2, "pypi.org": 2, "hub.docker.com": 2, "app.slack.com": 2, "onedrive.live.com": 1, "archive.org": 2, "web.archive.org": 3, "bit.ly": 1, "tinyurl.com": 1, "formspree.io": 2, "script.google.com": 3}

// tenantIsTrusted reports whether the user has named the owner of a page on a host where many owners have pages. What the
// user's URL has in these parts of its path counts.
func (f *Finder) tenantIsTrusted(url, host string) bool {
	depth := sharedHosts[host]
	if slices.Contains(f.a.sharedHosts, host) {
		depth = 1
	}
	if host != "s3.amazonaws.com" && strings.HasPrefix(host, "s3.") && strings.HasSuffix(host, ".amazonaws.com") {
		depth = 1
	}
	if depth == 0 {
		return true
	}
	_, path, _ := strings.Cut(strings.ToLower(strings.NewReplacer("?", "/?", "#", "/#").Replace(url)), "/")
	parts := strings.SplitN(path, "/", depth+1)
	owner := strings.Join(parts[:min(len(parts), depth)], "/")
	return owner == "" || containsWords(f.trusted.squeezed, host+"/"+owner, hostJoins)
}
