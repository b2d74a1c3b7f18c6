// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Counters are what live lines count. Each only grows: a page says how many items are newer than it.
type Counters struct {
	Records int64 // entries of the log
	Held    int64 // items that were held since the first of the open pages asked
}

// A notice is what subscribers get.
type notice struct {
	Counters
	away bool // the store does not answer
}

// Bounds and times of the live lines.
const (
	maxStreams = 1024 // open pages of one process; others have no live lines
	maxOwn     = 128  // open pages of one person, in all sessions of that person
	readEvery  = 2 * time.Second
	readLimit  = 5 * time.Second
	beatEvery  = 15 * time.Second // a comment, so that nothing between takes the stream for dead; the session is checked too
	maxStream  = time.Hour        // then the browser opens another
)

// A hub reads the counters for all open pages of this process, while there are any. The counters come from the
// store, so that a page sees what other replicas do.
type hub struct {
	read func(ctx context.Context, since time.Time) (Counters, error)

	mu    sync.Mutex
	subs  map[chan notice]string // the person of each
	last  notice
	known bool
	end   context.CancelFunc // of the reading; nil: no page is open
	shut  bool
	gone  sync.WaitGroup
}

// join returns a channel of notices, nil if there are too many pages of all or of the person. The channel has room for one notice, and
// a newer one takes the place of one that was not read.
func (h *hub) join(person string) chan notice {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read == nil || h.shut || len(h.subs) >= maxStreams {
		return nil
	}
	own := 0
	for _, other := range h.subs {
		if other == person {
			own++
		}
	}
	if own >= maxOwn {
		return nil
	}
	ch := make(chan notice, 1)
	if h.subs == nil {
		h.subs = map[chan notice]string{}
	}
	h.subs[ch] = person
	if h.known {
		ch <- h.last
	}
	if h.end == nil {
		ctx, end := context.WithCancel(context.Background())
		h.end = end
		h.gone.Go(func() { h.run(ctx) })
	}
	return ch
}

func (h *hub) leave(ch chan notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, ch)
	if len(h.subs) == 0 && h.end != nil {
		h.end()
		h.end, h.known = nil, false
	}
}

// close ends all streams and waits for the reading to end.
func (h *hub) close() {
	h.mu.Lock()
	h.shut = true
	if h.end != nil {
		h.end()
		h.end = nil
	}
	for ch := range h.subs {
		close(ch)
	}
	h.subs = nil
	h.mu.Unlock()
	h.gone.Wait()
}

func (h *hub) run(ctx context.Context) {
	since := time.Now()
	for tick := time.NewTicker(readEvery); ; {
		limit, stop := context.WithTimeout(ctx, readLimit)
		c, err := h.read(limit, since)
		stop()
		if ctx.Err() != nil {
			tick.Stop()
			return
		}
		h.tell(notice{c, err != nil})
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// tell passes a notice on if it says something new.
func (h *hub) tell(n notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n.away {
		n.Counters = h.last.Counters
	}
	if h.known && n == h.last {
		return
	}
	h.last, h.known = n, true
	for ch := range h.subs {
		select {
		case <-ch:
		default:
		}
		ch <- n
	}
}

var liveRoutes = []route{
	{pattern: "GET events", least: Viewer, handle: func(*Console, *request) answer { return stream{} }, stream: true},
}

// A stream is the answer to a page that wants live lines: server-sent events.
type stream struct{}

func (stream) write(c *Console, w http.ResponseWriter, q *request) {
	ch := c.live.join(q.who.ID)
	if ch == nil {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "no live lines", http.StatusServiceUnavailable)
		return
	}
	defer c.live.leave(ch)
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // it may not be supported
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	beat, most := time.NewTicker(beatEvery), time.NewTimer(maxStream)
	defer beat.Stop()
	defer most.Stop()
	for {
		var err error
		select {
		case n, open := <-ch:
			if !open {
				return
			}
			err = sendNotice(w, n, q.who)
		case <-beat.C:
			if _, gone := c.still(q.Request); errors.Is(gone, ErrNoSession) {
				_, _ = fmt.Fprint(w, "event: ended\ndata: {}\n\n")
				_ = out.Flush()
				return
			}
			_, err = fmt.Fprint(w, ":\n\n")
		case <-most.C:
			return
		case <-q.Context().Done():
			return
		}
		if err != nil || out.Flush() != nil {
			return
		}
	}
}

// sendNotice writes one event. Who does not see all servers gets no number of held items.
func sendNotice(w http.ResponseWriter, n notice, who Person) error {
	data := map[string]any{"records": n.Records, "away": n.away}
	if who.AllServers {
		data["held"] = n.Held
	}
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: counts\ndata: %s\n\n", b)
	return err
}
