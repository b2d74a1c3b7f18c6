// SPDX-License-Identifier: Apache-2.0

package classify

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"golang.org/x/time/rate"
)

// Options of a [Member]. Classifier and Name have to be set; the zero value of all
// else is the strict or the usual choice.
type Options struct {
	Name       string // label, from the configuration
	Classifier Classifier
	Mode       policy.Mode // Enforce or Shadow
	Fail       Fail
	Limit      float64       // P from which a text is flagged; 0: as the classifier says
	Flagged    policy.Action // of a flagged text: Hold or Deny; Allow stands for Hold

	Timeout    time.Duration // of all calls about one result; 0 = 2 s
	Concurrent int           // calls at one time; 0 = 8
	Most       int           // bytes of one result that are judged; 0 = 4 MiB
	// Rest is how long a place among Concurrent stays taken after a call, as a multiple of
	// what the call took; 0 = not at all. It keeps a classifier that computes in this
	// process from taking all of it.
	Rest float64
	// Calls a minute; 0 = 600. What is beyond it is a failure, not a delay.
	Calls int
	// Chars a day, code points; 0 = no limit. Counted by this process.
	Chars int64
	Cache Cache // nil: nothing is remembered
	// All: also what a narrow surface answers, which cannot hold an injection.
	All bool

	now func() time.Time // nil: time.Now
}

// A Cache remembers scores. Its methods may be called at the same time.
type Cache interface {
	Get(key Digest) (Score, bool)
	Put(key Digest, s Score)
}

// A Member is a classifier with its bounds. It may be used at the same time.
type Member struct {
	o       Options
	room    chan struct{}
	calls   *rate.Limiter
	breaker circuitbreaker.CircuitBreaker[any]

	mu    sync.Mutex
	day   int64 // since the epoch, UTC
	chars int64 // of that day
}

// The breaker: so many failures in a row open it, for so long.
const (
	breakAfter = 5
	breakFor   = 30 * time.Second
)

// New checks the options.
func New(o Options) (*Member, error) {
	switch {
	case o.Classifier == nil:
		return nil, errors.New("classify: no classifier")
	case CodeOf(o.Name) != Code(o.Name):
		return nil, errors.New("classify: the name is not a label")
	case CodeOf(o.Classifier.Version()) != Code(o.Classifier.Version()):
		return nil, errors.New("classify: the version is not a label")
	case o.Mode != policy.Enforce && o.Mode != policy.Shadow, o.Fail > FailClosed,
		o.Flagged != policy.Allow && o.Flagged != policy.Hold && o.Flagged != policy.Deny:
		return nil, errors.New("classify: unknown mode")
	case o.Limit < 0 || o.Limit > 1 || math.IsNaN(o.Limit):
		return nil, errors.New("classify: the limit is not between 0 and 1")
	case !(o.Rest >= 0 && o.Rest <= 100):
		return nil, errors.New("classify: the rest is not between 0 and 100")
	case o.Timeout < 0 || o.Concurrent < 0 || o.Most < 0 || o.Calls < 0 || o.Chars < 0:
		return nil, errors.New("classify: negative bound")
	}
	o.Flagged = cmp.Or(o.Flagged, policy.Hold)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Concurrent = cmp.Or(o.Concurrent, 8)
	o.Most = cmp.Or(o.Most, 4<<20)
	o.Calls = cmp.Or(o.Calls, 600)
	if o.now == nil {
		o.now = time.Now
	}
	return &Member{o: o,
		room:    make(chan struct{}, o.Concurrent),
		calls:   rate.NewLimiter(rate.Every(time.Minute/time.Duration(o.Calls)), max(1, o.Calls/4)),
		breaker: circuitbreaker.NewBuilder[any]().WithFailureThreshold(breakAfter).WithDelay(breakFor).Build(),
	}, nil
}

// Mode says whether its verdicts act.
func (m *Member) Mode() policy.Mode { return m.o.Mode }

// Raw says that it wants text as it was received.
func (m *Member) Raw() bool { return m.o.Classifier.Limits().Raw }

