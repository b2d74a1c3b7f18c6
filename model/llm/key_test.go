// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

// TestKeyNeverShown prints a key, and what holds one, in every way there is.
func TestKeyNeverShown(t *testing.T) {
	k := key()
	e, s := fake(t, llm.FormatChat, llmtest.Always(llmtest.Reply{Text: "OK"}))
	o := llm.Options{Key: k, Model: "m"}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%t", "%c", "%U"} {
		for _, v := range []any{k, &k, o, &o, []llm.Key{k}, struct{ k llm.Key }{k}, *e, e, map[string]llm.Key{"a": k}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	b, err := json.Marshal(struct{ K llm.Key }{k})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", k, "in", struct{ K llm.Key }{k})
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", k, "in", struct{ K llm.Key }{k})
	_, err = llm.New(llm.Options{Key: k})
	fmt.Fprintln(&out, err)
	for _, shape := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprint([]byte(secret)), "sk-fake"} {
		if strings.Contains(out.String(), shape) {
			t.Errorf("the key is shown as %s", shape)
		}
	}
	if !strings.Contains(out.String(), "env:MODEL_KEY") {
		t.Error("the reference is not shown")
	}
	if _, err := e.Complete(ctx(t), hello()); err != nil {
		t.Fatal(err)
	}
	if got := s.Asks()[0].Header.Get("Authorization"); got != "Bearer "+secret {
		t.Errorf("signed with %q", got)
	}
}

func TestParseKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("two\nlines"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LLM_TEST_KEY", secret)
	t.Setenv("LLM_TEST_SPLIT", "a\r\nX-Evil: 1")
	for ref, want := range map[string]llm.Code{
		"env:LLM_TEST_KEY": "", "file:" + file: "",
		"env:LLM_TEST_NONE": llm.CodeKey, "env:LLM_TEST_SPLIT": llm.CodeKey, "file:" + file + ".none": llm.CodeKey, "file:" + bad: llm.CodeKey,
	} {
		k, err := llm.ParseKey(ref)
		if err != nil || k.String() != ref {
			t.Fatalf("%s: %v", ref, err)
		}
		e, s := fake(t, llm.FormatMessages, llmtest.Always(llmtest.Reply{Text: "OK"}), func(o *llm.Options) { o.Key = k })
		if _, err := e.Complete(ctx(t), hello()); codeOf(t, err) != want || want != "" && s.Requests() != 0 {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, ref := range []string{"", "env:", "file:", secret, "vault:x"} {
		if _, err := llm.ParseKey(ref); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	e, _ := fake(t, llm.FormatChat, llmtest.Always(llmtest.Reply{}), func(o *llm.Options) {
		o.Key = llm.NewKey("env:X", func() (string, error) { return "", errors.New(secret) })
	})
	if _, err := e.Complete(ctx(t), hello()); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}
