// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestRelease builds a release of the last commit twice and looks at everything in it.
func TestRelease(t *testing.T) {
	dist := os.Getenv("PELLUCID_RELEASE_DIST")
	if dist == "" {
		if os.Getenv("PELLUCID_RELEASE") == "" {
			t.Skip("make -f packaging/Makefile release-check runs this: it takes minutes")
		}
		dist = buildTwice(t)
	}
	dist, err := filepath.Abs(dist)
	if err != nil {
		t.Fatal(err)
	}
	files := artifacts(t, dist)
	t.Run("Names", func(t *testing.T) { names(t, files) })
	t.Run("Checksums", func(t *testing.T) { checksums(t, dist, files) })
	t.Run("Sizes", func(t *testing.T) { sizes(t, dist) })
	t.Run("Archive", func(t *testing.T) { archive(t, dist) })
	t.Run("SBOM", func(t *testing.T) { sboms(t, dist) })
	t.Run("Formula", func(t *testing.T) { formula(t, dist) })
	t.Run("RPM", func(t *testing.T) { rpm(t, dist) })
	t.Run("APK", func(t *testing.T) { apk(t, dist) })
	t.Run("Deb", func(t *testing.T) { deb(t, dist) })
	t.Run("Service", func(t *testing.T) { service(t, dist) })
}

// buildTwice builds a release in two folders, the second time as another user with an empty
// cache, another umask and time zone. It returns the files of the first build.
func buildTwice(t *testing.T) string {
	tools := os.Getenv("PELLUCID_RELEASE_TOOLS")
	if tools == "" {
		t.Fatal("PELLUCID_RELEASE_TOOLS is not set: run make -f packaging/Makefile release-check")
	}
	// Not t.TempDir, whose folders only this user may enter.
	dir, err := os.MkdirTemp("", "pellucid-release-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := exec.Command("chmod", "-R", "u+w", dir).Run(); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if tools, err = filepath.Abs(tools); err != nil {
		t.Fatal(err)
	}
	// The other user may not be able to enter the folder of the checkout.
	copied := filepath.Join(dir, "tools")
	if err := os.CopyFS(copied, os.DirFS(tools)); err != nil {
		t.Fatal(err)
	}
	must(t, exec.Command("chmod", "-R", "a+rX", copied))

	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "a second folder")
	for _, clone := range []string{first, second} {
		must(t, exec.Command("git", "clone", "-q", "--no-hardlinks", root, clone))
	}
	must(t, snapshot(first, copied, "022"))
	if os.Getenv("PELLUCID_RELEASE") == "once" {
		t.Log("NOT CHECKED: that a second build is equal")
		return filepath.Join(first, "dist")
	}

	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := snapshot(second, copied, "077")
	cmd.Env = append(cmd.Env, "HOME="+home, "GOCACHE="+filepath.Join(home, "cache"), "GOMODCACHE="+filepath.Join(home, "modules"),
		"GOPATH="+filepath.Join(home, "go"), "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8")
	if other, err := user.Lookup("nobody"); os.Getuid() == 0 && err == nil {
		must(t, exec.Command("chown", "-R", "nobody:", second, home))
		uid, err := strconv.ParseUint(other.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(other.Gid, 10, 32)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	} else {
		t.Log("NOT CHECKED: a build by another user, since this one is not root")
	}
	must(t, cmd)
	compare(t, artifacts(t, filepath.Join(first, "dist")), artifacts(t, filepath.Join(second, "dist")))
	return filepath.Join(first, "dist")
}

// snapshot builds a release in a clone and publishes nothing.
func snapshot(clone, tools, umask string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", `umask "$1" && exec goreleaser release --snapshot --clean --timeout 2h`, "sh", umask)
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "GOFLAGS=")
	return cmd
}

func must(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, &out)
	}
	return out.String()
}

// notes are files in which goreleaser describes its own run, by folder and time. A release does not publish them.
var notes = []string{"config.yaml", "metadata.json", "artifacts.json"}

