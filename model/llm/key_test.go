// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

// TestKeyNeverShown prints a key, and what holds one, in every way there is.
func TestKeyNeverShown(t *testing.T) {
	k := key()
	e, s := fake(t, format.Chat, llmtest.Always(llmtest.Reply{Text: "OK"}))
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

// TestKeyRefused: what cannot be a key is not sent, and no request is made with it.
func TestKeyRefused(t *testing.T) {
	for name, c := range map[string]struct {
		secret string
		err    error
		want   llm.Code
	}{
		"a key":           {secret, nil, ""},
		"too long":        {strings.Repeat("k", 8<<10+1), nil, llm.CodeKey},
		"empty":           {"", nil, llm.CodeKey},
		"a header inside": {"a\r\nX-Evil: 1", nil, llm.CodeKey},
		"two lines":       {"two\nlines", nil, llm.CodeKey},
		"cannot be read":  {secret, os.ErrNotExist, llm.CodeKey},
	} {
		k := llm.NewKey("env:NAME", func() (string, error) { return c.secret, c.err })
		if k.String() != "env:NAME" {
			t.Errorf("%s: shown as %s", name, k)
		}
		e, s := fake(t, format.Messages, llmtest.Always(llmtest.Reply{Text: "OK"}), func(o *llm.Options) { o.Key = k })
		if _, err := e.Complete(ctx(t), hello()); codeOf(t, err) != c.want || c.want != "" && s.Requests() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	e, _ := fake(t, format.Chat, llmtest.Always(llmtest.Reply{}), func(o *llm.Options) {
		o.Key = llm.NewKey("env:X", func() (string, error) { return "", errors.New(secret) })
	})
	if _, err := e.Complete(ctx(t), hello()); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}