// All says that it judges even what a narrow surface answers.
func (m *Member) All() bool { return m.o.All }

// Skipped is the verdict on a result that nobody asks about. If why is a failure, it
// is treated as one.
func (m *Member) Skipped(why Reason) Assessment {
	v := Assessment{Name: m.o.Name, Version: m.o.Classifier.Version(), Mode: m.o.Mode, Reason: why}
	if why != Judged && why != Narrow {
		v.Action = m.o.Fail.action()
	}
	return v
}

// Judge asks about every segment of a result. It returns when all is answered, when
// its time is up, or when ctx ends; there is always a verdict.
func (m *Member) Judge(ctx context.Context, segments []Segment) Assessment {
	begin := m.o.now()
	v := Assessment{Name: m.o.Name, Version: m.o.Classifier.Version(), Mode: m.o.Mode, Segments: make([]Judgement, len(segments))}
	ctx, stop := context.WithTimeout(ctx, m.o.Timeout)
	defer stop()
	list := m.cut(segments, &v)
	m.ask(ctx, list, &v)
	m.conclude(list, &v)
	v.Latency = m.o.now().Sub(begin)
	return v
}

// cut makes chunks of the segments, and answers those that are remembered.
func (m *Member) cut(segments []Segment, v *Assessment) (list []*chunk) {
	l := m.o.Classifier.Limits()
	left := m.o.Most
	first := map[string]*chunk{} // of each text
	for i, s := range segments {
		text := s.View
		if l.Raw && s.Raw != "" {
			text = s.Raw
		}
		if text == "" {
			continue
		}
		if len(text) > left {
			// A part that was judged clean would say nothing of the rest.
			v.Segments[i].reason = TooLong
			continue
		}
		left -= len(text)
		most := l.Chars
		if l.Total > 0 && (most == 0 || most > l.Total) {
			most = l.Total
		}
		parts := []string{text}
		if l.Apart && len(s.Parts) > 0 {
			parts = s.Parts
		}
		for _, part := range parts {
			for _, piece := range chunks(part, most) {
				c := &chunk{segment: i, text: piece, same: first[piece]}
				if list = append(list, c); c.same == nil {
					first[piece] = c
					m.recall(c, v)
				}
			}
		}
	}
	return list
}

// recall measures a chunk, and answers one that is remembered.
func (m *Member) recall(c *chunk, v *Assessment) {
	c.chars = utf8.RuneCountInString(c.text)
	if m.o.Cache == nil {
		return
	}
	if c.score, c.known = m.o.Cache.Get(m.key(c.text)); c.known {
		v.Cached++
	}
}

// ask puts what is not known to the classifier.
func (m *Member) ask(ctx context.Context, list []*chunk, v *Assessment) {
	var open []*chunk
	for _, c := range list {
		if !c.known && c.same == nil {
			open = append(open, c)
		}
	}
	todo := batches(open, m.o.Classifier.Limits())
	for _, batch := range todo {
		v.Asked += len(batch)
	}
	var work sync.WaitGroup
	var mu sync.Mutex // of v.Err
	var next atomic.Int64
	calls := func() {
		for i := next.Add(1) - 1; i < int64(len(todo)); i = next.Add(1) - 1 {
			why, err := m.call(ctx, todo[i])
			for _, c := range todo[i] {
				c.why = why
			}
			if err != nil {
				mu.Lock()
				v.Err = cmp.Or(v.Err, err)
				mu.Unlock()
			}
		}
	}
	// A goroutine a call would be many for many short texts. The last is this one: for a quick
	// classifier, to start another and its stack takes as long as the call.
	for range min(len(todo), m.o.Concurrent) - 1 {
		work.Go(calls)
	}
	calls()
	work.Wait()
}

