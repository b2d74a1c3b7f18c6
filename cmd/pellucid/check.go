package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/pellucid-mcp/pellucid/finding"
	"github.com/pellucid-mcp/pellucid/internal/rules"
	"github.com/pellucid-mcp/pellucid/internal/store"
	"github.com/pellucid-mcp/pellucid/internal/wire"
	"github.com/pellucid-mcp/pellucid/surface"
)

// The exit codes of check alone.
const (
	exitChanged  = 10 // something waits for a person
	exitRejected = 11 // a server is not to be used
	exitNoServer = 12 // a server could not be started or reached
)

// checkCmd looks at what servers say of themselves before a client does.
type checkCmd struct {
	Server  string        `placeholder:"NAME" help:"Only the server of this name; with a command or --surface, the name that it is pinned under."`
	Surface string        `completion:"files" placeholder:"DUMP" help:"Check a saved surface and start nothing."`
	Dump    string        `completion:"files" placeholder:"FILE" help:"Save the surface of the one server that is checked."`
	Wide    bool          `help:"Reject every hidden character, but for those of emoji and languages; not only the 151 that no description has."`
	Yes     bool          `short:"y" help:"Start what the configurations say without asking."`
	NoPin   bool          `help:"Change no pin: compare with those that there are, and remember nothing."`
	Env     []string      `sep:"none" placeholder:"NAME[=VALUE]" help:"Environment variable for the command, beside the harmless ones that it always gets; without a value it is passed on from this process."`
	Timeout time.Duration `default:"2m" help:"How long a server gets to start and to say all it has to say."`
	JSON    bool          `name:"json" help:"Print the report as JSON."`
	SARIF   string        `name:"sarif" completion:"files" placeholder:"FILE" help:"Write the findings into FILE as SARIF 2.1.0 too, for code scanning; - writes them, and nothing else, on standard output."`
	Config  string        `short:"c" completion:"files" placeholder:"FILE" help:"Configuration of pellucid up: its servers, unless others are named, and the model of its review."`
	Review  reviewFlags   `embed:""`
	pinDB

	Args []string `arg:"" optional:"" name:"file" completion:"files" help:"Configurations of clients, or saved surfaces; -- and a command instead checks that one."`

	files, command []string
	typed          bool         // there was a --
	configuration  *rules.Rules // of Config
}

func (checkCmd) Help() string {
	return `Starts or reaches each server, lists everything that it says of itself, calls no tool,
and ends it: every server of the user's own clients and of the project here, those of
FILE, or the one command behind --. Hidden text rejects a server. What a server said
when it was first seen is pinned; what differs later waits for pellucid pins. Wording
that manipulates and names that another server has are told and decide nothing. With
--review-model, or a review in --config, a language model judges the words too: it gets
them as data, and no tools, and anything but its bare OK rejects. An OK is remembered,
so that an unchanged server costs no second question. Before a command of a
configuration is started it is shown and asked about; what a file has disabled is
skipped unless --server names it. The text
of a report is a stranger's: read it, and do not paste it into a model. Exit codes: 0
clean; 1 failed, a file cannot be read or nothing was checked; 2 wrong usage, or nobody
to ask; 3 a file is no configuration, and no saved surface; 10 changed; 11 rejected; 12 a
server cannot be reached; of several the first in the order 11, 10, 12.`
}

// Run checks servers one after the other.
func (c *checkCmd) Run(e *env, k *kong.Context) error {
	c.split(k.Args)
	if err := c.usage(); err != nil {
		return withCode(exitUsage, err)
	}
	if err := c.configure(e); err != nil {
		return err
	}
	review, err := c.reviewRules(e)
	if err != nil {
		return err
	}
	targets, err := c.targets(e)
	if err != nil {
		return err
	}
	if c.Dump != "" && len(targets) != 1 {
		return withCode(exitUsage, fmt.Errorf("check: --dump is for one server, and there are %d: say which with --server", len(targets)))
	}
	for _, name := range []string{c.Dump, c.SARIF} {
		if err := canWrite(name); err != nil && name != "-" {
			return fmt.Errorf("check: %w", err)
		}
	}
	if err := c.ask(e, targets); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	progress := newVerifying(e, targets)
	gate, done, err := c.gate(ctx, review, progress)
	if err != nil {
		progress.done()
		return err
	}
	defer done()
	r, err := c.all(ctx, progress, gate, targets)
	progress.done()
	if err != nil {
		return err
	}
	if err := c.write(e, r); err != nil {
		return err
	}
	return r.exit()
}

