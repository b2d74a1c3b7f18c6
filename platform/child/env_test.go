// SPDX-License-Identifier: Apache-2.0

package child

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestEnviron: what is passed on by default, what is withheld because it carries a secret, and
// what is left out without a word.
func TestEnviron(t *testing.T) {
	const passed, withheld, out = "passed", "withheld", "left out"
	for kv, want := range map[string]string{
		"PATH=/bin": passed, "XDG_STATE_HOME=/s": passed, "LC_MESSAGES=C": passed, "LC_=": out, "TERM=() { :; }; evil": out,
		"SSL_CERT_FILE=/ca.pem": passed, "NODE_EXTRA_CA_CERTS=/ca.pem": passed, "REQUESTS_CA_BUNDLE=/a@b/ca.pem": passed,
		"HTTPS_PROXY=http://proxy.example:8080": passed, "https_proxy=proxy.example:8080": passed, "NO_PROXY=a.example,b.example": passed,
		"HTTPS_PROXY=http://ada:pw@proxy.example:8080": withheld, "http_proxy=ada:pw@proxy.example:8080": withheld,
		"ALL_PROXY=socks5h://token@proxy.example": withheld, "USERNAME=ada": passed, "username=ada": out, "Https_Proxy=http://proxy.example": out,
		"npm_config_registry=https://npm.example/": passed, "NPM_CONFIG_CACHE=/c": passed, "npm_config_@corp:registry=https://npm.example/": passed,
		"npm_config_user_agent=npm/10.8.2 node/v20 linux x64 workspaces/false": passed, "npm_config_local_prefix=/srv/@corp/x": passed,
		"npm_config_//npm.example/:_authToken=t": withheld, "npm_config__auth=t": withheld,
		"npm_config_key=-----BEGIN": withheld, "npm_config_package=evil": out, "NPM_CONFIG_NODE_OPTIONS=--require /x.js": out, "npm_config_call=evil": out,
		"UV_INDEX_CORP_PASSWORD=p": withheld, "UV_INDEX_CORP_USERNAME=u": withheld, "UV_PUBLISH_TOKEN=t": withheld,
		"UV_DEFAULT_INDEX=https://pypi.example/simple": passed, "UV_KEYRING_PROVIDER=subprocess": passed,
		"PIP_INDEX_URL=https://pypi.example/simple": passed,
		"BUN_OPTIONS=--preload /evil.js":            out, "BUN_INSPECT_PRELOAD=/evil.js": out, "BUN_INSTALL=/b": passed, "PIP_PROXY=ada:pw@proxy.example:8080": withheld,
		"YARN_NPM_AUTH_TOKEN=t": withheld, "BUN_CONFIG_TOKEN=t": withheld, "COREPACK_NPM_REGISTRY=https://npm.example": passed,
		"DOCKER_HOST=ssh://ada@build.example": passed, "DISPLAY=:0": passed, "XDG_ACTIVATION_TOKEN=t": withheld,
		"NODE_OPTIONS=--require /evil.js": out, "NODE_TLS_REJECT_UNAUTHORIZED=0": out, "LD_PRELOAD=/evil.so": out, "PYTHONPATH=/x": out,
		"SSH_AUTH_SOCK=/s": out, "GITHUB_TOKEN=t": out, "AWS_SECRET_ACCESS_KEY=s": out, "OPENAI_API_KEY=k": out, "broken": out,
	} {
		name, _, _ := strings.Cut(kv, "=")
		env, held := environ("linux", []string{kv}, nil, nil)
		got := out
		if slices.Equal(env, []string{kv}) {
			got = passed
		} else if slices.Equal(held, []string{name}) {
			got = withheld
		}
		if got != want {
			t.Errorf("%s: %s, want %s", kv, got, want)
		}
		if strings.Contains(kv, "=") && !strings.Contains(kv, "()") {
			if env, held := environ("linux", []string{kv}, []string{name}, nil); !slices.Equal(env, []string{kv}) || held != nil {
				t.Errorf("%s is not passed on by its name: %q, %q", kv, env, held)
			}
		}
	}
	if env, held := environ("linux", []string{"HTTPS_PROXY=http://ada:pw@p"}, nil, []string{"HTTPS_PROXY=http://q"}); !slices.Equal(env, []string{"HTTPS_PROXY=http://q"}) || held != nil {
		t.Errorf("a value that the operator gives: %q, %q", env, held)
	}
}

