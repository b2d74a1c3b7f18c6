// SPDX-License-Identifier: Apache-2.0

package child

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A Need is something that servers need of the environment, and the variables by which they
// get it. A name that ends in "*" stands for every variable that begins so.
type Need struct {
	What  string // completes "to …"
	Names []string
	folds bool // the programs that read them ignore case
	urls  bool // a value may be a URL with a password in it
}

// Passed lists the variables that every child gets from this process where they are set: what
// a program needs to find itself, its user, its tools and its network. docs/environment.md is
// written from it. What carries a secret is not passed on: see [Command.Withheld].
var Passed = []Need{
	{What: "find programs, the user's files and a place for temporary files", Names: []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "XDG_*"}},
	{What: "know the language and the time zone", Names: []string{
		"LANG", "LANGUAGE", "LC_*", "LOCALE_ARCHIVE", "TZ", "TZDIR"}},
	{What: "trust the certificate authorities of this network", Names: []string{
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "REQUESTS_CA_BUNDLE",
		"CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
		"NIX_SSL_CERT_FILE", "HTTPLIB2_CA_CERTS", "DENO_CERT", "DENO_TLS_CA_STORE", "CARGO_HTTP_CAINFO"}},
	{What: "reach the network through its proxy", urls: true, Names: []string{
		"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
		"NO_PROXY", "no_proxy", "NODE_USE_ENV_PROXY"}},
	{What: "install and run packages of npm, pnpm, Yarn, Bun and Deno", urls: true, folds: true, Names: []string{
		"npm_config_*", "COREPACK_*", "PNPM_HOME", "YARN_*", "BUN_*", "DENO_DIR", "DENO_INSTALL_ROOT",
		"NVM_DIR", "NVM_HOME", "NVM_SYMLINK", "VOLTA_HOME", "FNM_*"}},
	{What: "install and run packages of Python", urls: true, folds: true, Names: []string{
		"UV_*", "PIP_*", "PIPX_*", "PYENV_ROOT", "PYTHONUTF8", "PYTHONIOENCODING"}},
	{What: "find other tools and containers", Names: []string{
		"ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "JAVA_HOME", "DOTNET_ROOT", "DOTNET_ROOT(X86)", "GOPATH", "CARGO_HOME", "RUSTUP_HOME",
		"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"}},
	{What: "open a window or the user's browser", Names: []string{
		"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "BROWSER",
		"WSL_DISTRO_NAME", "WSL_INTEROP", "WSLENV"}},
	{What: "run on Windows", Names: []string{
		"ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(ARM)", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432",
		"COMPUTERNAME", "COMSPEC", "DRIVERDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS",
		"OS", "PATHEXT", "PROCESSOR_*", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(ARM)", "PROGRAMFILES(X86)", "PROGRAMW6432",
		"PSMODULEPATH", "PUBLIC", "SESSIONNAME", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERDNSDOMAIN", "USERDOMAIN", "USERNAME", "USERPROFILE", "WINDIR"}},
}

// secretWords are the parts of a name by which package managers are given secrets, and by
// which a user's name at a registry is given, which may be the token itself.
var secretWords = []string{"auth", "authtoken", "token", "password", "passwd", "passphrase", "secret", "key", "credential", "credentials", "otp", "username"}

// commandWords are names of npm's variables that say what one run of npm shall do. npm sets
// them for what it starts, so where npx has started this program they would change what the
// next npx runs. node_options is what NODE_OPTIONS is, which is not passed on either, and so are
// variables of Bun by which it loads other code.
var commandWords = []string{"bun_options", "bun_inspect", "bun_inspect_preload", "bun_inspect_connect_to", "bun_inspect_notify", "npm_config_node_options", "npm_config_package", "npm_config_call", "npm_config_global", "npm_config_location", "npm_config_workspace", "npm_config_workspaces"}

// userinfo finds a user or password before the host of a URL, also of one without a scheme,
// as the programs that read proxies take it.
var userinfo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s,=]|//)[^/?#\s,@]+@`) })

// urlSecret finds what of the URL of a package index may be a secret: a user or password, or the
// query, which some services sign or put a token into.
var urlSecret = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(://)[^/?#\s,@]+@|(://[^?#\s,]*)\?[^#\s,]*`) })

// need finds what a variable is passed on for on a system, and reports whether Passed lists its whole name.
func need(goos, name string) (n *Need, listed bool) {
	for i := range Passed {
		n := &Passed[i]
		same := func(a, b string) bool { return a == b || (n.folds || goos == "windows") && strings.EqualFold(a, b) }
		for _, w := range n.Names {
			begin, open := strings.CutSuffix(w, "*")
			switch {
			case same(name, w):
				return n, true
			case open && len(name) > len(begin) && same(name[:len(begin)], begin):
				return n, false
			}
		}
	}
	return nil, false
}

// secretName reports whether the name of a variable says that it carries a secret.
func secretName(name string) bool {
	lower := strings.ToLower(name)
	words := strings.FieldsFunc(lower, func(r rune) bool { return r == '_' || r == '-' || r == ':' })
	return strings.Contains(lower, "//") || // npm_config_//registry.example/:_authToken
		slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, w) })
}