// write says what came of it, in every form that was asked for.
func (c *checkCmd) write(e *env, r *preflight) (err error) {
	if c.SARIF != "" {
		var b bytes.Buffer
		if err := writeJSON(&b, newSARIF(r)); err != nil {
			return err
		}
		if c.SARIF == "-" {
			_, err := e.Stdout.Write(b.Bytes())
			return err
		}
		if err := writeFile(c.SARIF, b.Bytes()); err != nil {
			return err
		}
	}
	if c.JSON {
		err = writeJSON(e.Stdout, r)
	} else {
		err = r.write(e.Stdout, paletteFor(e.Stdout, e.Getenv))
	}
	if err != nil {
		return fmt.Errorf("check: write: %w", err)
	}
	return nil
}

func writeFile(path string, b []byte) error {
	err := os.WriteFile(path, b, 0o666)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if err != nil {
		return fmt.Errorf("check: write %s: %w", finding.Quote(path), err)
	}
	return nil
}

// configure reads what --config names. Its pins and verdicts are those of the gateway.
func (c *checkCmd) configure(e *env) (err error) {
	if c.Config == "" {
		return nil
	}
	if c.configuration, err = rules.Load(c.Config, e.references()); err != nil {
		return withCode(exitConfig, fmt.Errorf("check: %w", err))
	}
	if at := c.configuration.Store; c.DB == "" {
		c.DB = cmp.Or(at.Path, at.URL.Reveal())
	}
	return nil
}

// split tells files from the command: kong makes one list of both.
func (c *checkCmd) split(args []string) {
	c.files = c.Args
	if i := slices.Index(args, "--"); i >= 0 {
		c.typed = true
		at := max(0, len(c.Args)-len(args[i+1:]))
		c.files, c.command = c.Args[:at], c.Args[at:]
	}
}

func (c *checkCmd) usage() error {
	ways := 0
	for _, given := range []bool{len(c.files) > 0, len(c.command) > 0, c.Surface != ""} {
		if given {
			ways++
		}
	}
	switch {
	case c.typed && len(c.command) == 0:
		return errors.New("check: there is no command behind --")
	case ways > 1:
		return errors.New("check: files, --surface and a command exclude each other")
	case len(c.Env) > 0 && len(c.command) == 0:
		return errors.New("check: --env is for a command")
	case slices.ContainsFunc(c.Env, isNoVariable):
		return errors.New("check: --env: want NAME=VALUE, or NAME alone to pass it on")
	case c.Timeout <= 0:
		return errors.New("check: --timeout must be positive")
	case c.JSON && c.SARIF == "-":
		return errors.New("check: --json and --sarif - exclude each other: one of them needs a file")
	}
	return nil
}

// ask lets a person decide about every command that a file names. Who types a
// command has decided.
func (c *checkCmd) ask(e *env, targets []*target) error {
	var open []*target
	for _, t := range targets {
		if t.file != "" && t.command != nil && t.problem == nil && (!t.disabled || c.Server != "") {
			open = append(open, t)
		}
	}
	if c.Yes || len(open) == 0 {
		return nil
	}
	if !isTerminal(e.Stderr) || !readsTerminal(e.Stdin) {
		for _, t := range open {
			fmt.Fprintf(e.Stderr, "%s would be started:\n%s", t.title(), t.shown())
		}
		return errNobody
	}
	return askEach(e.Stdin, e.Stderr, open)
}

var errNobody = withCode(exitUsage, errors.New("check: nothing was started, for there is nobody to ask: look at the commands above and say --yes"))

// askEach asks about each command. Whoever goes away in the middle has agreed to none.
func askEach(r io.Reader, w io.Writer, open []*target) error {
	in := bufio.NewReader(r)
	for _, t := range open {
		fmt.Fprintf(w, "%s is started by:\n%sStart it? [y/N] ", t.title(), t.shown())
		line, err := in.ReadString('\n')
		if err != nil {
			fmt.Fprintln(w)
			return errNobody
		}
		t.declined = !isYes(line)
	}
	return nil
}

