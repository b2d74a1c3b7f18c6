// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/record/webhook"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A Message is a message of a webhook for programs.
type Message struct {
	ID       string `json:"id"`
	Receiver string `json:"receiver"`
	Type     string `json:"type"`
	At       string `json:"at"`
	Attempts int    `json:"attempts"`
	Failure  string `json:"failure,omitempty"`
	Next     string `json:"next,omitempty"`
	GivenUp  string `json:"given_up,omitempty"`
}

// NewMessage is a message for programs. The store is not believed: another program may have
// written what it holds.
func NewMessage(m *webhook.Message) Message {
	out := Message{ID: frame.Label(m.ID), Receiver: frame.Label(m.Receiver), Type: frame.Label(string(m.Type)),
		At: m.At.UTC().Format(time.RFC3339), Attempts: m.Tries}
	if m.Failure != "" {
		out.Failure = frame.Label(string(m.Failure))
	}
	if m.GivenUp.IsZero() {
		out.Next = m.Next.UTC().Format(time.RFC3339)
	} else {
		out.GivenUp = m.GivenUp.UTC().Format(time.RFC3339)
	}
	return out
}

// WriteMessages prints a table of messages.
func WriteMessages(dst io.Writer, list []webhook.Message) error {
	w := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RECEIVER\tTYPE\tSINCE\tATTEMPTS\tLAST FAILURE\tNEXT\tID")
	for i := range list {
		m := NewMessage(&list[i])
		next, failure := m.Next, m.Failure
		if next == "" {
			next = "given up"
		}
		if failure == "" {
			failure = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", m.Receiver, m.Type, m.At, m.Attempts, failure, next, m.ID)
	}
	return w.Flush()
}
