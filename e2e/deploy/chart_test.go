// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/sumdb/note"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// Versions of Kubernetes that the chart is rendered for.
var kubernetes = []string{"1.30.0", "1.34.1"}

// render is what `helm template` makes of the chart.
func render(t *testing.T, version string, args ...string) string {
	t.Helper()
	return output(t, append([]string{deployTool(t, "helm"), "template", "gate", chart, "--namespace", "mcp", "--kube-version", version}, args...)...)
}

// A manifest is one rendered object, by the members that the tests look at.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Replicas      *int
		Template      struct{ Spec podSpec }
		Ingress       []struct{ Ports, From []map[string]any }
		MinReplicas   int `yaml:"minReplicas"`
		MaxUnavilable any `yaml:"maxUnavailable"`
	}
}

type podSpec struct {
	Automount *bool          `yaml:"automountServiceAccountToken"`
	Grace     int            `yaml:"terminationGracePeriodSeconds"`
	Security  map[string]any `yaml:"securityContext"`
	Volumes   []map[string]any
	Spread    []any `yaml:"topologySpreadConstraints"`
	Container []struct {
		Image    string
		Env      []map[string]any
		Security map[string]any `yaml:"securityContext"`
		Mounts   []struct {
			Path     string `yaml:"mountPath"`
			ReadOnly bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
		Readiness map[string]any `yaml:"readinessProbe"`
		Liveness  map[string]any `yaml:"livenessProbe"`
	} `yaml:"containers"`
}

func manifests(t *testing.T, text string) map[string]manifest {
	t.Helper()
	out := map[string]manifest{}
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var m manifest
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		case m.Kind != "":
			out[m.Kind+" "+m.Metadata.Name] = m
		}
	}
}

// values are the files of the folder ci, each a way to install the chart, and the objects that it makes.
var values = map[string]string{
	"sqlite":   "ConfigMap NetworkPolicy Service ServiceAccount StatefulSet",
	"postgres": "ConfigMap Deployment NetworkPolicy PodDisruptionBudget Service ServiceAccount",
	"full": "ConfigMap ConfigMap Deployment HorizontalPodAutoscaler Ingress NetworkPolicy PodDisruptionBudget PrometheusRule Service " +
		"ServiceAccount ServiceMonitor",
}

// TestChart: each file of values passes helm's lint, renders objects that Kubernetes accepts, whose
// pods have no rights that they do not need, and a pellucid.yaml that compiles.
func TestChart(t *testing.T) {
	helm, kubeconform, dir := deployTool(t, "helm"), deployTool(t, "kubeconform"), schemas(t)
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*-values.yaml"))
	if err != nil || len(files) != len(values) {
		t.Fatalf("%d files of values, want %d; %v", len(files), len(values), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), "-values.yaml")
		t.Run(name, func(t *testing.T) {
			output(t, helm, "lint", "--strict", "--kube-version", kubernetes[0], "-f", file, chart)
			for _, version := range kubernetes {
				text := render(t, version, "-f", file)
				cmd := exec.Command(kubeconform, "-strict", "-summary", "-schema-location", filepath.Join(dir, "{{ .ResourceKind }}{{ .KindSuffix }}.json"))
				cmd.Stdin = strings.NewReader(text)
				if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Skipped: 0") {
					t.Errorf("kubeconform: %v\n%s", err, out)
				}
				checkObjects(t, manifests(t, text), values[name])
			}
		})
	}
}

func checkObjects(t *testing.T, all map[string]manifest, want string) {
	t.Helper()
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		kinds = append(kinds, m.Kind)
		switch m.Kind {
		case "Deployment", "StatefulSet":
			checkPod(t, m.Spec.Template.Spec)
		case "ConfigMap":
			if text, ok := m.Data["pellucid.yaml"]; ok {
				checkConfig(t, text, all)
			}
			if text, ok := m.Data["pellucid.json"]; ok && !json.Valid([]byte(text)) {
				t.Error("the dashboard in the ConfigMap is not JSON")
			}
		case "NetworkPolicy":
			checkPeers(t, m)
		}
	}
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("objects %s, want %s", got, want)
	}
}

// checkPod: no root, no capability, no writable root, no token of a service account, and no secret
// but by reference.
func checkPod(t *testing.T, p podSpec) {
	t.Helper()
	if p.Automount == nil || *p.Automount || p.Grace < 20 || p.Security["runAsNonRoot"] != true || p.Security["runAsUser"] != 65532 ||
		len(p.Container) != 1 {
		t.Errorf("pod: %+v", p)
	}
	if profile, _ := p.Security["seccompProfile"].(map[string]any); profile["type"] != "RuntimeDefault" {
		t.Errorf("seccomp: %v", p.Security)
	}
	c := p.Container[0]
	capabilities, _ := c.Security["capabilities"].(map[string]any)
	if c.Security["allowPrivilegeEscalation"] != false || c.Security["readOnlyRootFilesystem"] != true || len(capabilities) != 1 ||
		!slices.Equal(capabilities["drop"].([]any), []any{"ALL"}) {
		t.Errorf("container: %v", c.Security)
	}
	if c.Readiness == nil || c.Liveness == nil || strings.HasSuffix(c.Image, ":latest") || !strings.ContainsAny(c.Image, ":@") {
		t.Errorf("container: %+v", c)
	}
	for _, e := range c.Env {
		name, _ := e["name"].(string)
		value, plain := e["value"].(string)
		if secret := strings.Contains(name, "KEY") || strings.Contains(name, "DB"); secret && plain && !strings.HasPrefix(value, "env:") {
			t.Errorf("%s stands in the pod", name)
		}
	}
	for _, m := range c.Mounts {
		if strings.HasPrefix(m.Path, "/run/secrets") && !m.ReadOnly {
			t.Errorf("%s is writable", m.Path)
		}
	}
}