func isYes(line string) bool {
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// pinDB says where the pins are.
type pinDB struct {
	DB string `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Database of the pins: a postgres:// URL, or the path of an SQLite file (default: $$${env}; else pins of wrap and check are files in the state directory, and those of up are in its pellucid.db)."`
}

// open opens the pins. Without a database, make says to make one; else there are none.
func (c *pinDB) open(ctx context.Context, make bool) (s *store.Store, err error) {
	dir, err := openState()
	if err != nil {
		return nil, err
	}
	s, err = (&stateDB{DB: c.DB}).open(ctx, dir, make)
	if errors.Is(err, errNoStore) {
		return nil, nil
	}
	return s, err
}

// places opens what keeps pins and verdicts: the database, where one is named or the
// configuration of up is given, else files.
func (c *checkCmd) places(ctx context.Context) (surface.PinStore, surface.Cache, func(), error) {
	if c.DB == "" && c.configuration == nil {
		files, err := openFiles()
		return files, files, func() {}, err
	}
	s, err := c.pinDB.open(ctx, !c.NoPin)
	if err != nil || s == nil {
		return nil, nil, func() {}, err
	}
	return s, s, func() { s.Close() }, nil
}

// gate is the check that every server passes. Verdicts are remembered beside the pins.
func (c *checkCmd) gate(ctx context.Context, review *rules.Review, progress *verifying) (*surface.Gate, func(), error) {
	g := &surface.Gate{Rules: surface.Rules{Wide: c.Wide}}
	pins, cache, done, err := c.places(ctx)
	if err != nil {
		return nil, nil, err
	}
	if pins != nil {
		g.Pins = surface.NewPins(pins, nil)
		if c.NoPin {
			g.Pins, cache = surface.NewPins(unchanged{pins}, nil), unlearned{cache}
		}
	}
	if review == nil {
		return g, done, nil
	}
	reviewing, err := newReviewing(review, cache, progress.part)
	if err != nil {
		done()
		return nil, nil, withCode(exitUsage, fmt.Errorf("check: the review: %w", err))
	}
	g.Review = reviewing.review
	return g, func() { reviewing.Close(); done() }, nil
}

// unchanged is a store in which nothing is saved.
type unchanged struct{ surface.PinStore }

func (unchanged) SavePin(context.Context, string, []byte, int64, []byte) error { return nil }

// unlearned is a cache to which nothing is added.
type unlearned struct{ surface.Cache }

func (unlearned) PutVerdict(context.Context, surface.Digest, []byte) error { return nil }

// all checks the targets and puts the report together.
func (c *checkCmd) all(ctx context.Context, progress *verifying, gate *surface.Gate, targets []*target) (*preflight, error) {
	r := &preflight{Conclusion: string(surface.Clean), Servers: []*checkedServer{}}
	surfaces := map[string]*surface.Surface{}
	for _, t := range targets {
		progress.begin(t)
		one, s, err := c.one(ctx, gate, t)
		if err != nil {
			return nil, err
		}
		if s != nil {
			surfaces[cmp.Or(t.name, t.file)] = s
		}
		r.Servers = append(r.Servers, one)
	}
	r.conclude()
	for _, sh := range surface.Shadows(surfaces) {
		r.Shadows = append(r.Shadows, checkedShadow{string(sh.How), sh.Server, strings.TrimSpace(sh.Place.String()), sh.Other, sh.Tool, sh.Place.Key, sh.Place.Path})
	}
	return r, nil
}

var errInterrupted = errors.New("check: interrupted, so there is no report")

// whyUnreachable is err without the names of the layers that it came through.
func whyUnreachable(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, wire.ErrPeerClosed) {
		return "it ended without an answer"
	}
	if _, cause, ok := strings.Cut(err.Error(), wire.ErrUnreachable.Error()+": "); ok {
		return "no connection: " + cause
	}
	if refused, ok := errors.AsType[*surface.RefusedError](err); ok && refused.Err != nil {
		return refused.Err.Error()
	}
	return err.Error()
}