// call is one call. It fills in the scores of the batch, or says why not.
func (m *Member) call(ctx context.Context, batch []*chunk) (Reason, error) {
	select {
	case m.room <- struct{}{}:
		defer m.leave(m.o.now())
	case <-ctx.Done():
		return ended(ctx), nil
	}
	if !m.calls.AllowN(m.o.now(), 1) || !m.afford(batch) {
		return OverBudget, nil
	}
	if !m.breaker.TryAcquirePermit() {
		m.refund(batch) // or an outage would use up the day
		return Broken, nil
	}
	texts := make([]string, len(batch))
	for i, c := range batch {
		texts[i] = c.text
	}
	scores, err := m.o.Classifier.Classify(ctx, texts)
	if err == nil {
		err = check(scores, len(batch))
	}
	if err != nil {
		why := reasonOf(ctx, err)
		// A call that was given up says nothing of the classifier, but one that was to
		// try it after a pause has to say something.
		if why != Canceled || m.breaker.IsHalfOpen() {
			m.breaker.RecordFailure()
		}
		return why, err
	}
	m.breaker.RecordSuccess()
	for i, c := range batch {
		c.score, c.known = scores[i], true
		c.score.Code = codeOrNone(c.score.Code)
		if m.o.Cache != nil {
			m.o.Cache.Put(m.key(c.text), c.score)
		}
	}
	return Judged, nil
}

func codeOrNone(c Code) Code {
	if c == "" {
		return ""
	}
	return CodeOf(string(c))
}

// check says what is wrong with scores as such.
func check(scores []Score, n int) error {
	if len(scores) != n {
		return ErrMalformed
	}
	for _, s := range scores {
		if !(s.P >= 0 && s.P <= 1) {
			return ErrMalformed
		}
	}
	return nil
}

// leave gives back the place that was taken at the time began, once it has rested.
func (m *Member) leave(began time.Time) {
	if rest := time.Duration(m.o.Rest * float64(m.o.now().Sub(began))); rest > 0 {
		time.AfterFunc(rest, func() { <-m.room })
		return
	}
	<-m.room
}

// afford charges the day with the batch, unless it would be too much.
func (m *Member) afford(batch []*chunk) bool {
	if m.o.Chars == 0 {
		return true
	}
	n := charsOf(batch)
	m.mu.Lock()
	defer m.mu.Unlock()
	if day := m.o.now().Unix() / 86400; day > m.day { // a clock that goes back gives nothing back
		m.day, m.chars = day, 0
	}
	if n > m.o.Chars-m.chars {
		return false
	}
	m.chars += n
	return true
}

// refund gives back what afford has charged for a batch that was not sent.
func (m *Member) refund(batch []*chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chars = max(0, m.chars-charsOf(batch))
}

func charsOf(batch []*chunk) (n int64) {
	for _, c := range batch {
		n += int64(c.chars)
	}
	return n
}

func reasonOf(ctx context.Context, err error) Reason {
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case errors.Is(err, ErrMalformed):
		return Malformed
	case errors.Is(err, ErrContrary):
		return Contrary
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Unavailable
}

func ended(ctx context.Context) Reason {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Timeout
	}
	return Canceled
}

// conclude makes the verdict of what the chunks were given.
func (m *Member) conclude(list []*chunk, v *Assessment) {
	for _, c := range list {
		of := c
		if c.same != nil {
			of = c.same
		}
		if !of.known {
			if j := &v.Segments[c.segment]; j.reason == Judged {
				j.reason = of.why
			}
			continue
		}
		s := of.score
		if m.o.Limit > 0 {
			s.Flagged = s.P >= m.o.Limit
		}
		j := &v.Segments[c.segment]
		if s.P > j.P || s.Flagged && !j.Flagged {
			flagged := j.Flagged || s.Flagged
			j.Score = s
			j.Flagged = flagged
		}
	}
	for i := range v.Segments {
		j := &v.Segments[i]
		if j.P > v.P || v.Code == "" && j.Flagged {
			v.P, v.Code = max(v.P, j.P), j.Code
		}
		if j.Flagged {
			v.Action = max(v.Action, m.o.Flagged)
		}
		if j.reason != Judged {
			v.Action = max(v.Action, m.o.Fail.action())
			if v.Reason == Judged {
				v.Reason = j.reason
			}
		}
	}
}
