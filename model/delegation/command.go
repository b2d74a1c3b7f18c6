// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// Patterns of a command line that no build or test of a project has.
var (
	intoShell = regexp.MustCompile(`(?i)\|\s*(?:sudo\s+)?(?:/\S*/)?(?:(?:ba|z|da|k|fi|c)?sh|pwsh|iex|(?:python3?|perl|ruby|node|php)\s*(?:-\s*)?(?:[;&|]|$))(?:\s|[;&|]|$)|<\(\s*(?:curl|wget)|\$\(\s*(?:curl|wget)|\x60\s*(?:curl|wget)|(?:sh|bash|eval|source)\s+["']?(?:<\(|\$\()`)
	urls      = regexp.MustCompile(`(?i)\b(?:https?|ftp|ssh|git)://[^\s"'|;)<>\x60]+`)
	inner     = regexp.MustCompile(`\s-l?c\s+["']`)
	assigns   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// Programs by what they may do.
var (
	wrappers    = words(`sudo doas env time nohup xargs command exec timeout nice then do if while ! else`)
	downloaders = words(`curl wget http https httpie aria2c invoke-webrequest iwr`)
	senders     = words(`nc ncat netcat telnet ftp sftp scp ssh rsync socat mail sendmail mutt`)
	destroyers  = words(`rm rmdir shred dd chmod chown chgrp truncate mkfs wipefs`)
	writers     = words(`mv cp ln tee install unlink`)
	masters     = words(`kill pkill killall shutdown reboot crontab at systemctl launchctl iptables ufw useradd usermod passwd visudo mount sysctl`)
	outward     = words(`docker podman kubectl helm terraform pulumi ansible ansible-playbook aws gcloud az gh glab heroku vercel netlify fly psql mysql sqlite3 redis-cli mongo mongosh twine`)
	benign      = words(`pytest tox nox go cargo npm yarn pnpm bun make cmake ctest ninja mvn gradle gradlew dotnet rake rspec bundle phpunit ruff mypy flake8 black isort pylint eslint tsc prettier jest vitest mocha golangci-lint shellcheck
		python python3 node ruby php java javac rustc gcc clang git ls cat head tail sed grep rg find wc pwd echo printf cd tree which diff sort uniq cut awk jq test true false date mkdir touch basename dirname stat file less more
		pip pip3 uv poetry pipenv pdm conda source . export set unset sleep type xargs tr column nl`)
	forces = words(`--force --force-with-lease --force-reinstall --no-verify --hard --unsafe-perm --allow-root --privileged --trusted-host --insecure --no-check-certificate 777 -rf -fr --break-system-packages --yes-i-know`)
)

func words(s string) []string { return strings.Fields(s) }

// hardCredentials are never part of a build or test.
var hardCredentials = []string{".ssh/", "id_rsa", "id_ed25519", "id_ecdsa", ".aws/", ".netrc", "/etc/shadow", ".gnupg", ".git-credentials", ".kube/config", ".pgpass"}

// foreignCommand judges a command line.
func (w *work) foreignCommand(line string) bool {
	line = strings.TrimSpace(line)
	if len(line) > 16<<10 {
		return true
	}
	if line == "" || w.mine.Hold(line) {
		return false
	}
	lower := strings.ToLower(line)
	if intoShell.MatchString(line) || counterfactual.ContainsAny(lower, hardCredentials) {
		return true
	}
	for _, u := range urls.FindAllString(line, 64) {
		if host := hostIn(u); !localHost(host) && w.only(host) {
			return true
		}
	}
	for _, c := range simpleCommands(line) {
		if w.foreignSimple(c) {
			return true
		}
	}
	return false
}

// simpleCommands are the commands of a line, each as its words without quotes.
func simpleCommands(line string) (out [][]string) {
	line = inner.ReplaceAllString(line, " ; ")
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(";&|\n()`{}", r) }) {
		f := strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune(" \t\r\"'", r) })
		for len(f) > 0 && (slices.Contains(wrappers, f[0]) && f[0] != "sudo" && f[0] != "doas" || assigns.MatchString(f[0]) || f[0] == "$") {
			f = f[1:]
		}
		if len(f) > 0 && len(out) < 256 {
			out = append(out, f)
		}
	}
	return out
}