// one checks one server. The error is of what no server is to blame for.
func (c *checkCmd) one(ctx context.Context, gate *surface.Gate, t *target) (*checkedServer, *surface.Surface, error) {
	out := &checkedServer{Name: t.name, Client: t.client, File: t.file, NotInspected: []string{}}
	switch {
	case t.disabled && c.Server == "":
		out.Conclusion, out.Why = skipped, "the file has disabled it; --server NAME checks it all the same"
		return out, nil, nil
	case t.declined:
		out.Conclusion, out.Why = notChecked, "not started: you said no"
		return out, nil, nil
	}
	s, err := c.collect(ctx, t)
	var refused *surface.RefusedError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, nil, errInterrupted
	case errors.As(err, &refused) && refused.Reason != surface.NoAnswer && refused.Reason != surface.NoServer:
		out.Conclusion, out.Why = string(surface.Rejected), err.Error()
		return out, nil, nil
	default:
		out.Conclusion, out.Why = unreachable, whyUnreachable(err)
		if !errors.Is(err, wire.ErrUnreachable) { // else it is said already
			out.Stderr = t.said()
		}
		return out, nil, nil
	}
	if c.Dump != "" {
		if err := writeFile(c.Dump, s.AppendDump(nil)); err != nil {
			return nil, nil, err
		}
	}
	g := *gate
	if t.unnamed() {
		g.Pins = nil // a saved surface is nobody's without a name
	}
	o, err := g.Check(ctx, t.name, t.transport, s)
	if err != nil && ctx.Err() != nil {
		return nil, nil, errInterrupted
	} else if err != nil {
		return nil, nil, fmt.Errorf("check: %w", err)
	}
	o.Pinned = o.Pinned && !c.NoPin
	out.fill(s, o)
	return out, s, nil
}

// targets finds what is to be checked.
func (c *checkCmd) targets(e *env) ([]*target, error) {
	switch {
	case len(c.command) > 0:
		return []*target{commandTarget(c.Server, c.command, c.Env)}, nil
	case c.Surface != "":
		t, err := c.dumped(e, c.Surface)
		return []*target{t}, err
	}
	targets, err := c.configured(e)
	if err != nil {
		return nil, err
	}
	there := targets
	if c.Server != "" {
		there = slices.Clone(targets)
		targets = slices.DeleteFunc(targets, func(t *target) bool { return t.entry != c.Server && t.name != c.Server })
	}
	switch {
	case len(targets) > 0:
		return targets, nil
	case c.Server != "" && len(there) > 0:
		return nil, fmt.Errorf("check: no server is called %s: there is %s", finding.Quote(c.Server), namesOf(there))
	case len(c.files) > 0 || c.configuration != nil:
		return nil, errors.New("check: no server is configured there: nothing was checked")
	}
	return nil, errors.New("check: no server is configured in any client's file: nothing was checked; name a file, or a command behind --")
}

// namesOf lists what could have been meant, for a person.
func namesOf(targets []*target) string {
	const most = 12
	var names []string
	for _, t := range targets[:min(len(targets), most)] {
		names = append(names, shellWord(t.name))
	}
	s := strings.Join(names, ", ")
	if len(targets) > most {
		s += ", …"
	}
	return s
}

// dumped is a target of a saved surface.
func (c *checkCmd) dumped(e *env, path string) (*target, error) {
	b, err := readInput(path, e.Stdin)
	if errors.Is(err, errTooLarge) { // as a server would be that says so much
		t := dumpTarget(c.Server, path, nil)
		t.problem = &surface.RefusedError{Reason: surface.TooLarge}
		return t, nil
	} else if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	if !surface.Dumped(b) {
		return nil, withCode(exitConfig, fmt.Errorf("check: %s is no saved surface: check --dump writes one", inputName(path)))
	}
	return dumpTarget(c.Server, path, b), nil
}

func (c *checkCmd) configured(e *env) ([]*target, error) {
	read := &configReader{getenv: e.Getenv}
	if len(c.files) == 0 && c.configuration != nil {
		return configuredTargets(c.Config, c.configuration), nil
	}
	if len(c.files) == 0 {
		m, err := machine(e)
		if err != nil {
			return nil, err
		}
		return read.clients(m)
	}
	var all []*target
	for _, path := range c.files {
		b, err := readInput(path, e.Stdin)
		if err != nil && strings.Contains(path, "://") {
			return nil, withCode(exitUsage, errors.New(`check: a URL is no file: name the server in one, {"mcpServers": {"NAME": {"url": "https://…"}}}`))
		}
		if err != nil {
			return nil, fmt.Errorf("check: %w", err)
		}
		if surface.Dumped(b) {
			all = append(all, dumpTarget(c.Server, path, b))
			continue
		}
		some, err := read.file("", path, b)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
