// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// config is the part of .goreleaser.yaml that other files have to agree with.
type config struct {
	ProjectName string `yaml:"project_name"`
	Before      struct{ Hooks []string }
	Builds      []struct {
		ID, Main, Binary         string
		Env, Goos, Goarch, Flags []string
		Ldflags                  []string
		ModTimestamp             string `yaml:"mod_timestamp"`
	}
	Archives []struct {
		ID           string
		IDs          []string
		NameTemplate string `yaml:"name_template"`
		BuildsInfo   info   `yaml:"builds_info"`
		Files        []struct {
			Src  string
			Info info
		}
	}
	Nfpms []struct {
		ID, Bindir, MTime string
		IDs               []string
		Formats           []string
		Scripts           map[string]string
		Contents          []struct {
			Src, Dst, Type string
			FileInfo       struct {
				Owner, Group string
				Mode         int
			} `yaml:"file_info"`
		}
		RPM struct{ BuildHost string }
	}
	Sboms []struct {
		Cmd       string
		Documents []string
	}
	Checksum struct {
		NameTemplate string `yaml:"name_template"`
	}
}

type info struct{ Owner, Group, Mtime string }

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

func readConfig(t *testing.T) *config {
	t.Helper()
	var c config
	if err := yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Builds) != 3 || len(c.Archives) != 2 || len(c.Nfpms) != 1 || len(c.Sboms) != 2 {
		t.Fatalf("%d builds, %d archives, %d packages, %d SBOMs: want three builds, one package, and two of each other", len(c.Builds), len(c.Archives), len(c.Nfpms), len(c.Sboms))
	}
	return &c
}

// TestBuiltAlike: a release, `make build` and the image are built by the same flags.
func TestBuiltAlike(t *testing.T) {
	c := readConfig(t)
	if fmt.Sprint(c.Archives[0].IDs, c.Nfpms[0].IDs) != "[pellucid pellucid-hook] [pellucid pellucid-hook]" {
		t.Errorf("pellucid-hook is not in each package: %v %v", c.Archives[0].IDs, c.Nfpms[0].IDs)
	}
	for _, b := range c.Builds {
		flags := strings.Join(b.Flags, " ") + ` -ldflags "` + strings.Join(b.Ldflags, " ") + `"`
		if !strings.Contains(flags, "-trimpath") {
			t.Errorf("flags %s: without -trimpath the folder of a build is in the binary", flags)
		}
		if want := "go build " + flags + " -o bin/" + b.Binary + " " + b.Main + "\n"; !strings.Contains(read(t, "Makefile"), want) {
			t.Errorf("the Makefile does not say %q", want)
		}
		for _, want := range []string{"CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=true"} {
			if !slices.Contains(b.Env, want) {
				t.Errorf("the environment of a build lacks %s", want)
			}
		}
		if got := fmt.Sprint(b.Goos, b.Goarch); got != "[linux darwin windows] [amd64 arm64]" {
			t.Errorf("built for %s", got)
		}
	}
}

// TestTimesAndOwners: what a release says of a file does not depend on who builds it, or when.
func TestTimesAndOwners(t *testing.T) {
	c := readConfig(t)
	const date = "{{ .CommitDate }}"
	want := info{"root", "root", date}
	for _, a := range c.Archives {
		if a.BuildsInfo != want {
			t.Errorf("archive %s: the program: %+v", a.ID, a.BuildsInfo)
		}
		for _, f := range a.Files {
			if f.Info != want {
				t.Errorf("archive %s: %s: %+v", a.ID, f.Src, f.Info)
			}
		}
	}
	p := c.Nfpms[0]
	if c.Builds[0].ModTimestamp != "{{ .CommitTimestamp }}" || p.MTime != date || p.RPM.BuildHost == "" {
		t.Error("the time of a binary or package, or the host in an RPM, is not stated")
	}
	for _, f := range p.Contents {
		if f.FileInfo.Mode == 0 || f.Type == "" && f.FileInfo.Owner+f.FileInfo.Group != "rootroot" {
			t.Errorf("package: %s: %+v", f.Dst, f.FileInfo)
		}
	}
}