// artifacts returns the digest of every file below dist, by its path there.
func artifacts(t *testing.T, dist string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dist, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dist, path)
		if err != nil || slices.Contains(notes, name) {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		found[name] = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// compare fails for each file that is not in both builds with the same bytes.
func compare(t *testing.T, first, second map[string]string) {
	t.Helper()
	for name, sum := range first {
		if second[name] != sum {
			t.Errorf("%s differs: %s and %s", name, sum, second[name])
		}
	}
	for name := range second {
		if first[name] == "" {
			t.Errorf("%s is only in the second build", name)
		}
	}
	if !t.Failed() {
		t.Logf("%d files are equal in both builds", len(first))
	}
}

// names fails where the files are not those that docs/install.md may name.
func names(t *testing.T, files map[string]string) {
	want := readConfig(t).fileNames()
	version := ""
	for name := range files {
		if v, ok := strings.CutSuffix(name, "_linux_amd64.tar.gz"); ok && !strings.HasPrefix(v, "pellucid-ground_") {
			version = strings.TrimPrefix(v, "pellucid_")
		}
	}
	if version == "" {
		t.Fatalf("no archive for linux/amd64 in %v", slices.Sorted(maps.Keys(files)))
	}
	for _, name := range want {
		pattern := strings.ReplaceAll(name, "VERSION", version)
		if strings.HasSuffix(name, ".deb") || strings.HasSuffix(name, ".rpm") || strings.HasSuffix(name, ".apk") {
			pattern = strings.ReplaceAll(name, "VERSION", "*") // a version before a release is written by the rules of each format
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool { ok, _ := filepath.Match(pattern, name); return ok }) {
			t.Errorf("no file %s", pattern)
		}
	}
}

// checksums holds checksums.txt to every file of the release.
func checksums(t *testing.T, dist string, files map[string]string) {
	listed := map[string]string{}
	b, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = sum
	}
	for name, sum := range files {
		if published := !strings.Contains(name, "/") && name != "checksums.txt"; published && listed[name] != sum {
			t.Errorf("checksums.txt has %q for %s", listed[name], name)
		}
	}
	if len(listed) < 30 {
		t.Errorf("checksums.txt lists %d files", len(listed))
	}
}

func sizes(t *testing.T, dist string) {
	for pattern, limit := range map[string]int64{"pellucid_*_*/pellucid*": maxBinary, "pellucid-hook_*_*/pellucid-hook*": maxHook, "*.tar.gz": maxArchive, "*.zip": maxArchive} {
		for _, path := range glob(t, dist, pattern) {
			fi, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%5.1f MB of at most %.0f  %s", float64(fi.Size())/1e6, float64(limit)/1e6, strings.TrimPrefix(path, dist+"/"))
			if fi.Size() > limit {
				t.Errorf("%s is larger than docs/install.md says", path)
			}
		}
	}
}

func glob(t *testing.T, dist, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dist, err)
	}
	return found
}

// archive unpacks the archive for this machine and runs the program in it.
func archive(t *testing.T, dist string) {
	dir := t.TempDir()
	must(t, exec.Command("tar", "-C", dir, "-xzf", glob(t, dist, "pellucid_*_linux_"+runtime.GOARCH+".tar.gz")[0]))
	top := glob(t, dir, "*")
	if len(top) != 1 {
		t.Fatalf("the archive has %d entries at its top: %v", len(top), top)
	}
	for _, name := range []string{"LICENSE", "NOTICE", "install.md", "man/pellucid.1", "man/pellucid-wrap.1"} {
		if fi, err := os.Stat(filepath.Join(top[0], name)); err != nil || fi.Size() == 0 || fi.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v", name, err)
		}
	}
	var v struct {
		Version, Commit string
		CommitTime      string `json:"commit_time"`
		Modified        *bool
		Modules         []struct{ Path, Sum string }
	}
	if err := json.Unmarshal([]byte(must(t, exec.Command(filepath.Join(top[0], "pellucid"), "version", "--json"))), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Commit) != 40 || v.CommitTime == "" || v.Modified == nil || *v.Modified || v.Version == "(devel)" || strings.Contains(v.Version, "dirty") || len(v.Modules) < 20 {
		t.Errorf("the program says %+v", v)
	}
	for _, m := range v.Modules[1:] {
		if !strings.HasPrefix(m.Sum, "h1:") {
			t.Errorf("module %s has no hash", m.Path)
		}
	}
	if _, err := exec.LookPath("mandoc"); err == nil {
		must(t, exec.Command("mandoc", append([]string{"-T", "lint", "-W", "warning"}, glob(t, top[0], "man/*.1")...)...))
	}
}

