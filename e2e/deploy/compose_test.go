// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// A composeFile is what the validator makes of compose.yaml: anchors resolved, variables set.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Environment map[string]string
		ReadOnly    bool     `json:"read_only"`
		CapDrop     []string `json:"cap_drop"`
		Ports       []any
		Networks    map[string]any
		Secrets     []struct{ Source, Target string }
		Tmpfs       []string
		Volumes     []struct{ Type, Source, Target string }
		DependsOn   map[string]any `json:"depends_on"`
	}
	Secrets  map[string]struct{ File string }
	Networks map[string]any
	Volumes  map[string]any
}

// load has the validator hold the file in dir against the schema of Compose files, and checks that
// what a service names is there.
func (c *composeFile) load(t *testing.T, dir string) error {
	t.Helper()
	cmd := exec.Command(deployTool(t, "compose"), "-format", "json", "compose.yaml")
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, &stderr)
	}
	if err := json.Unmarshal(text, c); err != nil {
		return err
	}
	for name, s := range c.Services {
		for other := range s.DependsOn {
			if _, ok := c.Services[other]; !ok {
				err = errors.Join(err, fmt.Errorf("%s depends on %s", name, other))
			}
		}
		for _, secret := range s.Secrets {
			if _, ok := c.Secrets[secret.Source]; !ok {
				err = errors.Join(err, fmt.Errorf("%s wants the secret %s", name, secret.Source))
			}
		}
		for network := range s.Networks {
			if _, ok := c.Networks[network]; !ok {
				err = errors.Join(err, fmt.Errorf("%s is in the network %s", name, network))
			}
		}
		for _, v := range s.Volumes {
			if _, ok := c.Volumes[v.Source]; !ok && v.Type == "volume" {
				err = errors.Join(err, fmt.Errorf("%s wants the volume %s", name, v.Source))
			}
		}
	}
	return err
}

// TestCompose: the Compose file is valid, its replicas differ in their address only, HAProxy knows
// each of them, and their pellucid.yaml compiles with the secrets that secrets.sh makes.
func TestCompose(t *testing.T) {
	deployTool(t, "compose")
	dir := filepath.Join(t.TempDir(), "compose")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(packaging, "compose"))); err != nil {
		t.Fatal(err)
	}
	programtest.Find(t, "openssl")
	output(t, "sh", filepath.Join(dir, "secrets.sh"), "mcp.example.org")
	var c composeFile
	if err := c.load(t, dir); err != nil {
		t.Fatal(err)
	}
	for name, s := range c.Secrets {
		if _, err := os.Stat(s.File); err != nil {
			t.Errorf("secrets.sh does not make %s: %v", name, err)
		}
	}
	servers := regexp.MustCompile(`(?m)^    server \w+ (\S+):7420$`).FindAllStringSubmatch(string(read(t, packaging, "proxies", "haproxy.cfg")), -1)
	replicas := 0
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s := c.Services[name]
		if name != "proxy" && len(s.Ports) > 0 {
			t.Errorf("%s is open beyond the machine: %v", name, s.Ports)
		}
		if !strings.HasPrefix(name, "pellucid-") {
			continue
		}
		replicas++
		if s.Environment["PELLUCID_REPLICA_NAME"] != strings.Replace(name, "pellucid-", "r", 1) || s.Environment["PELLUCID_REPLICA"] != name+":7421" {
			t.Errorf("%s: the others are told to reach it at %s", name, s.Environment["PELLUCID_REPLICA"])
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.ContainsFunc(servers, func(m []string) bool { return m[1] == name }) {
			t.Errorf("%s: read only %v, without %v, in haproxy.cfg: %v", name, s.ReadOnly, s.CapDrop, servers)
		}
		checkImage(t, s.Image, s.Tmpfs)
		compile(t, filepath.Join(dir, "pellucid.yaml"), s.Environment, filepath.Join(dir, "secrets"))
	}
	if replicas != 3 || len(servers) != 3 {
		t.Errorf("%d replicas, %d servers of HAProxy", replicas, len(servers))
	}
	if !slices.ContainsFunc(c.Services["proxy"].Volumes, func(v struct{ Type, Source, Target string }) bool {
		return filepath.Base(v.Source) == "haproxy.cfg" && v.Target == "/usr/local/etc/haproxy/haproxy.cfg"
	}) {
		t.Error("the proxy does not use the file of packaging/proxies")
	}
}

// checkImage holds an image to that of the chart, and the folders that it may write to against those
// that the images have.
func checkImage(t *testing.T, image string, tmpfs []string) {
	t.Helper()
	var values struct{ Image struct{ Repository string } }
	var meta struct {
		AppVersion string `yaml:"appVersion"`
	}
	for file, into := range map[string]any{"values.yaml": &values, "Chart.yaml": &meta} {
		if err := yaml.Unmarshal(read(t, chart, file), into); err != nil {
			t.Fatal(err)
		}
	}
	if want := values.Image.Repository + ":" + meta.AppVersion; image != want {
		t.Errorf("image %s, want that of the chart, %s", image, want)
	}
	main := string(read(t, packaging, "pack", "image.go"))
	for _, folder := range []string{"var/lib/pellucid", "var/cache/pellucid"} {
		if !strings.Contains(main, `"`+folder+`"`) || !slices.ContainsFunc(tmpfs, func(s string) bool {
			return strings.HasPrefix(s, "/"+folder+":") && strings.Contains(s, "uid=65532")
		}) {
			t.Errorf("%s is not a folder of the image that a replica may write to: %v", folder, tmpfs)
		}
	}
}

// compile reads pellucid.yaml with the environment and the secrets that a container has.
func compile(t *testing.T, file string, env map[string]string, secrets string) {
	t.Helper()
	r, err := rules.Load(file, rules.Options{
		Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		ReadFile: func(name string) ([]byte, error) {
			return os.ReadFile(strings.Replace(name, "/run/secrets", secrets, 1))
		},
	})
	if err != nil {
		t.Errorf("pellucid.yaml: %v", err)
		return
	}
	if !r.Replicas.Set() || r.Evidence.Mode != rules.Required {
		t.Errorf("replicas %v, evidence %v", r.Replicas.Set(), r.Evidence.Mode)
	}
}

// TestComposeRefuses: load finds what is wrong, so that TestCompose can fail.
func TestComposeRefuses(t *testing.T) {
	good := string(read(t, packaging, "compose", "compose.yaml"))
	for _, change := range [][2]string{
		{"read_only: true", "read_onyl: true"}, {"stop_grace_period: 30s", "stop_grace_period: [30]"},
		{"postgres:/var/lib", "pg:/var/lib"}, {"depends_on: [pellucid-1,", "depends_on: [pellucid-9,"},
		{"secrets: [postgres-password]", "secrets: [postgres-passwort]"}, {"networks: [inside, outside]", "networks: [elsewhere]"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("compose.yaml has no %s", change[0])
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "compose.yaml"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := new(composeFile).load(t, dir); err == nil {
			t.Errorf("%s is accepted", change[1])
		}
	}
}
