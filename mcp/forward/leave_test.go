// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestFarewell: a replica that has said farewell gets no more requests, and says it only after those on their way
// have their answers. Its sessions are taken over at once.
func TestFarewell(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	token, s := c.begin(a)
	came, answer := make(chan bool), make(chan bool)
	a.serve = func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		close(came)
		<-answer
		fmt.Fprint(w, "late")
	}
	got := make(chan string, 1)
	go func() {
		status, body := c.ask(b, http.MethodPost, token, call)
		got <- fmt.Sprint(status, " ", body)
	}()
	<-came
	a.Leave()
	said := make(chan bool)
	go func() { a.Farewell(); close(said) }()
	select {
	case <-said:
		t.Error("farewell while a request is on its way")
	case <-time.After(100 * time.Millisecond):
	}
	close(answer)
	if got := <-got; got != "200 late" {
		t.Error(got)
	}
	<-said
	if !b.hasEnded(a.member.ID()) {
		t.Fatal("the other replica does not know it")
	}
	before := a.served.Load()
	if status, _ := c.ask(b, http.MethodPost, token, call); status != 200 || c.db.owner(s.ID()) != b.member.ID() || a.served.Load() != before {
		t.Errorf("%d, owner %s, %d requests at the one that has ended", status, c.db.owner(s.ID()), a.served.Load()-before)
	}
	if b.ended(t.Context(), string(bytes.Repeat([]byte("x"), 1000))); len(b.gone) != 1 {
		t.Error("what is not an id is remembered")
	}
}
