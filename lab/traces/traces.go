// SPDX-License-Identifier: Apache-2.0

// Package traces reads recorded runs of agents: a JSON object a line, as it is or in zstd.
//
// The format is ccr-traces/1: one strict JSON object a line, plain or in zstd with a window of up to 128 MiB. A line
// has at most 4 MiB, a file 1 GiB unpacked and 1,048,576 lines; a run has at most 1,000 messages of 256 calls, and 64
// injections. There are at most 1,000 models and suites, and 2,000 runs of one of them with one task. Lone surrogate
// escapes are mended, unknown members ignored, empty lines skipped. These members are read:
//
//   - pipeline_name: the model. Names that hold repeat, spotlight, filter or detector are models behind a defence:
//     rows of their own, and in no sum.
//   - suite_name, user_task_id: strata and pairs are made by these. Runs whose user_task_id does not begin with user
//     are counted and not used.
//   - injection_task_id, attack_type: strings; null in a benign run.
//   - injections: an object with the texts that were planted, by the name of their place.
//   - security: of an attack, whether it reached its goal. utility: whether the user's task was done.
//   - messages: in order, each an object with role (system, user, assistant, tool), content (a string, or blocks with
//     text or content), of an assistant tool_calls as [{id, function, args}], of a tool tool_call_id.
//
// A line in which one of these has another type is refused, with its number; so is one that has an injection_task_id
// and no attack_type, and the same file twice. An attack whose security is null or missing is in no pair. A result holds
// an injection if the first or the last 100 letters and digits of the planted text stand in it, ASCII case folded;
// injections of 40 letters or fewer are not recognised. AgentDojo's run files are lines of this format once each is
// written on one line.
//
// Lines are read one after the other; no more than one is in memory. A few bytes of zstd can stand for any number: what
// comes out is bounded.
package traces

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	// maxLine bounds one run, in bytes; those that are published have less than 64 KiB.
	maxLine = 4 << 20
	// maxBytes bounds a file, unpacked, and maxLines its lines, empty ones included.
	maxBytes = 1 << 30
	maxLines = 1 << 20

	maxWindow = 128 << 20 // as the published files have it

	// Of one run. Whoever looks at each turn reads all messages before it again.
	maxMessages   = 1000
	maxInjections = 64
	maxCalls      = 256 // of one message
)

// errBytes ends a file.
var errBytes = fmt.Errorf("the file has more than %d bytes, unpacked", maxBytes)

// bounded fails where io.LimitReader would pretend that nothing more comes.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// Whether anything more comes is known only to whoever asks for it.
		n, err := b.r.Read(p[:min(len(p), 1)])
		if n > 0 {
			return 0, errBytes
		}
		return 0, err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// A Run is one recorded run. All its strings are third-party text. Results and
// Injections lie in the line that they were read from, and so does what Assembly
// reads: none of them outlives the function that Read calls with the run. Answers keep
// alive a copy of the whole line: whoever keeps one clones it.
type Run struct {
	Pipeline      string // the model, and the defence if there was one
	Suite         string
	UserTask      string
	InjectionTask string   // "" in a benign run
	Attack        string   // the attack's name; "" in a benign run
	Injections    []string // the texts that were planted, by the order of their places' names
	// Security says that the injection reached its goal, Utility that the user's task
	// was done; Labelled that the file says of the first one.
	Security, Utility, Labelled bool

	Turns   []Turn
	Results []string // the texts of the tools' results, in order
	Trusted string   // the texts of the system and of the user

	src []byte
}

// A Turn is one time that the model spoke.
type Turn struct {
	Answer *counterfactual.Answer
	Seen   int // of Results: those before it

	// Context identifies everything that the model was shown, but for the ids of calls:
	// two turns of equal Context are replicates.
	Context [16]byte
}

// Assembly takes the context of turn i apart.
func (r *Run) Assembly(i int) (*counterfactual.Assembly, error) {
	run, err := counterfactual.ParseRun(r.src)
	if err != nil {
		return nil, err
	}
	a, _, err := run.Turn(i, counterfactual.ParseOptions{})
	return a, err
}

// Messages is the messages before turn i, as chat completions have them: a JSON array.
func (r *Run) Messages(i int) ([]byte, error) {
	run, err := counterfactual.ParseRun(r.src)
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= run.Turns() {
		return nil, errors.New("traces: no such turn")
	}
	body := run.Context(i)
	return bytes.TrimSuffix(bytes.TrimPrefix(body, []byte(`{"messages":`)), []byte("}")), nil
}

