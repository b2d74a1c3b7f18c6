// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"io"
	"net/http"
)

// OutputSchema is outputSchema.
func OutputSchema() []byte { return outputSchema }

// FeedHandler is feedHandler, without the authentication around it.
func (a *Adapter) FeedHandler() http.Handler { return a.feedHandler() }

// Peers is peers.
func (a *Adapter) Peers() []PeerState { return a.peers() }

// ParseEvent reports why parseEvent refuses body, or what its canonical hash is.
func ParseEvent(body []byte) (hash string, err error) {
	n, r := parseEvent(body)
	if r != nil {
		return "", r
	}
	return n.hash.String(), nil
}

// ReadFeed is readFeed; it returns the originals and whether it came to the end.
func ReadFeed(body io.Reader, after Cursor) (originals [][]byte, last Cursor, end bool, err error) {
	page, err := readFeed(body, after, func() {})
	last = after
	for _, e := range page.entries {
		if e.cursor <= last {
			panic("a cursor went back")
		}
		last = e.cursor
		originals = append(originals, e.original)
	}
	return originals, last, page.end, err
}

// CheckPeer reports what is wrong with p.
func CheckPeer(p Peer) error {
	_, err := newPeerFeed(p)
	return err
}

// Follow's pace and bounds, for tests of them.
const (
	PeerEvery     = peerEvery
	PeerStall     = peerStall
	PeerAnswer    = peerAnswer
	PeerEntries   = peerEntries
	PeerBytes     = peerBytes
	PeerLine      = peerLine
	PeerPatience  = peerPatience
	EntryAttempts = entryAttempts
	FeedStall     = feedStall
)

// Fetch reads one answer of a peer, as Follow does.
func Fetch(ctx context.Context, p Peer, after Cursor) (n int, err error) {
	f, err := newPeerFeed(p)
	if err != nil {
		return 0, err
	}
	defer f.close()
	page, err := f.fetch(ctx, after, 0)
	return len(page.entries), err
}