// secretValue reports whether the value of a variable that is passed on for n carries a secret.
func (n *Need) secretValue(value string) bool {
	return n.urls && (userinfo().MatchString(value) || n.folds && urlSecret().MatchString(value))
}

// bare is the value of a variable that carries a secret without it, for the URL of a package
// index; "" for any other. Without its index the package manager would take a package of the
// same name from the public one, which anyone may publish there; asked without a password, the
// index refuses.
func (n *Need) bare(name, value string) string {
	if !n.folds || !strings.Contains(value, "://") || secretName(name) {
		return ""
	}
	for range 2 { // the user, then the query
		value = urlSecret().ReplaceAllString(value, "$1$2")
	}
	if n.secretValue(value) {
		return ""
	}
	return value
}

// environ picks from parent the default and the inherited names and adds extra. A later
// setting of a name wins. withheld are the names of Passed that are set and carry a secret; the
// URL of a package index is passed on without it.
func environ(goos string, parent, inherit, extra []string) (env, withheld []string) {
	same := func(a, b string) bool { return a == b || goos == "windows" && strings.EqualFold(a, b) }
	env = []string{} // never nil: nil means everything to os/exec
	for _, kv := range parent {
		name, value, ok := strings.Cut(kv, "=")
		// A shell function exported as a variable is code.
		if !ok || strings.HasPrefix(value, "()") {
			continue
		}
		if slices.ContainsFunc(inherit, func(w string) bool { return same(w, name) }) {
			env = append(env, kv)
			continue
		}
		n, listed := need(goos, name)
		switch {
		case n == nil, slices.Contains(commandWords, strings.ToLower(name)):
		case (listed || !secretName(name)) && !n.secretValue(value):
			env = append(env, kv)
		case !slices.ContainsFunc(extra, func(kv string) bool { set, _, _ := strings.Cut(kv, "="); return same(set, name) }):
			withheld = append(withheld, name)
			if bare := n.bare(name, value); bare != "" {
				env = append(env, name+"="+bare)
			}
		}
	}
	return append(env, extra...), withheld
}

// Withheld returns the names of variables that are set in this process and that the child would
// get if they carried no secret: a proxy or a package index whose URL holds a password, a token
// of a registry. Inherit passes one on.
func (c *Command) Withheld() []string {
	_, withheld := environ(runtime.GOOS, os.Environ(), c.Inherit, c.Env)
	return withheld
}

// WithheldProxies returns those of [Command.Withheld] without which the child may not reach its
// network.
func (c *Command) WithheldProxies() []string {
	return slices.DeleteFunc(c.Withheld(), func(name string) bool { return !strings.HasSuffix(strings.ToLower(name), "_proxy") })
}

var (
	// variable is a name as programs write the names of variables: with an underscore, so that
	// no word in capitals is taken for one.
	variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`) })
	// asking is what programs say of a variable that they need.
	asking = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\benv(?:ironment)?\b|\brequired?\b|\bmissing\b|\bnot (?:set|found|defined|provided|configured)\b|\bmust\b|\bplease\b|\bundefined\b|\bprovide\b|\bKeyError\b`)
	})
)

// maxLacks is the number of names that Lacks returns.
const maxLacks = 8

// Lacks returns the names of variables that lines, which are the child's, ask for and that the
// child did not have. A name is of at most 64 capitals, digits and underscores. It is a guess:
// a program that ends without naming a variable tells nothing.
func (c *Command) Lacks(lines []string) (names []string) {
	env, _ := environ(runtime.GOOS, os.Environ(), c.Inherit, c.Env)
	has := func(name string) bool {
		return slices.ContainsFunc(env, func(kv string) bool {
			set, value, _ := strings.Cut(kv, "=")
			return value != "" && strings.EqualFold(set, name)
		})
	}
	for i, line := range lines {
		// Validators name the variable in one line, and say what is wrong with it in the next.
		if !asking().MatchString(line) && (i+1 == len(lines) || variable().MatchString(lines[i+1]) || !asking().MatchString(lines[i+1])) {
			continue
		}
		for _, name := range variable().FindAllString(line, -1) {
			if len(name) <= 64 && len(names) < maxLacks && !slices.Contains(names, name) && !has(name) {
				names = append(names, name)
			}
		}
	}
	return names
}