// TestEnvironWindows: what programs need of Windows is passed on in every case of its name. A name that Passed lists
// carries no secret, whatever its words.
func TestEnvironWindows(t *testing.T) {
	for _, n := range Passed {
		for _, name := range n.Names {
			if strings.HasSuffix(name, "*") {
				continue
			}
			for _, kv := range []string{name + "=x", strings.ToLower(name) + "=x", strings.ToUpper(name[:1]) + strings.ToLower(name[1:]) + "=x"} {
				if env, held := environ("windows", []string{kv}, nil, nil); !slices.Equal(env, []string{kv}) || held != nil {
					t.Errorf("%s: %q, withheld %q", kv, env, held)
				}
			}
		}
	}
	for _, kv := range []string{
		"USERNAME=zo\u00eb", "SystemRoot=C:\\Windows", "windir=C:\\Windows", "ComSpec=C:\\Windows\\system32\\cmd.exe", "Path=C:\\Windows",
		"ProgramFiles(x86)=C:\\p", "ProgramFiles(Arm)=C:\\p", "CommonProgramFiles=C:\\p", "Processor_Architecture=AMD64", "Https_Proxy=http://proxy.example",
	} {
		if env, held := environ("windows", []string{kv}, nil, nil); !slices.Equal(env, []string{kv}) || held != nil {
			t.Errorf("%s: %q, withheld %q", kv, env, held)
		}
	}
	for _, kv := range []string{"Https_Proxy=http://q:w@proxy.example", "Xdg_Activation_Token=t", "uv_index_corp_username=u"} {
		name, _, _ := strings.Cut(kv, "=")
		if env, held := environ("windows", []string{kv}, nil, nil); len(env) > 0 || !slices.Equal(held, []string{name}) {
			t.Errorf("%s: %q, withheld %q", kv, env, held)
		}
		if env, held := environ("windows", []string{kv}, []string{strings.ToUpper(name)}, nil); !slices.Equal(env, []string{kv}) || held != nil {
			t.Errorf("%s by its name in capitals: %q, withheld %q", kv, env, held)
		}
	}
	if env, held := environ("windows", []string{"=C:=C:\\dir", "Api_Key=k", "Secret=s"}, nil, nil); len(env) > 0 || held != nil {
		t.Errorf("%q, withheld %q", env, held)
	}
}

// TestEnvironIndex: the URL of a package index is passed on without its secret, so that no package
// of the same name is taken from the public index.
func TestEnvironIndex(t *testing.T) {
	for kv, want := range map[string]string{
		"UV_INDEX=corp=https://ada:pw@pypi.example/simple":                                   "UV_INDEX=corp=https://pypi.example/simple",
		"UV_DEFAULT_INDEX=https://t0ken@pypi.example/a@b/simple":                             "UV_DEFAULT_INDEX=https://pypi.example/a@b/simple",
		"npm_config_registry=https://ada:pw@npm.example/":                                    "npm_config_registry=https://npm.example/",
		"PIP_EXTRA_INDEX_URL=https://a.example/ https://ada:pw@b.example/?sig=t0p https://c": "PIP_EXTRA_INDEX_URL=https://a.example/ https://b.example/ https://c",
		"PIP_INDEX_URL=https://pypi.example/simple?token=t0p":                                "PIP_INDEX_URL=https://pypi.example/simple",
		"PIP_INDEX_URL=https://ada@pw@pypi.example/simple":                                   "PIP_INDEX_URL=https://pypi.example/simple",
	} {
		name, _, _ := strings.Cut(kv, "=")
		env, withheld := environ("linux", []string{kv}, nil, nil)
		if !slices.Equal(env, []string{want}) || !slices.Equal(withheld, []string{name}) {
			t.Errorf("%s: %q, withheld %q", kv, env, withheld)
		}
		if env, _ := environ("linux", []string{kv}, []string{name}, nil); !slices.Equal(env, []string{kv}) {
			t.Errorf("%s by its name: %q", kv, env)
		}
		if env, withheld := environ("linux", []string{kv}, nil, []string{name + "=x"}); !slices.Equal(env, []string{name + "=x"}) || withheld != nil {
			t.Errorf("%s with a value of the operator: %q, %q", kv, env, withheld)
		}
	}
}

