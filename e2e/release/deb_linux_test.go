// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A machine is a container with the files of this one, and a layer above them that takes every change.
type machine struct {
	root, changes string
	release       string // /release in the container
}

// newMachine makes a container with the package and a script in /release. It skips the test
// where that cannot be done.
func newMachine(t *testing.T, dist, script string) *machine {
	t.Helper()
	for _, program := range []string{"systemd-nspawn", "dpkg", "curl", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: the package is not installed either", program)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("not root: the package is not installed")
	}
	dir := t.TempDir()
	m := &machine{root: filepath.Join(dir, "root"), changes: filepath.Join(dir, "layers", "changes"), release: filepath.Join(dir, "release")}
	layers, work := filepath.Join(dir, "layers"), filepath.Join(dir, "layers", "work")
	mkdir := func(dirs ...string) {
		for _, dir := range dirs {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	mount := func(at string, args ...string) {
		if out, err := exec.Command("mount", append(args, at)...).CombinedOutput(); err != nil {
			t.Skipf("no file system can be mounted here: %v: %s", err, out)
		}
		t.Cleanup(func() { must(t, exec.Command("umount", at)) })
	}
	mkdir(m.root, layers, m.release)
	mount(layers, "-t", "tmpfs", "tmpfs")
	mkdir(m.changes, work)
	mount(m.root, "-t", "overlay", "-o", "lowerdir=/,upperdir="+m.changes+",workdir="+work, "overlay")
	for from, to := range map[string]string{debFor(t, dist): "pellucid.deb", "testdata/" + script: "check.sh", root + "/docs/examples/notes/server.sh": "server.sh"} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(m.release, to), b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// run starts the container, on a network of its own.
func (m *machine) run(t *testing.T, args ...string) {
	t.Helper()
	log := filepath.Join(m.release, "log")
	cmd := exec.Command("systemd-nspawn", append([]string{"--quiet", "--register=no", "--keep-unit", "--private-network", "--resolv-conf=off", "--timezone=off",
		"--machine=pellucid-release-check", "--directory=" + m.root, "--bind=" + m.release + ":/release"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Minute
	err := cmd.Run()
	said, _ := os.ReadFile(log)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, said, &out)
	}
	t.Logf("%d lines in the log of the container", bytes.Count(append(said, out.Bytes()...), []byte("\n")))
}

// deb installs the package, uses, removes and purges it, and then looks at every file that is
// another one than before.
func deb(t *testing.T, dist string) {
	m := newMachine(t, dist, "deb.sh")
	m.run(t, "/bin/sh", "/release/check.sh")
	for _, left := range m.residue(t) {
		t.Errorf("the purged package has left %s", left)
	}
	// The comparison can fail: it sees a new file, and a changed one.
	for name, text := range map[string]string{"etc/left-over": "", "etc/passwd": "changed"} {
		if err := os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if left := strings.Join(m.residue(t), " "); !strings.Contains(left, "/etc/left-over") || !strings.Contains(left, "/etc/passwd") {
		t.Errorf("the comparison does not see files that were written: %s", left)
	}
	if _, err := exec.LookPath("lintian"); err != nil {
		t.Log("NOT CHECKED: lintian is not installed")
		return
	}
	out := must(t, exec.Command("lintian", "--allow-root", "--fail-on", "error", "--suppress-tags", strings.Join(tolerated, ","), debFor(t, dist)))
	t.Logf("lintian:\n%s", out)
}

// tolerated are the rules of Debian's own archive that a package of another publisher breaks.
var tolerated = []string{
	"no-changelog",                                  // releases are described on their own page
	"statically-linked-binary",                      // as every Go program without cgo
	"copyright-file-contains-full-apache-2-license", // not every system with dpkg has Debian's common licences
	"copyright-not-using-common-license-for-apache2",
}

// changing are files that dpkg, useradd and the container itself write, whatever is installed.
var changing = []string{
	"etc/.pwd.lock", "etc/group-", "etc/gshadow-", "etc/passwd-", "etc/shadow-", "etc/subuid-", "etc/subgid-", "etc/machine-id",
	"var/lib/dpkg/", "var/log/dpkg.log", "var/log/faillog", "var/log/lastlog", "var/log/tallylog", "var/cache/man/", "var/cache/ldconfig/", "var/lib/systemd/deb-systemd",
	"release", "run/", "tmp/", "proc/", "sys/", "dev/", "root/.bash_history",
}

// residue lists what the layer of changes holds that is not as it was below.
func (m *machine) residue(t *testing.T) (left []string) {
	t.Helper()
	err := filepath.WalkDir(m.changes, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(path, m.changes), "/")
		if err != nil || name == "" {
			return err
		}
		if slices.ContainsFunc(changing, func(c string) bool { return strings.HasPrefix(name+"/", c) || name == c }) {
			return nil
		}
		if d.IsDir() {
			if _, err := os.Lstat("/" + name); err != nil {
				left = append(left, "a new folder /"+name)
			}
			return nil
		}
		now, err1 := os.ReadFile(path)
		before, err2 := os.ReadFile("/" + name)
		if err1 != nil || err2 != nil || !bytes.Equal(now, before) {
			left = append(left, "/"+name+", which is new or changed")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// service boots systemd in a container and runs the script as one of its services, so that the
// package's unit is what starts the program.
func service(t *testing.T, dist string) {
	m := newMachine(t, dist, "service.sh")
	unit := filepath.Join(m.root, "etc/systemd/system/release-check.service")
	const text = `[Unit]
SuccessAction=exit-force
SuccessActionExitStatus=0
FailureAction=exit-force
FailureActionExitStatus=1
[Service]
Type=oneshot
ExecStart=/bin/sh /release/check.sh
StandardOutput=file:/release/log
StandardError=inherit
TimeoutStartSec=10min
`
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m.run(t, "--boot", "systemd.unit=release-check.service", "systemd.show_status=0")
	log, err := os.ReadFile(filepath.Join(m.release, "log"))
	if err != nil || !bytes.HasSuffix(log, []byte("+ echo service: done\nservice: done\n")) {
		t.Errorf("the script did not end as it should: %v\n%s", err, log)
	}
	for _, left := range m.residue(t) { // beside what systemd writes when it boots
		if strings.Contains(left, "pellucid") || strings.Contains(left, "/etc/passwd") || strings.Contains(left, "/etc/group") {
			t.Errorf("the purged package has left %s", left)
		}
	}
}
