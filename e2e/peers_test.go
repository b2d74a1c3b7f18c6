// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// The binary under test: $PELLUCID_E2E_BIN, or built once from ../cmd/pellucid, as `make build` does.
var pellucid = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("PELLUCID_E2E_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	if _, err := build("pellucid-hook"); err != nil {
		return "", err
	}
	return build("pellucid")
})

// The grounding adapter: pellucid-ground beside $PELLUCID_E2E_BIN, or built once.
var grounding = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("PELLUCID_E2E_BIN"); bin != "" {
		return filepath.Abs(filepath.Join(filepath.Dir(bin), "pellucid-ground"))
	}
	return build("pellucid-ground")
})

func build(program string) (bin string, err error) {
	bin = filepath.Join(scratch, program)
	out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "../cmd/"+program).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
}

// scratch lives as long as the test binary.
var scratch string

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == helperArg {
		os.Exit(helper(os.Args[2]))
	}
	if runtime.GOOS == "windows" {
		fmt.Println("skipped: most of these tests end programs by signals")
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "pellucid-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // tests wait for other programs more than they compute
	}
	os.Setenv("E2E_ACCESS_KEY", llmtest.AccessKey)
	code := m.Run()
	databases.Stop()
	os.RemoveAll(dir)
	os.Exit(code)
}

// nodeModules returns where the npm packages are. Where they are not, the test
// is skipped, or fails if $PELLUCID_E2E asks for it.
func nodeModules(t testing.TB) string {
	t.Helper()
	programtest.Need(t)
	missing := t.Skipf
	if os.Getenv("PELLUCID_E2E") != "" {
		missing = t.Fatalf
	}
	dir := os.Getenv("PELLUCID_E2E_NODE")
	if dir == "" {
		dir = filepath.Join("..", ".tools", "e2e")
	}
	dir, err := filepath.Abs(filepath.Join(dir, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "@modelcontextprotocol", "server-everything")); err != nil {
		missing("the npm packages are not installed; `make e2e` installs them")
	}
	if _, err := exec.LookPath(nodeBinary(dir)); err != nil {
		missing("there is no node on this machine")
	}
	return dir
}

// nodeBinary prefers the pinned node, because the Inspector needs 22 or later.
func nodeBinary(modules string) string {
	pinned := filepath.Join(modules, ".bin", "node")
	if err := exec.Command(pinned, "--version").Run(); err == nil {
		return pinned
	}
	return "node"
}

// npmServer returns the command of a reference server.
func npmServer(t testing.TB, name string, args ...string) []string {
	t.Helper()
	dir := nodeModules(t)
	return append([]string{nodeBinary(dir),
		filepath.Join(dir, "@modelcontextprotocol", "server-"+name, "dist", "index.js")}, args...)
}

// markedDir is a new directory with mark in its name.
func markedDir(t testing.TB, mark string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), mark)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// withMemory runs server-memory with its graph in dir. Pellucid gives a child
// no variable that it was not told to.
func withMemory(dir string, server []string) []string {
	return append([]string{"env", "MEMORY_FILE_PATH=" + filepath.Join(dir, "graph.jsonl")}, server...)
}

var marks atomic.Int64

// mark returns an argument that no other process of this machine carries, so
// that what a test started can be found in the process table.
func mark() string {
	return "e2e-mark-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(marks.Add(1), 10)
}

// survivors lists the processes whose command line holds mark. Where there is
// no /proc it finds none.
func survivors(mark string) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var pids []int
	for _, name := range dirs {
		b, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(b, []byte(mark)) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(name, "/")[2]); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone fails the test when a process that carries mark outlives its session.
func gone(t testing.TB, mark string) {
	t.Helper()
	var left []int
	for range 100 {
		if left = survivors(mark); len(left) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("processes %v outlived the session", left)
	for _, pid := range left {
		kill(pid)
	}
}

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}

// An install is one installation of Pellucid: its own state directory and key.
type install struct {
	bin, state string
}

func newInstall(t testing.TB) *install {
	t.Helper()
	bin, err := pellucid()
	if err != nil {
		t.Fatal(err)
	}
	return &install{bin: bin, state: t.TempDir()}
}

func (in *install) env() []string {
	return append(os.Environ(), "PELLUCID_STATE="+in.state, "XDG_CONFIG_HOME="+in.state)
}

// command is `pellucid wrap ARG…`.
func (in *install) command(args ...string) *exec.Cmd {
	cmd := exec.Command(in.bin, append([]string{"wrap"}, args...)...)
	cmd.Env = in.env()
	return cmd
}

// wrap is `pellucid wrap --name NAME -- SERVER…`.
func (in *install) wrap(name string, server ...string) *exec.Cmd {
	return in.command(append([]string{"--name", name, "--"}, server...)...)
}

// bare is the same server without Pellucid.
func bare(server ...string) *exec.Cmd {
	return exec.Command(server[0], server[1:]...)
}

// soon bounds everything that a test waits for.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// patience is how long a peer may take before the test calls it a hang. The
// machine may be busy; no assertion rests on speed.
const patience = 3 * time.Minute

// key is the installation's key of the fences.
func (in *install) key(t testing.TB) frame.Key {
	t.Helper()
	dir, err := state.OpenAt(in.state)
	if err != nil {
		t.Fatal(err)
	}
	b, err := dir.Key("install.key")
	if err != nil {
		t.Fatal(err)
	}
	k, err := frame.NewKey(b)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