// TestFilesExist: every file that the configuration names is in the repository, or written by
// the hook that runs first.
func TestFilesExist(t *testing.T) {
	c := readConfig(t)
	const generated = "packaging/generated/"
	if !strings.Contains(read(t, ".gitignore"), "/"+generated+"\n") || !strings.Contains(read(t, ".gitignore"), "/dist/\n") {
		t.Error("what a release writes is not in .gitignore, so its binaries would say that the checkout was changed")
	}
	var names []string
	for _, a := range c.Archives {
		for _, f := range a.Files {
			names = append(names, f.Src)
		}
	}
	for _, f := range c.Nfpms[0].Contents {
		if f.Type != "dir" {
			names = append(names, f.Src)
		}
	}
	for _, script := range c.Nfpms[0].Scripts {
		names = append(names, script)
	}
	hook, _, _ := strings.Cut(c.Before.Hooks[0], " ")
	script := read(t, hook)
	for _, name := range append(names, hook) {
		if base, ok := strings.CutPrefix(name, generated); ok {
			if !strings.Contains(base, "*") && !strings.Contains(script, filepath.Base(base)) {
				t.Errorf("%s does not write %s", hook, name)
			}
			continue
		}
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	if runtime.GOOS != "windows" {
		if fi, err := os.Stat(filepath.Join(root, hook)); err != nil || fi.Mode()&0o100 == 0 {
			t.Errorf("%s cannot be run: %v", hook, err)
		}
	}
}

// TestUnitAndPackage: the unit of the service, the package and its scripts agree about the
// configuration, the user and the folders.
func TestUnitAndPackage(t *testing.T) {
	c := readConfig(t)
	unit := read(t, "packaging/pellucid.service")
	setting := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(unit)
		if m == nil {
			t.Errorf("the unit does not set %s", name)
			return ""
		}
		return m[1]
	}
	user := setting("User")
	if setting("Group") != user {
		t.Error("the group of the unit has another name than its user")
	}
	shipped := ""
	for _, f := range c.Nfpms[0].Contents {
		if strings.HasPrefix(f.Type, "config") {
			shipped = f.Dst
			if f.Type != "config|noreplace" || f.FileInfo.Group != user || f.FileInfo.Mode != 0o640 {
				t.Errorf("%s: %s, %+v: a changed configuration must stay, and only the service read it", f.Dst, f.Type, f.FileInfo)
			}
		}
	}
	if shipped == "" || !strings.HasSuffix(setting("ExecStart"), " -c "+shipped) {
		t.Errorf("the unit does not read the configuration of the package, %q", shipped)
	}
	scripts := map[string][]string{
		"preinstall":  {"groupadd --system " + user, "--home-dir /var/lib/" + setting("StateDirectory"), "adduser -S"},
		"postinstall": {"mkdir -m " + setting("StateDirectoryMode") + " /var/lib/" + setting("StateDirectory"), "chown " + user + ":" + user},
		"preremove":   {"disable pellucid.service"},
		"postremove":  {"/var/lib/" + setting("StateDirectory"), "/var/cache/" + setting("CacheDirectory"), "userdel " + user},
	}
	for stage, wants := range scripts {
		script := read(t, c.Nfpms[0].Scripts[stage])
		for _, want := range wants {
			if !strings.Contains(script, want) {
				t.Errorf("%s does not say %q", stage, want)
			}
		}
	}
}

var (
	formatNames = map[string]func(goarch string) string{
		"deb": func(goarch string) string { return "pellucid_VERSION_" + goarch + ".deb" },
		"rpm": func(goarch string) string { return "pellucid-VERSION-1." + rpmArch(goarch) + ".rpm" },
		"apk": func(goarch string) string { return "pellucid_VERSION_" + rpmArch(goarch) + ".apk" },
	}
)

// rpmArch returns the name that RPM and Alpine give an architecture.
func rpmArch(goarch string) string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[goarch]
}

// fileNames returns the files of a release, with VERSION for its version.
func (c *config) fileNames() (names []string) {
	fill := func(template, goos, goarch string) string {
		return strings.NewReplacer("{{ .ProjectName }}", c.ProjectName, "{{ .Version }}", "VERSION", "{{ .Os }}", goos, "{{ .Arch }}", goarch).Replace(template)
	}
	for _, goarch := range c.Builds[0].Goarch {
		for _, goos := range c.Builds[0].Goos {
			ending := ".tar.gz"
			if goos == "windows" {
				ending = ".zip"
			}
			for i := range c.Archives {
				names = append(names, fill(c.Archives[i].NameTemplate, goos, goarch)+ending, fill(c.Sboms[i].Documents[0], goos, goarch))
			}
		}
		for _, format := range c.Nfpms[0].Formats {
			names = append(names, formatNames[format](goarch))
		}
	}
	return append(names, c.Checksum.NameTemplate)
}

// TestReleaseTools: the tools of a release are those of packaging/Makefile, and its workflow runs them.
func TestReleaseTools(t *testing.T) {
	c := readConfig(t)
	makefile, tools := read(t, "packaging/Makefile"), read(t, "tools/release/go.mod")
	for _, tool := range []string{"github.com/goreleaser/goreleaser/v2", "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"} {
		if !strings.Contains(makefile, tool) || !strings.Contains(tools, tool+"\n") {
			t.Errorf("%s is not built by packaging/Makefile, or not pinned by tools/release/go.mod", tool)
		}
	}
	if c.Sboms[0].Cmd != "cyclonedx-gomod" {
		t.Errorf("SBOMs are written by %s", c.Sboms[0].Cmd)
	}
	workflow := read(t, ".github/workflows/release.yml")
	for _, want := range []string{"make -f packaging/Makefile release-tools\n", "run: goreleaser release --clean\n", " dist/" + c.Checksum.NameTemplate + "\n", "checksums.txt.sigstore.json"} {
		if !strings.Contains(workflow, want) {
			t.Errorf("the workflow of a release does not say %q", want)
		}
	}
}
