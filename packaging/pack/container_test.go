// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// A container is an unpacked image, which runs as far as that goes without a container engine:
// in its own mounts, with a read-only root, as the user and with the variables of the image.
type container struct {
	root   string
	config v1.Config
	binds  []string // "FILE:PATH": files of this machine that are seen at PATH
}

// enter makes the root read-only and puts new folders where the image has volumes, as a
// container engine does, and becomes the user of the image.
const enter = `set -eu
root=$1 user=$2 volumes=$3 binds=$4 chroot=$5; shift 5
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -o bind /dev "$root/dev"
for b in $binds; do mount --bind "${b%%:*}" "$root${b#*:}"; done
mount -o remount,ro,bind "$root"
for v in $volumes; do mount -t tmpfs -o mode=0700,uid=${user%:*},gid=${user#*:} tmpfs "$root$v"; done
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
exec "$chroot" --userspec="$user" "$root" "$@"`

// unpack unpacks img, or skips the test where this machine cannot run it.
func unpack(t *testing.T, img v1.Image) *container {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only root on Linux can unpack an image and enter it")
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("this machine allows no mounts: %v %s", err, out)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := &container{root: filepath.Join(t.TempDir(), "root"), config: config.Config}
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		t.Fatal(err)
	}
	// The image's user has to get through the folders of the test.
	for dir := filepath.Dir(c.root); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := mutate.Extract(img)
	defer all.Close()
	for r := tar.NewReader(all); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = c.place(h, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"proc", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(c.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *container) place(h *tar.Header, r io.Reader) error {
	path := filepath.Join(c.root, filepath.FromSlash(h.Name))
	switch h.Typeflag {
	case tar.TypeDir:
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	case tar.TypeReg:
		content, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
		if err != nil {
			return err
		}
	case tar.TypeSymlink:
		return os.Symlink(h.Linkname, path)
	case tar.TypeLink:
		return os.Link(filepath.Join(c.root, filepath.FromSlash(h.Linkname)), path)
	default: // devices, of which the container gets those of this machine
		return nil
	}
	if err := os.Chown(path, h.Uid, h.Gid); err != nil {
		return err
	}
	return syscall.Chmod(path, uint32(h.Mode))
}

// command is the entry point of the image with args, in the container.
func (c *container) command(args ...string) *exec.Cmd {
	var volumes []string
	for v := range c.config.Volumes {
		volumes = append(volumes, v)
	}
	slices.Sort(volumes)
	chroot, err := exec.LookPath("chroot")
	if err != nil {
		chroot = "/usr/sbin/chroot" // a user's path may lack it
	}
	cmd := exec.Command("unshare", slices.Concat([]string{"--mount", "sh", "-c", enter, "enter", c.root, c.config.User,
		strings.Join(volumes, " "), strings.Join(c.binds, " "), chroot}, c.config.Entrypoint, args)...)
	cmd.Env, cmd.Dir = c.config.Env, "/"
	return cmd
}

// ours is the image of this machine's system.
func ours(t *testing.T, base string) v1.Image {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("images are of Linux")
	}
	r := realRelease(t)
	i := slices.IndexFunc(r.binaries, func(b binary) bool { return b.system == here(t) })
	img, err := image(r, r.binaries[i], base)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestImageRuns runs the small image: a verb, and the service until it is told to stop.
func TestImageRuns(t *testing.T) {
	c := unpack(t, ours(t, ""))
	cmd := c.command("scrub")
	cmd.Stdin = strings.NewReader("hello\u200b there\n")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "hello there\n") {
		t.Errorf("scrub: %v\n%q", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	write(t, c.root, file{name: "etc/pellucid/pellucid.yaml", content: fmt.Appendf(nil, "version: 1\nlisten: %s\nservers:\n  far: {url: \"http://127.0.0.1:9/mcp\"}\n", address)})
	cmd = c.command(c.config.Cmd...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	healthy := false
	for deadline := time.Now().Add(time.Minute); !healthy && time.Now().Before(deadline) && len(ended) == 0; time.Sleep(50 * time.Millisecond) {
		if answer, err := http.Get("http://" + address + "/healthz"); err == nil {
			answer.Body.Close()
			healthy = answer.StatusCode == http.StatusOK
		}
	}
	if !healthy {
		t.Error("the service does not answer at /healthz")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the service ended with %v", err)
		}
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		t.Error("the service did not end")
	}
	if t.Failed() {
		t.Logf("%s", out.Bytes())
	}
}

// TestServersImageRuns runs servers by npx and uvx in the image that has them. They are loaded
// from npm and PyPI, so the test wants a network: PELLUCID_PACK_ROOTFS is the tar file that
// packaging/servers/rootfs.sh wrote.
func TestServersImageRuns(t *testing.T) {
	rootfs := os.Getenv("PELLUCID_PACK_ROOTFS")
	if rootfs == "" {
		t.Skip("PELLUCID_PACK_ROOTFS is not set to the system that `make -f packaging/Makefile images-servers` makes")
	}
	c := unpack(t, ours(t, rootfs))
	write(t, c.root, file{name: "etc/resolv.conf"})
	// The authorities of this machine: it may reach the network by a proxy of its own.
	for _, f := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt"} {
		c.binds = append(c.binds, f+":"+f)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if v := os.Getenv(name); v != "" {
			c.config.Env = append(c.config.Env, name+"="+v)
		}
	}
	const certificates = "/etc/ssl/certs/ca-certificates.crt"
	c.config.Env = append(c.config.Env, "NODE_EXTRA_CA_CERTS="+certificates, "SSL_CERT_FILE="+certificates)
	for _, server := range [][]string{{"npx", "-y", "@modelcontextprotocol/server-everything"}, {"uvx", "mcp-server-time"}} {
		t.Run(server[0], func(t *testing.T) {
			cmd := c.command(slices.Concat([]string{"check", "--json", "--env", "NODE_EXTRA_CA_CERTS", "--env", "SSL_CERT_FILE", "--env", "HTTPS_PROXY", "--env", "HTTP_PROXY", "--"}, server)...)
			out, err := cmd.CombinedOutput()
			if code := ended(err); code != 0 && code != 10 || bytes.Contains(out, []byte(`"items":0`)) || !bytes.Contains(out, []byte(`"items":`)) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
