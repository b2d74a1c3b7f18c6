// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/lab/measured"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

const (
	mostSessions = 64
	callWait     = 30 * time.Second
	startWait    = 20 * time.Second
)

// usage is what a process has used so far.
type usage struct {
	CPU time.Duration
	RSS int64 // bytes; 0 = unknown
}

// process is a child that plays a role.
type process struct {
	*child.Process
	base string // of its own HTTP server
}

// start starts self with args and waits until it says where it is.
func start(args []string) (*process, error) {
	at := make(chan string, 1)
	p, err := child.Start(child.Command{Args: args, Stderr: func(line string) {
		if addr, ok := strings.CutPrefix(line, announce); ok {
			select {
			case at <- addr:
			default:
			}
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("speed: %w", err)
	}
	select {
	case addr := <-at:
		return &process{p, "http://" + addr}, nil
	case <-p.Done():
		return nil, fmt.Errorf("speed: a child ended: %s", p.Exit())
	case <-time.After(startWait):
		p.Stop(context.Background())
		return nil, errors.New("speed: a child does not start")
	}
}

func (p *process) stop() {
	p.Stdin.Close()
	p.Stop(context.Background())
}

func (p *process) usage() (u usage, err error) {
	resp, err := http.Get(p.base + "/usage")
	if err != nil {
		return u, fmt.Errorf("speed: %w", err)
	}
	defer resp.Body.Close()
	return u, json.NewDecoder(resp.Body).Decode(&u)
}

// A session makes calls one after the other.
type session interface {
	call(script string, size int) error
}

// callBody is a call that is answered with a text of that script and size.
func callBody(dst []byte, id int, script string, size int) []byte {
	return fmt.Appendf(dst, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"script":"%s","bytes":%d}}}`,
		id, toolName, script, size)
}

// checkAnswer demands that an answer holds the text.
func checkAnswer(got []byte, size int) error {
	if len(got) < size || !bytes.Contains(got[:min(len(got), 400)], []byte(`"content"`)) {
		return fmt.Errorf("speed: not the answer: %d bytes: %s", len(got), finding.Quote(string(got[:min(len(got), 64)])))
	}
	return nil
}

// httpSession is a legacy session over streamable HTTP.
type httpSession struct {
	measured.Session
	n    int
	body []byte
}

func openHTTP(client *http.Client, url string) (*httpSession, error) {
	s := &httpSession{Session: measured.Session{Client: client, URL: url}}
	return s, s.Open()
}

func (s *httpSession) call(script string, size int) error {
	s.n++
	s.body = callBody(s.body[:0], s.n, script, size)
	if _, err := s.Post(s.body); err != nil {
		return err
	}
	return checkAnswer(s.Answer.Bytes(), size)
}

// lineSession is one over pipes.
type lineSession struct {
	w    io.Writer
	r    *bufio.Reader
	n    int
	body []byte
	line []byte
}

func openLines(p *process) (*lineSession, error) {
	s := &lineSession{w: p.Stdin, r: bufio.NewReaderSize(p.Stdout, 256<<10)}
	if err := s.exchange([]byte(measured.Initialize + "\n")); err != nil {
		return nil, err
	}
	_, err := io.WriteString(s.w, measured.Initialized+"\n")
	return s, err
}

func (s *lineSession) exchange(line []byte) error {
	if _, err := s.w.Write(line); err != nil {
		return fmt.Errorf("speed: %w", err)
	}
	for s.line = s.line[:0]; ; {
		part, err := s.r.ReadSlice('\n')
		s.line = append(s.line, part...)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("speed: %w", err)
		}
	}
}

func (s *lineSession) call(script string, size int) error {
	s.n++
	s.body = append(callBody(s.body[:0], s.n, script, size), '\n')
	if err := s.exchange(s.body); err != nil {
		return err
	}
	return checkAnswer(s.line, size)
}

// lap is what one way did in one slice of time.
type lap struct {
	times   []time.Duration
	elapsed time.Duration
}

// drive lets sessions call for a while, all at the same time, each with a pause behind
// every call.
func drive(sessions []session, script string, size int, slice, pause time.Duration, most int) (l lap, err error) {
	var mu sync.Mutex
	var work sync.WaitGroup
	begin := time.Now()
	for _, s := range sessions {
		work.Go(func() {
			var times []time.Duration
			var failed error
			for at := time.Now(); failed == nil && at.Sub(begin) < slice && (most == 0 || len(times) < most); {
				failed = s.call(script, size)
				now := time.Now()
				times = append(times, now.Sub(at))
				if pause > 0 {
					time.Sleep(pause)
					now = time.Now()
				}
				at = now
			}
			mu.Lock()
			defer mu.Unlock()
			l.times = append(l.times, times...)
			err = errors.Join(err, failed)
		})
	}
	work.Wait()
	l.elapsed = time.Since(begin)
	return l, err
}

func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

func sortTimes(t []time.Duration) []time.Duration {
	slices.Sort(t)
	return t
}