// Read calls f with every run of src, until f or src fails. The digest is that of
// the bytes of src, as "sha256:…"; it is empty if not all of them were read.
func Read(src io.Reader, f func(*Run) error) (digest string, err error) {
	sum := sha256.New()
	tee := bufio.NewReaderSize(io.TeeReader(src, sum), 1<<16)
	var lines io.Reader = tee
	if head, _ := tee.Peek(4); bytes.Equal(head, []byte{0x28, 0xB5, 0x2F, 0xFD}) {
		z, err := zstd.NewReader(tee, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return "", fmt.Errorf("traces: read: %w", err)
		}
		defer z.Close()
		lines = z
	}
	sc := bufio.NewScanner(&bounded{lines, maxBytes})
	sc.Buffer(make([]byte, 0, 1<<20), maxLine)
	line := 0
	for sc.Scan() {
		if line++; line > maxLines {
			return "", fmt.Errorf("traces: more than %d lines", maxLines)
		}
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		run, err := parse(sc.Bytes())
		if err == nil {
			err = f(run)
		}
		if err != nil {
			return "", fmt.Errorf("traces: line %d: %w", line, err)
		}
	}
	switch err := sc.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return "", fmt.Errorf("traces: line %d: longer than %d bytes", line+1, maxLine)
	case err != nil:
		return "", fmt.Errorf("traces: line %d: %w", line+1, err)
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return "", fmt.Errorf("traces: read: %w", err)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// parse reads one run. It keeps src, for Assembly.
func parse(src []byte) (*Run, error) {
	var doc strictjson.Doc
	if err := doc.Reset(src, strictjson.Limits{MendSurrogates: true}); err != nil {
		return nil, err
	}
	root := doc.Root()
	text := func(name string) string {
		if v := root.Get(name); v.Kind() == '"' {
			return strings.Clone(v.Text()) // it lies in src
		}
		return ""
	}
	r := &Run{
		Pipeline: text("pipeline_name"), Suite: text("suite_name"), UserTask: text("user_task_id"),
		InjectionTask: text("injection_task_id"), Attack: text("attack_type"), src: src,
	}
	if root.Get("messages").Kind() != '[' || r.Pipeline == "" || r.Suite == "" {
		return nil, errors.New("not a recorded run: messages, pipeline_name and suite_name are needed")
	}
	if err := shape(root); err != nil {
		return nil, err
	}
	r.Security, r.Labelled = root.Get("security").Bool()
	r.Utility, _ = root.Get("utility").Bool()
	switch {
	case r.Attack == "" && r.InjectionTask != "": // it would count as benign
		return nil, errors.New("not a recorded run: injection_task_id without attack_type")
	case !r.Labelled && !absent(root.Get("security")):
		return nil, errors.New("not a recorded run: security: want true, false or null")
	}
	var err error
	if r.Injections, err = injections(root.Get("injections")); err != nil {
		return nil, err
	}
	run, err := counterfactual.ParseRun(src)
	if err != nil {
		return nil, err
	}
	r.follow(root.Get("messages"), run)
	return r, nil
}

// injections are the texts that were planted, by the order of their places' names.
func injections(v strictjson.Value) (texts []string, err error) {
	planted := map[string]string{}
	for name, text := range v.Members() {
		if len(planted) == maxInjections {
			return nil, fmt.Errorf("not a recorded run: more than %d injections", maxInjections)
		}
		planted[name.Text()] = text.Text()
	}
	for _, name := range slices.Sorted(maps.Keys(planted)) {
		texts = append(texts, planted[name])
	}
	return texts, nil
}

// follow goes through the messages and takes in turns, results and what is trusted. run
// has the answers of the same messages.
func (r *Run) follow(messages strictjson.Value, run *counterfactual.Run) {
	var trusted []string
	context := sha256.New()
	field(context, r.Suite)
	for m := range messages.Elements() {
		role := m.Get("role").Text()
		if role == "assistant" {
			t := Turn{Answer: run.Answer(len(r.Turns)), Seen: len(r.Results)}
			copy(t.Context[:], context.Sum(nil))
			r.Turns = append(r.Turns, t)
			field(context, role)
			field(context, t.Answer.Text)
			for _, c := range t.Answer.Calls {
				field(context, c.Name)
				field(context, string(c.Arguments))
			}
			continue
		}
		text := plain(m.Get("content"))
		field(context, role)
		field(context, text)
		switch role {
		case "tool":
			r.Results = append(r.Results, text)
		case "system", "user":
			trusted = append(trusted, text)
		}
	}
	r.Trusted = strings.Join(trusted, "\n") // a copy: it does not lie in src
}

// shape checks what is read of a run: a trace in another format must not pass for runs
// in which nothing was called.
func shape(root strictjson.Value) error {
	wrong := func(i int, what string) error {
		return fmt.Errorf("not a recorded run: messages[%d]%s", i, what)
	}
	i := 0
	for m := range root.Get("messages").Elements() {
		if i == maxMessages {
			return fmt.Errorf("not a recorded run: more than %d messages", maxMessages)
		}
		content, calls := m.Get("content"), m.Get("tool_calls")
		switch {
		case m.Get("role").Kind() != '"':
			return wrong(i, ": want an object with a role")
		case !absent(content) && content.Kind() != '"' && content.Kind() != '[':
			return wrong(i, ".content: want a string or a list of blocks")
		case !absent(calls) && calls.Kind() != '[':
			return wrong(i, ".tool_calls: want a list")
		}
		n := 0
		for c := range calls.Elements() {
			if n++; n > maxCalls {
				return wrong(i, fmt.Sprintf(".tool_calls: more than %d", maxCalls))
			}
			name := c.Get("function")
			if name.Kind() == '{' {
				name = name.Get("name")
			}
			if name.Kind() != '"' {
				return wrong(i, ".tool_calls: want objects with a function")
			}
		}
		i++
	}
	if v := root.Get("injections"); !absent(v) && v.Kind() != '{' {
		return errors.New("not a recorded run: injections: want an object of texts")
	}
	return nil
}

func absent(v strictjson.Value) bool { return !v.Exists() || v.Kind() == 'n' }

// plain is the text of a content: a string, or that of its blocks.
func plain(v strictjson.Value) string {
	if v.Kind() == '"' {
		return v.Text()
	}
	var out strings.Builder
	for b := range v.Elements() {
		t := b.Get("text")
		if t.Kind() != '"' {
			t = b.Get("content")
		}
		if out.Len() > 0 && t.Text() != "" {
			out.WriteByte('\n')
		}
		out.WriteString(t.Text())
	}
	return out.String()
}

// field writes s so that no two lists of fields are the same bytes.
func field(h hash.Hash, s string) {
	fmt.Fprintf(h, "%d:", len(s))
	io.WriteString(h, s)
}
