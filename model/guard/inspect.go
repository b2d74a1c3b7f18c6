// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// inspect is one of the routes on which a model answers.
func (g *Guard) inspect(found *route, t target, w http.ResponseWriter, r *http.Request) {
	f := found.format
	done, ok := g.admit(w, r, f)
	if !ok {
		return
	}
	defer done()
	who := principal(r)
	body, room, err := g.bodies.Read(w, r, who)
	defer room.Leave()
	switch {
	case errors.Is(err, intake.ErrFull):
		done() // the client may take long to read the refusal
		g.busy(w, r, f, err)
		return
	case errors.Is(err, intake.ErrTooLong):
		done()
		g.counters.exchanged("too-large")
		intake.Refuse(w, r, g.o.MaxRequest, func() { g.fault(w, f, http.StatusRequestEntityTooLarge, "the request is too long") })
		return
	case err != nil:
		panic(http.ErrAbortHandler) // the client has gone, or does not speak
	}
	asked := checked(found, t, body)
	wrong := asked.Wrong
	if r.Header.Get("Content-Encoding") != "" {
		wrong = "a compressed body cannot be inspected"
	}
	task, readable := g.task(r.Header)
	if !readable {
		wrong = "the task in X-Pellucid-Task cannot be read"
	}
	if wrong != "" && !g.o.Audit {
		g.counters.exchanged("refused-request")
		g.fault(w, f, http.StatusBadRequest, wrong)
		return
	}
	x := &exchange{f: f, id: hold.NewID(), body: body, model: strings.Clone(asked.Model), principal: who, task: task, header: g.probeHeader(found, r),
		path: g.upstream.probe(found, t, &asked)}
	x.teaching = &teaching{f: f, body: body}
	if g.o.Planner.Ahead && wrong == "" {
		released := g.planAhead(x)
		defer func() { <-released }() // before the body's room is given back
	}
	ctx, alive, cancel := g.patience(r.Context())
	defer cancel()
	if wrong == "" {
		// What was read as UTF-8 must not be read as another charset.
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := g.send(ctx, r, found, t.path, bytes.NewReader(body), int64(len(body)))
	if err != nil {
		g.unreachable(w, r, f, ctx)
		return
	}
	defer resp.Body.Close()
	alive()
	in := &incoming{g: g, x: x, r: r, resp: resp, ctx: ctx, alive: alive, reserve: room.Growing(answerCost, intake.BodyWait)}
	switch {
	case redirects(resp.StatusCode) && !g.o.Audit:
		g.counters.exchanged("refused-answer")
		g.fault(w, f, http.StatusBadGateway, "the provider's answer is a redirect")
	case !success(resp.StatusCode) || wrong != "":
		g.counters.exchanged("not-inspected")
		in.passAll(w)
	case resp.Header.Get("Content-Encoding") != "" && !g.o.Audit:
		g.counters.exchanged("refused-answer")
		g.fault(w, f, http.StatusBadGateway, "the provider's answer is compressed")
	// A body that is called a stream, and nobody has asked for one, may be read as JSON.
	case isEvents(f, resp.Header) && (asked.Stream || g.o.Audit):
		in.stream(w)
	default:
		in.whole(w)
	}
}

// success reports whether a client may take the body of an answer for the model's: every
// status of the class is to an SDK what 200 is. With 204 there is no body.
func success(status int) bool { return status/100 == 2 && status != http.StatusNoContent }

// redirects reports whether a client may ask again elsewhere, where nobody inspects.
func redirects(status int) bool { return status/100 == 3 && status != http.StatusNotModified }

// probeHeader is what probes have in common with the request: whose they are, and
// which version of the interface they speak.
func (g *Guard) probeHeader(found *route, r *http.Request) http.Header {
	h := http.Header{}
	for name, values := range r.Header {
		if isProbed(name, g.headers) && !slices.Contains(dropped, name) {
			h[name] = values
		}
	}
	g.sign(h, g.upstream.keyIn(found, r.Header))
	return h
}

// incoming is an answer that comes in.
type incoming struct {
	g       *Guard
	x       *exchange
	r       *http.Request
	resp    *http.Response
	ctx     context.Context // that the answer is read under
	alive   func()
	reserve func(n int) error // waits for memory for n bytes of the answer
}

// answerCost is the memory that is counted for a byte of an answer that is held.
const answerCost = 2

func (in *incoming) passAll(w http.ResponseWriter) {
	copyHeader(w.Header(), in.resp.Header, true)
	w.WriteHeader(in.resp.StatusCode)
	copyFlushed(w, in.resp.Body, in.alive)
}

// aborted ends an answer that has broken off.
func (in *incoming) aborted() {
	in.g.counters.exchanged("cut")
	panic(http.ErrAbortHandler)
}

// gate says which calls of the answer need a decision.
func (in *incoming) gate() gate {
	g := in.g.gate()
	g.teaching = in.x.teaching
	return g
}

// whole reads an answer that is no stream.
func (in *incoming) whole(w http.ResponseWriter) {
	g := in.g
	var all []byte
	for buf := make([]byte, 32<<10); ; {
		n, err := in.resp.Body.Read(buf)
		in.alive()
		if noRoom := in.reserve(len(all) + n); noRoom != nil {
			g.busy(w, in.r, in.x.f, noRoom)
			return
		}
		all = append(all, buf[:n]...)
		if len(all) > g.o.maxAnswer {
			in.tooLong(w, all)
			return
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			if in.r.Context().Err() != nil {
				in.aborted()
			}
			g.unreachable(w, in.r, in.x.f, in.ctx)
			return
		}
	}
	a := read(in.x.f, all, in.x.teaching)
	if !a.decides(g.gate()) {
		g.counters.exchanged("forwarded")
		in.deliver(w, all, nil)
		return
	}
	if g.o.Audit {
		g.counters.exchanged("audited")
		in.deliver(w, all, nil)
		g.auditLater(in.x, a)
		return
	}
	o := g.decide(in.r.Context(), in.x, a, true, false)
	switch {
	case o.act == forwarded:
	case o.act == repaired:
		all = in.x.withNotice(o.body)
	default:
		all = in.x.f.AppendText(nil, in.x.id, in.x.model, in.x.refusalText(&o))
	}
	if root := format.Parse(all); o.labelled() && root.Exists() {
		all = format.AppendLabelled(nil, root, in.x.label(&o))
	}
	in.deliver(w, all, &o)
	g.counters.exchanged(string(o.act))
}

// tooLong is an answer of which more has come than can be held.
func (in *incoming) tooLong(w http.ResponseWriter, begun []byte) {
	in.g.counters.exchanged("too-long")
	if !in.g.o.Audit {
		in.g.fault(w, in.x.f, http.StatusBadGateway, "the provider's answer is too long to be inspected")
		return
	}
	in.resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(begun), in.resp.Body))
	in.passAll(w)
}

func (in *incoming) deliver(w http.ResponseWriter, body []byte, o *decision) {
	copyHeader(w.Header(), in.resp.Header, true)
	in.mark(w, o)
	w.WriteHeader(in.resp.StatusCode)
	_, _ = w.Write(body) // the client has gone
}

// mark says in the header what was decided, where it is not too late for that.
func (in *incoming) mark(w http.ResponseWriter, o *decision) {
	if o != nil && o.told() {
		w.Header().Set("Pellucid-Act", string(o.act))
		w.Header().Set("Pellucid-Evidence", in.x.id)
		for _, v := range o.verdicts {
			w.Header().Add("Pellucid-Verdict", string(v))
		}
	}
}

// beat writes signs of life while f runs, which no client shows.
func (in *incoming) beat(w http.ResponseWriter, f func()) {
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() { defer close(done); f() })
	t := time.NewTicker(in.g.o.Beat)
	defer t.Stop()
	out := http.NewResponseController(w)
	for {
		select {
		case <-done:
			wait.Wait()
			return
		case <-t.C:
			if _, err := w.Write(in.x.f.AppendBeat(nil)); err == nil {
				_ = out.Flush() // the next write says that the client has gone
			}
		}
	}
}