// sboms: each lists the modules that go.mod requires and that are in a binary, with hashes.
func sboms(t *testing.T, dist string) {
	for _, path := range glob(t, dist, "*.cdx.json") {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			BomFormat    string
			SerialNumber string
			Metadata     struct {
				Component struct{ Name, Version string }
			}
			Components []struct {
				Name, Version, PURL string
				Hashes              []struct{ Content string }
			}
		}
		if err := json.Unmarshal(b, &bom); err != nil {
			t.Fatal(err)
		}
		if bom.BomFormat != "CycloneDX" || bom.Metadata.Component.Name != "github.com/pellucid-mcp/pellucid" || bom.SerialNumber != "" || len(bom.Components) < 20 {
			t.Errorf("%s: %s of %+v with %d components", filepath.Base(path), bom.BomFormat, bom.Metadata.Component, len(bom.Components))
		}
		for _, want := range []string{"github.com/alecthomas/kong", "modernc.org/sqlite"} {
			found := false
			for _, c := range bom.Components {
				found = found || c.Name == want && len(c.Hashes) > 0 && strings.HasPrefix(c.PURL, "pkg:golang/"+want+"@v")
			}
			if !found {
				t.Errorf("%s does not list %s with its hash", filepath.Base(path), want)
			}
		}
	}
}

// formula: the Homebrew formula and the Scoop manifest name files of the release, with the hashes that they have.
func formula(t *testing.T, dist string) {
	files := artifacts(t, dist)
	for name, want := range map[string]int{"homebrew/Formula/pellucid.rb": 4, "scoop/bucket/pellucid.json": 2} {
		b, err := os.ReadFile(filepath.Join(dist, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
			continue
		}
		n := 0
		for file, sum := range files {
			if bytes.Contains(b, []byte("/"+file+`"`)) {
				if n++; !bytes.Contains(b, []byte(sum)) {
					t.Errorf("%s has another hash of %s", name, file)
				}
			}
		}
		if n != want {
			t.Errorf("%s names %d files, want %d:\n%s", name, n, want, b)
		}
	}
	if _, err := exec.LookPath("ruby"); err == nil {
		must(t, exec.Command("ruby", "-c", filepath.Join(dist, "homebrew/Formula/pellucid.rb")))
	} else {
		t.Log("NOT CHECKED: the syntax of the formula, since ruby is not installed")
	}
}

// installed are files that every package has.
var installed = []string{"/usr/bin/pellucid", "/usr/bin/pellucid-hook", "/etc/pellucid/pellucid.yaml", "/usr/lib/systemd/system/pellucid.service", "/usr/lib/systemd/system/pellucid.socket", "/usr/share/man/man1/pellucid.1.gz",
	"/usr/share/man/man1/pellucid-wrap.1.gz",
	"/usr/share/doc/pellucid/copyright", "/usr/share/doc/pellucid/NOTICE", "/usr/share/doc/pellucid/install.md"}

func rpm(t *testing.T, dist string) {
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("rpm is not installed")
	}
	for _, path := range glob(t, dist, "*.rpm") {
		must(t, exec.Command("rpm", "-K", "--nosignature", path))
		list := must(t, exec.Command("rpm", "-qlp", path))
		for _, name := range append(installed, "/usr/share/zsh/site-functions/_pellucid") {
			if !strings.Contains(list, name+"\n") {
				t.Errorf("%s lacks %s", filepath.Base(path), name)
			}
		}
		if got := must(t, exec.Command("rpm", "-qp", "--configfiles", path)); got != "/etc/pellucid/pellucid.yaml\n" {
			t.Errorf("configuration files: %s", got)
		}
		if got := must(t, exec.Command("rpm", "-qp", "--queryformat", "%{BUILDHOST} %{LICENSE}", path)); got != "pellucid Apache-2.0" {
			t.Errorf("build host and licence: %s", got)
		}
		if got := must(t, exec.Command("rpm", "-qp", "--scripts", path)); strings.Count(got, "SPDX") != 4 {
			t.Errorf("scripts:\n%s", got)
		}
	}
}

func apk(t *testing.T, dist string) {
	for _, path := range glob(t, dist, "*.apk") {
		// An apk is three gzip streams, each of a tar file without its end.
		list := "\n" + must(t, exec.Command("tar", "-tzf", path, "--ignore-zeros", "--warning=no-unknown-keyword"))
		for _, name := range append(installed, "/usr/share/zsh/site-functions/_pellucid", "/.PKGINFO", "/.pre-install", "/.post-install", "/.pre-deinstall", "/.post-deinstall") {
			if !strings.Contains(list, "\n"+strings.TrimPrefix(name, "/")+"\n") {
				t.Errorf("%s lacks %s in:%s", filepath.Base(path), name, list)
			}
		}
	}
}

// debFor returns the package for this machine.
func debFor(t *testing.T, dist string) string {
	return glob(t, dist, fmt.Sprintf("pellucid_*_%s.deb", runtime.GOARCH))[0]
}
