// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
)

// TestImportStops: an input that says nothing more does not keep it from ending.
func TestImportStops(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	cmd := program(t, "import", "--db", filepath.Join(t.TempDir(), "ground.db"), "-")
	in, _, stderr := start(t, cmd)
	body := demonstration.Attestations()[0]
	if _, err := in.Write(bytes.Repeat(append(body, '\n'), 1<<20/len(body))); err != nil { // more than a pipe holds: it reads
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != exit.Failed || !strings.Contains(stderr.String(), "Interrupted: ") {
		t.Errorf("exit %v: %s", cmd.ProcessState, stderr)
	}
}

// TestServeSignal: a client that stays does not keep it from ending.
func TestServeSignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	cmd := program(t, "serve", "--stdio")
	temp := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	in, out, stderr := start(t, cmd)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if made, _ := filepath.Glob(filepath.Join(temp, "*")); len(made) == 0 {
		t.Error("the demonstration set is kept somewhere else")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 0 || !strings.Contains(stderr.String(), "demonstration set") {
		t.Errorf("exit %v: %s", cmd.ProcessState, stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// program is pellucid-ground with a state directory of the test's own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "PELLUCID_STATE="+filepath.Join(t.TempDir(), "state"), "HOME="+t.TempDir(), asProgram+"=1")
	return cmd
}

// start starts a program whose input and output the test has.
func start(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, *bufio.Reader, *bytes.Buffer) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return in, bufio.NewReader(out), stderr
}