// foreignSimple judges one command.
func (w *work) foreignSimple(f []string) bool {
	elevated := f[0] == "sudo" || f[0] == "doas"
	if elevated {
		if w.only(f[0]) {
			return true
		}
		if f = f[1:]; len(f) == 0 {
			return false
		}
	}
	prog := strings.ToLower(path.Base(f[0]))
	is := func(list []string) bool { return slices.Contains(list, prog) }
	switch {
	case is(senders):
		return !w.mine.Hold(prog)
	case is(downloaders):
		return w.foreignDownload(f[1:])
	case is(masters):
		return w.only(prog)
	case is(destroyers), is(writers), elevated:
		if w.only(prog) && is(destroyers) {
			return true
		}
	}
	for i, a := range f[1:] {
		target := strings.TrimLeft(a, "<>0123456789&")
		redirected := target != a || i > 0 && strings.HasPrefix(f[i], ">")
		far := outside(target) && !harmless(target) && !w.mine.Hold(target) && !w.inProject(target)
		switch {
		case far && (is(destroyers) || (is(writers) || redirected) && w.third.Hold(target)):
			return true
		case far && w.third.Hold(target) && !is([]string{"cd", "ls"}):
			return true
		case slices.Contains(forces, strings.ToLower(a)) && w.only(a):
			return true
		case counterfactual.ContainsAny(strings.ToLower(a), counterfactual.Credentials) && w.only(a):
			return true
		}
	}
	if names := installed(prog, f[1:]); names != nil {
		return slices.ContainsFunc(names, w.foreignPackage)
	}
	publishes := prog == "git" && len(f) > 1 && slices.Contains([]string{"push", "remote", "config", "clone", "submodule"}, f[1]) || len(f) > 1 && f[1] == "publish"
	return (is(outward) || publishes || !is(benign)) && len(f) > 1 && !w.a.TrustedTexts().Hold(prog) && w.only(strings.Join(f, " "))
}

// foreignDownload reports whether a downloader goes to a host that the user has not named.
func (w *work) foreignDownload(f []string) bool {
	for _, a := range f {
		host := hostIn(a)
		if strings.HasPrefix(a, "-") || !strings.Contains(host, ".") || localHost(host) || strings.HasPrefix(a, "@") {
			continue
		}
		if strings.Contains(a, "://") || !strings.ContainsAny(a, "=,") && !strings.HasPrefix(a, ".") && !strings.HasPrefix(a, "/") && strings.Contains(host, ".") && !fileLike(a) {
			if !w.mine.Hold(host) {
				return true
			}
		}
	}
	return false
}

func fileLike(s string) bool { return !strings.Contains(s, "/") && strings.Count(s, ".") == 1 }

func hostIn(url string) string {
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		rest = url
	}
	host := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-@:_"))]
	host = host[strings.LastIndexByte(host, '@')+1:]
	host, _, _ = strings.Cut(host, ":")
	return strings.ToLower(host)
}

func localHost(host string) bool {
	return host == "localhost" || strings.HasPrefix(host, "127.") || host == "0.0.0.0" || host == ""
}

// harmless are places outside a project that builds use.
func harmless(target string) bool {
	return strings.HasPrefix(target, "/tmp/") || strings.HasPrefix(target, "/dev/null") || strings.HasPrefix(target, "/dev/std") || strings.HasPrefix(target, "$(") || strings.HasPrefix(target, "/var/tmp/")
}

// installed are the packages that a command installs or runs from a registry; nil: it is no such command.
func installed(prog string, f []string) (names []string) {
	if prog == "python" || prog == "python3" {
		if len(f) > 1 && f[0] == "-m" && strings.HasPrefix(f[1], "pip") {
			prog, f = "pip", f[2:]
		}
	}
	verbs := []string{"install", "add", "i", "get", "require", "download", "exec", "dlx", "x"}
	switch prog {
	case "npx", "uvx", "pipx", "bunx":
	case "pip", "pip3", "uv", "poetry", "pipenv", "pdm", "conda", "mamba", "npm", "yarn", "pnpm", "bun", "cargo", "gem", "go", "composer", "apt", "apt-get", "brew", "dnf", "yum", "apk", "pacman", "choco", "winget":
		for len(f) > 0 && !slices.Contains(verbs, f[0]) && (strings.HasPrefix(f[0], "-") || f[0] == "pip" || f[0] == "tool") {
			f = f[1:]
		}
		if prog == "go" && len(f) > 0 && f[0] == "run" && strings.Contains(strings.Join(f, " "), "@") {
			f[0] = "get"
		}
		if len(f) == 0 || !slices.Contains(verbs, f[0]) {
			return nil
		}
		f = f[1:]
	default:
		return nil
	}
	names = []string{}
	for _, a := range f {
		if !strings.HasPrefix(a, "-") && a != "." && !strings.HasPrefix(a, "./") {
			names = append(names, a)
		}
	}
	return names
}