// TestLacks: names of variables in what servers write when they end, as the runtimes and the
// libraries that read settings write it.
func TestLacks(t *testing.T) {
	t.Setenv("PELLUCID_TEST_SET", "x")
	c := &Command{Inherit: []string{"PELLUCID_TEST_SET"}, Env: []string{"EMPTY_KEY="}}
	for _, tt := range []struct {
		lines []string
		want  []string
	}{
		{[]string{"Error: X_API_KEY environment variable is required"}, []string{"X_API_KEY"}},
		{[]string{"Traceback (most recent call last):", `  File "/s.py", line 3, in <module>`, "KeyError: 'NOTION_TOKEN'"}, []string{"NOTION_TOKEN"}},
		{[]string{"1 validation error for Settings", "SLACK_BOT_TOKEN", "  Field required [type=missing, input_value={}]"}, []string{"SLACK_BOT_TOKEN"}},
		{[]string{"Please set GITHUB_PERSONAL_ACCESS_TOKEN or GITHUB_APP_ID", "EMPTY_KEY is not set"}, []string{"GITHUB_PERSONAL_ACCESS_TOKEN", "GITHUB_APP_ID", "EMPTY_KEY"}},
		{[]string{"PELLUCID_TEST_SET is required"}, nil},
		{[]string{"npm ERR! code ERR_MODULE_NOT_FOUND", "listening on MY_HOST"}, nil},
		{[]string{"Error: Please use JSON", strings.Repeat("A_", 40) + "A is required"}, nil},
		{nil, nil},
	} {
		if got := c.Lacks(tt.lines); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.lines, got, tt.want)
		}
	}
	many := ""
	for i := range 30 {
		many += " A_" + strings.Repeat("B", i+1)
	}
	if got := c.Lacks([]string{many + " are required"}); len(got) != maxLacks {
		t.Errorf("%d names", len(got))
	}
}

// TestDocsEnvironment holds the table of docs/environment.md against Passed. With
// PELLUCID_UPDATE_DOCS set it rewrites a stale table, and still fails.
func TestDocsEnvironment(t *testing.T) {
	const path, begin, end = "../../docs/environment.md", "<!-- written by 'make docs' -->\n", "<!-- /written -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	var b strings.Builder
	b.WriteString("| so that it can | it gets |\n|---|---|\n")
	for _, n := range Passed {
		b.WriteString("| " + n.What + " | `" + strings.Join(n.Names, "`, `") + "` |\n")
	}
	want := before + begin + b.String() + end + after
	if want == string(page) {
		return
	}
	if os.Getenv("PELLUCID_UPDATE_DOCS") == "" {
		t.Fatalf("%s is stale: run 'make docs'", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s was stale and has been rewritten", path)
}

func FuzzEnviron(f *testing.F) {
	f.Add("HTTPS_PROXY=http://a:b@c", "X_Y is required")
	f.Add("npm_config_//x/:_authToken=1", "KeyError: 'A_B'")
	f.Fuzz(func(t *testing.T, kv, line string) {
		env, withheld := environ("linux", []string{kv}, nil, nil)
		name, value, _ := strings.Cut(kv, "=")
		if len(env) > 1 || len(withheld) > 1 {
			t.Errorf("%q: %q, %q", kv, env, withheld)
		}
		if n, listed := need("linux", name); len(env) == 1 {
			if _, passed, _ := strings.Cut(env[0], "="); n == nil || !listed && secretName(name) || n.secretValue(passed) || (passed != value) != (len(withheld) == 1) {
				t.Errorf("%q is passed on as %q", kv, env[0])
			}
		}
		c := &Command{}
		for _, name := range c.Lacks([]string{line, kv}) {
			if len(name) > 64 || !variable().MatchString(name) {
				t.Errorf("%q", name)
			}
		}
	})
}