// checkPeers: the port of replicas is open to pods of this release only.
func checkPeers(t *testing.T, m manifest) {
	t.Helper()
	for _, rule := range m.Spec.Ingress {
		for _, port := range rule.Ports {
			if port["port"] != "replicas" {
				continue
			}
			if len(rule.From) != 1 || rule.From[0]["podSelector"] == nil || len(rule.From[0]) != 1 || len(rule.Ports) != 1 {
				t.Errorf("the port of replicas is open to %v", rule.From)
			}
		}
	}
}

// checkConfig compiles pellucid.yaml with the environment and the files that the pod has.
func checkConfig(t *testing.T, text string, all map[string]manifest) {
	t.Helper()
	dir := t.TempDir()
	logKey, _, err := note.GenerateKey(rand.Reader, "example.com/log")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"POD_IP": "10.0.0.7"}
	for _, m := range all {
		for _, c := range m.Spec.Template.Spec.Container {
			for _, e := range c.Env {
				value, plain := e["value"].(string)
				if !plain {
					value = "postgres://pellucid@db.example/pellucid"
				}
				if e["name"] == "PELLUCID_REPLICA_NAME" {
					value = "gate-pellucid-6d4cf56db6-x7k2p"
				}
				if e["name"] == "PELLUCID_LEDGER_KEY" {
					value = logKey
				}
				env[e["name"].(string)] = strings.ReplaceAll(value, "$(POD_IP)", "10.0.0.7")
			}
		}
	}
	for name, content := range map[string]string{
		"tokens.json": `{"tokens":[{"principal":"alice","scopes":["mcp"],"token":"file:` + dir + `/alice"}]}`,
		"alice":       rand.Text() + rand.Text(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "pellucid.yaml")
	text = strings.ReplaceAll(text, "/run/secrets/pellucid/pellucid-tokens", dir)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := rules.Load(file, rules.Options{Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		t.Fatalf("pellucid.yaml of the chart: %v\n%s", err, text)
	}
	if several := env["PELLUCID_REPLICA"] != ""; r.Replicas.Set() != several {
		t.Errorf("replicas are set: %v, want %v", r.Replicas.Set(), several)
	}
}

// TestChartRefuses: what would not work, or would put a secret into the values, is refused before
// anything is installed.
func TestChartRefuses(t *testing.T) {
	helm := deployTool(t, "helm")
	sqlite, postgres := filepath.Join(chart, "ci", "sqlite-values.yaml"), filepath.Join(chart, "ci", "postgres-values.yaml")
	for _, tt := range []struct{ name, file, set, want string }{
		{"two replicas on SQLite", sqlite, "replicas=2", "kind"},
		{"replicas without an install key", postgres, "installKey.secret.name=", "installKey"},
		{"Postgres without its URL", postgres, "store.urlSecret.name=", "urlSecret"},
		{"a URL in the values", postgres, "store.url=postgres://u:p@db/x", "store"},
		{"a key in the values", postgres, "installKey.value=00", "installKey"},
		{"another engine", postgres, "store.kind=mysql", "kind"},
		{"no replica", postgres, "replicas=0", "replicas"},
		{"many replicas", postgres, "replicas=1000", "replicas"},
		{"an unknown value", sqlite, "replicaCount=3", "replicaCount"},
		{"no auth", sqlite, "config.auth=null", "auth"},
		{"no name for the gateway", sqlite, "config.public_url=null", "public_url"},
		{"another address", sqlite, "config.listen=0.0.0.0:80", "listen"},
		{"a store beside that of the chart", sqlite, "config.store=file:x.db", "store"},
		{"a drain beside that of the chart", sqlite, "config.http.drain=1s", "drain"},
		{"scaling on SQLite", sqlite, "autoscaling.enabled=true", "kind"},
		{"scaling on a metric of others", postgres, "autoscaling.metric=cpu", "metric"},
		{"a scrape without a token", postgres, "metrics.serviceMonitor.enabled=true", "tokenSecret"},
		{"an Ingress without TLS", postgres, "ingress.enabled=true,ingress.host=mcp.example.org", "tlsSecret"},
		{"a malformed digest", sqlite, "image.digest=sha256:abc", "digest"},
		{"a variable that the chart sets", sqlite, "secretEnv.PELLUCID_DB.name=x,secretEnv.PELLUCID_DB.key=y", "PELLUCID_DB"},
		{"a malformed name of a secret", sqlite, "secretFiles[0]=../x", "secretFiles"},
		{"fewer replicas at most than at least", postgres, "autoscaling.enabled=true,autoscaling.minReplicas=5,autoscaling.maxReplicas=2", "minReplicas"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(helm, "template", "gate", chart, "--kube-version", kubernetes[0], "-f", tt.file, "--set", tt.set)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if out, err := cmd.Output(); err == nil {
				t.Errorf("rendered:\n%.300s", out)
			} else if !strings.Contains(stderr.String(), tt.want) {
				t.Errorf("the message does not say %q:\n%s", tt.want, &stderr)
			}
		})
	}
	cmd := exec.Command(helm, "template", "gate", chart, "--kube-version", "1.29.0", "-f", sqlite)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "kubeVersion") {
		t.Errorf("Kubernetes 1.29, which cannot wait before SIGTERM: %v %.200s", err, out)
	}
}
