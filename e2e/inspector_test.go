// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// An inspector runs the Inspector's command line against a server of a client's
// own configuration file, which is where a person puts Pellucid.
type inspector struct {
	modules, config, home string
}

func newInspector(t *testing.T, in *install, servers map[string][]string) *inspector {
	t.Helper()
	i := &inspector{modules: nodeModules(t), home: t.TempDir()}
	if v, err := exec.Command(nodeBinary(i.modules), "--version").Output(); err != nil || string(v) < "v22" {
		t.Skipf("the Inspector needs node 22 or later: here is %s", strings.TrimSpace(string(v)))
	}
	type entry struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	}
	entries := make(map[string]entry)
	for name, argv := range servers {
		entries[name] = entry{argv[0], argv[1:], map[string]string{"PELLUCID_STATE": in.state}}
	}
	b, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	i.config = i.home + "/mcp.json"
	if err := os.WriteFile(i.config, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

// command is the Inspector's command line with arguments. On a busy machine a server may need longer than its 15 seconds.
func (i *inspector) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, nodeBinary(i.modules), append([]string{i.modules + "/.bin/mcp-inspector", "--cli", "--quiet", "--connect-timeout", "90000"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+i.home, "MCP_INSPECTOR_SECRET_STORE=memory")
	return cmd
}

// ask runs one method and returns the result that the Inspector prints.
func (i *inspector) ask(t *testing.T, server, era string, args ...string) json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := i.command(ctx, append([]string{"--config", i.config, "--server", server, "--protocol-era", era}, args...)...)
	stderr := new(transcript)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("inspector %s %s %q: %v: %q", server, era, args, err, stderr.tail())
	}
	return out
}

// TestInspector asks the same through the Inspector in every era, directly and
// wrapped.
func TestInspector(t *testing.T) {
	t.Parallel()
	in, m := newInstall(t), mark()
	everything, modern := npmServer(t, "everything", "stdio", m), helperServer(t, "modern", m)
	wrapped := func(name string, argv []string) []string {
		return append([]string{in.bin, "wrap", "--name", name, "--"}, argv...)
	}
	i := newInspector(t, in, map[string][]string{
		"everything": everything, "everything-wrapped": wrapped("everything", everything),
		"modern": modern, "modern-wrapped": wrapped("modern", modern),
	})
	t.Cleanup(func() { gone(t, m) })
	ask := func(server, era string, args ...string) {
		args = append([]string{"--method"}, args...)
		t.Run(strings.Join(append([]string{server, era}, args[1:]...), " "), func(t *testing.T) {
			t.Parallel() // most of the time it waits for servers to end
			in.same(t, "result", i.ask(t, server, era, args...), i.ask(t, server+"-wrapped", era, args...), server)
		})
	}
	ask("everything", "legacy", "tools/list")
	ask("everything", "legacy", "tools/call", "--tool-name", "get-structured-content", "--tool-arg", "location=Chicago")
	ask("everything", "legacy", "resources/list")
	ask("everything", "legacy", "prompts/get", "--prompt-name", "args-prompt", "--prompt-args", "city=Paris")
	ask("everything", "auto", "tools/list")
	for _, era := range []string{"legacy", "auto", "modern"} {
		ask("modern", era, "tools/list")
		ask("modern", era, "tools/call", "--tool-name", "count")
	}
	ask("modern", "modern", "resources/list")
	ask("modern", "modern", "prompts/get", "--prompt-name", "ask")
}
