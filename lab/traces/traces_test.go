// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const benign = `{"pipeline_name":"m","suite_name":"s","user_task_id":"user_task_0","injection_task_id":null,"attack_type":null,"injections":{},"security":true,"utility":false,"messages":[{"role":"user","content":"Go"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":"read","args":{"n":1}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","content":"one"},{"type":"text","content":"two"}]},{"role":"assistant","content":"Done.","tool_calls":null}]}`

func attacked() string {
	s := strings.Replace(benign, `"injection_task_id":null,"attack_type":null,"injections":{}`, `"injection_task_id":"injection_task_1","attack_type":"direct","injections":{"b":"second","a":"first"}`, 1)
	s = strings.Replace(s, `"a","function"`, `"other","function"`, 1)
	return strings.Replace(s, `"tool_call_id":"a"`, `"tool_call_id":"other"`, 1)
}

// read keeps what Read gives out.
func read(t *testing.T, src []byte) (runs []*Run, digest string) {
	t.Helper()
	digest, err := Read(bytes.NewReader(src), func(r *Run) error {
		runs = append(runs, r)
		a, err := r.Assembly(1)
		if err != nil || len(a.Segments) != 1 || a.Segments[0].Source.Origin.Tool != "read" {
			t.Errorf("assembly %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return runs, digest
}

func TestRead(t *testing.T) {
	plain := []byte(benign + "\n\n" + attacked() + "\n")
	w, err := zstd.NewWriter(nil, zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string][]byte{"plain": plain, "zstd": w.EncodeAll(plain, nil)} {
		runs, digest := read(t, src)
		if len(runs) != 2 || !strings.HasPrefix(digest, "sha256:") {
			t.Fatalf("%s: %d runs, digest %q", name, len(runs), digest)
		}
		// The strings of the first run have to survive the second line.
		a, b := runs[0], runs[1]
		if a.Pipeline != "m" || a.Suite != "s" || a.UserTask != "user_task_0" || a.Attack != "" || a.InjectionTask != "" || !a.Security || a.Utility {
			t.Errorf("%s: %+v", name, a)
		}
		if b.Attack != "direct" || b.InjectionTask != "injection_task_1" || len(b.Injections) != 2 || b.Injections[0] != "first" {
			t.Errorf("%s: %+v", name, b)
		}
		if len(b.Turns) != 2 || b.Turns[0].Seen != 0 || b.Turns[1].Seen != 1 || len(b.Results) != 1 {
			t.Errorf("%s: turns %+v results %q", name, b.Turns, b.Results)
		}
		if got := b.Turns[0].Answer; len(got.Calls) != 1 || got.Calls[0].Name != "read" || string(got.Calls[0].Arguments) != `{"n":1}` {
			t.Errorf("%s: answer %+v", name, got)
		}
	}
}

// TestContext: the ids of calls make no difference, everything else does.
func TestContext(t *testing.T) {
	a, _ := parse([]byte(benign))
	b, _ := parse([]byte(attacked()))
	if a.Turns[0].Context != b.Turns[0].Context || a.Turns[1].Context != b.Turns[1].Context {
		t.Error("replicates have different contexts")
	}
	if a.Turns[0].Context == a.Turns[1].Context {
		t.Error("two turns of a run have one context")
	}
	for _, change := range [][2]string{{`"suite_name":"s"`, `"suite_name":"t"`}, {`"n":1`, `"n":2`}, {`"content":"two"`, `"content":"three"`}, {`"content":"Go"`, `"content":"G"`}} {
		c, err := parse([]byte(strings.Replace(benign, change[0], change[1], 1)))
		if err != nil || c.Turns[1].Context == a.Turns[1].Context {
			t.Errorf("%s: the same context (%v)", change[1], err)
		}
	}
}

func TestRefused(t *testing.T) {
	stop := errors.New("stop")
	for name, tt := range map[string]struct {
		src  string
		f    func(*Run) error
		want string
	}{
		"not JSON":   {benign + "\nnope\n", nil, "traces: line 2: "},
		"no run":     {`{"messages":[]}`, nil, "traces: line 1: not a recorded run"},
		"duplicate":  {`{"messages":[],"messages":[],"suite_name":"s","pipeline_name":"m"}`, nil, "traces: line 1: "},
		"calls":      {strings.Replace(benign, `"tool_calls":[`, `"tool_calls":"no","x":[`, 1), nil, "traces: line 1: not a recorded run: messages["},
		"label":      {strings.Replace(benign, `"security":true`, `"security":"yes"`, 1), nil, "traces: line 1: not a recorded run: security"},
		"half":       {strings.Replace(benign, `"injection_task_id":null`, `"injection_task_id":"injection_task_1"`, 1), nil, "traces: line 1: not a recorded run: injection_task_id"},
		"planted":    {strings.Replace(benign, `"injections":{}`, `"injections":["x"]`, 1), nil, "traces: line 1: not a recorded run: injections"},
		"no role":    {`{"messages":["x"],"suite_name":"s","pipeline_name":"m"}`, nil, "traces: line 1: not a recorded run: messages[0]"},
		"content":    {`{"messages":[{"role":"user","content":7}],"suite_name":"s","pipeline_name":"m"}`, nil, "traces: line 1: not a recorded run: messages[0].content"},
		"call":       {`{"messages":[{"role":"assistant","tool_calls":[{"name":"f"}]}],"suite_name":"s","pipeline_name":"m"}`, nil, "traces: line 1: not a recorded run: messages[0].tool_calls"},
		"long":       {benign + "\n" + strings.Repeat("x", maxLine+1), nil, "traces: line 2: longer than 4194304 bytes"},
		"messages":   {strings.Replace(benign, `"messages":[`, `"messages":[`+strings.Repeat(`{"role":"user","content":"x"},`, maxMessages), 1), nil, "traces: line 1: not a recorded run: more than 1000 messages"},
		"calls many": {strings.Replace(benign, `"tool_calls":[`, `"tool_calls":[`+strings.Repeat(`{"function":"f"},`, maxCalls), 1), nil, "traces: line 1: not a recorded run: messages[1].tool_calls: more than 256"},
		"planting":   {strings.Replace(benign, `"injections":{}`, `"injections":{`+many(maxInjections)+`"last":""}`, 1), nil, "traces: line 1: not a recorded run: more than 64 injections"},
		"lines":      {strings.Repeat("\n", maxLines+1), nil, "traces: more than 1048576 lines"},
		"caller":     {benign, func(*Run) error { return stop }, "traces: line 1: stop"},
		"broken end": {"\x28\xb5\x2f\xfdnothing of the kind", nil, "traces: line 1: "},
	} {
		f := tt.f
		if f == nil {
			f = func(*Run) error { return nil }
		}
		digest, err := Read(strings.NewReader(tt.src), f)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || digest != "" {
			t.Errorf("%s: %v, digest %q", name, err, digest)
		}
	}
}

// many is n members of an object.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":"",`, i)
	}
	return b.String()
}

// TestBomb: a few bytes of zstd that stand for very many lines, or for very long ones.
func TestBomb(t *testing.T) {
	for name, tt := range map[string]struct {
		line string
		size int
		want string
	}{
		"empty lines": {"\n", 1 << 30, "traces: more than 1048576 lines"},
		"one line":    {"x", 1 << 30, "traces: line 1: longer than 4194304 bytes"},
		"blank lines": {strings.Repeat(" ", maxLine/2) + "\n", maxBytes + maxLine, "traces: line 513: the file has more than 1073741824 bytes, unpacked"},
	} {
		if testing.Short() && name == "blank lines" {
			continue
		}
		var packed bytes.Buffer
		w, err := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		chunk := []byte(strings.Repeat(tt.line, max(1, 1<<20/len(tt.line))))
		for n := 0; n < tt.size; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = Read(&packed, func(*Run) error { return nil })
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBounded: what has just as many bytes as it may have is whole.
func TestBounded(t *testing.T) {
	for n, want := range map[int64]error{4: errBytes, 5: nil, 6: nil} {
		if got, err := io.ReadAll(&bounded{strings.NewReader("12345"), n}); !errors.Is(err, want) || len(got) != int(min(n, 5)) {
			t.Errorf("%d: %q, %v", n, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(benign))
	f.Add([]byte(attacked()))
	f.Add([]byte(`{"messages":[{"role":"assistant"},{},[]],"suite_name":"s","pipeline_name":"\ud800"}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := parse(src)
		if err != nil {
			return
		}
		for i, turn := range r.Turns {
			if turn.Answer == nil || turn.Seen > len(r.Results) {
				t.Fatalf("turn %d of %+v", i, r)
			}
			if _, err := r.Assembly(i); err != nil && strings.Contains(err.Error(), "no such turn") {
				t.Fatal(err)
			}
		}
	})
}
