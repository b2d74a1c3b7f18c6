// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// The faults that an Audit finds beside those of the log itself.
const (
	faultGap      ledger.Fault = "is missing: it was acknowledged, and is neither in the log nor waiting for it"
	faultAltered  ledger.Fault = "is not what its writer has stored"
	faultOrder    ledger.Fault = "does not stand in the order in which its writer stored it"
	faultLast     ledger.Fault = "does not have the last link of its chain"
	faultRow      ledger.Fault = "has a row that belongs to no record"
	faultHead     ledger.Fault = "does not fit its checkpoint"
	faultUnread   ledger.Fault = "cannot be read as a record"
	faultNoRecord ledger.Fault = "is held, but the log does not say so"
	faultNoRow    ledger.Fault = "is held according to the log, but is no longer in the queue"
	faultHeld     ledger.Fault = "is not what the log says was held"
)

// An Audit checks the tables around a log while ledger.Verify checks the log: what was
// acknowledged and waits for its signature, the head, rows beyond the log, and the queue
// of held results. It may run beside processes that write.
type Audit struct {
	l       *Ledger
	key     *sequence.ChainKey
	head    sequence.Head // before the log was read
	noLog   bool
	lasts   map[string]last // by writer, before
	held    heldAudit
	indexed int64 // rows that the index has
	report  *ledger.Report
	foreign map[string]bool // writers with a key that is not here
	loose   int             // records that wait and stand in no chain
	Waiting int             // records that wait

	DecisionRows DecisionRows // as they were before the log was read
	// Each gets every record in the order of the log, and then those that wait, if it is set.
	Each func(*ledger.Statement, ReadSubjects)
}

// ReadSubjects returns what a record is about, with plain digests, unless its opening was erased.
type ReadSubjects func(context.Context) (list []ledger.Subject, kept bool)

// A last is the last link that a writer has stored of its chain.
type last struct {
	seq int64
	tag []byte
}

// Audit begins an audit. It reads the rows that must be older than those that ledger.Verify reads.
func (l *Ledger) Audit(ctx context.Context, key *sequence.ChainKey) (*Audit, error) {
	a := &Audit{l: l, key: key, foreign: map[string]bool{}}
	var err error
	if a.head, err = l.Head(ctx); errors.Is(err, sequence.ErrNoLog) {
		a.noLog, err = true, nil
	}
	if err == nil {
		a.lasts, err = l.writers(ctx)
	}
	if err == nil {
		err = a.held.read(ctx, l.s)
	}
	if err == nil {
		a.indexed, err = l.Indexed(ctx)
	}
	if err == nil {
		a.DecisionRows, err = l.DecisionRows(ctx)
	}
	return a, err
}

func (l *Ledger) writers(ctx context.Context) (map[string]last, error) {
	out := map[string]last{}
	err := l.s.EachRow(ctx, func(r *sql.Rows) error {
		var name string
		var w last
		err := r.Scan(&name, &w.seq, &w.tag)
		out[name] = w
		return err
	}, `SELECT writer, wseq, tag FROM ledger_writers`)
	return out, l.s.Fail(ctx, "read the writers", err)
}

// Empty reports whether nothing was ever stored for a log, but for its beginning: a process that
// ends in its first moment leaves a head without records.
func (a *Audit) Empty() bool {
	begun := a.head.Size == 0 && a.head.Checkpoint == nil
	return (a.noLog || begun) && len(a.lasts) == 0
}

// Rest checks the other tables after the log was read, and adds its faults to the report.
func (a *Audit) Rest(ctx context.Context, r *ledger.Report) error {
	a.report = r
	for _, step := range []func(context.Context) error{a.chains, a.beyond, a.tiles, a.headFits, a.heldFits, a.indexFits} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if n := len(a.foreign); n > 0 {
		r.NotChecked = append(r.NotChecked, fmt.Sprintf("the chains of %d writers: their key is that of another installation", n))
	}
	if a.loose > 0 {
		r.NotChecked = append(r.NotChecked, fmt.Sprintf("%d records that wait: they were stored without a chain, as earlier releases did", a.loose))
	}
	return nil
}

// Problem adds a fault to the report.
func (a *Audit) Problem(place string, fault ledger.Fault) {
	if len(a.report.Problems) == ledger.MaxProblems {
		a.report.More++
		return
	}
	a.report.Problems = append(a.report.Problems, ledger.Problem{Place: place, Index: -1, Fault: fault})
}

// writerName is the name of a writer for a report. The database may contain any bytes, so it is escaped.
func writerName(w string) string {
	if len(w) > 64 || strings.Trim(w, "0123456789abcdef-") != "" {
		return "of another form"
	}
	return w
}

func linkPlace(writer string, seq int64) string {
	return "acknowledged record " + strconv.FormatInt(seq, 10) + " of writer " + writerName(writer)
}

// A walk follows the chain of one writer.
type walk struct {
	seq int64
	mac []byte
}

// chains follows every chain from its first link to its last: first what waits, so that a
// record which is signed meanwhile is not missed, then what is in the log.
func (a *Audit) chains(ctx context.Context) error {
	waiting, err := a.pending(ctx)
	if err != nil {
		return err
	}
	if err := a.newer(ctx); err != nil {
		return err
	}
	walks := map[string]*walk{}
	if err := a.integrated(ctx, walks); err != nil {
		return err
	}
	for writer, links := range waiting {
		slices.SortFunc(links, func(x, y sequence.Link) int { return int(x.Seq - y.Seq) })
		for _, k := range links {
			a.step(walks, k)
		}
		delete(waiting, writer)
	}
	now, err := a.l.writers(ctx)
	if err != nil {
		return err
	}
	for writer, was := range a.lasts {
		is, there := now[writer]
		w := walks[writer]
		if w == nil {
			w = &walk{}
			walks[writer] = w
		}
		if there && w.seq < was.seq {
			a.Problem(linkPlace(writer, w.seq+1), faultGap)
		}
		if there && is.seq < was.seq {
			a.Problem("writer "+writerName(writer), faultLast)
		}
	}
	for writer, w := range walks {
		is, there := now[writer]
		fits := there && is.seq >= w.seq
		if fits && is.seq == w.seq && a.key.Owns(writer) {
			fits = bytes.Equal(is.tag, a.key.Tag(sequence.Link{Writer: writer, Seq: w.seq, MAC: w.mac}))
		}
		if !fits {
			a.Problem("writer "+writerName(writer), faultLast)
		}
	}
	return nil
}

// newer takes note of the records that came into the log while it was read: they no longer
// wait, and were not among those that ledger.Verify saw.
func (a *Audit) newer(ctx context.Context) error {
	first := a.head.Size
	if c := a.report.Checkpoint; c != nil {
		first = c.Size
	}
	for {
		list, err := a.l.Entries(ctx, first, 1000)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		for i, envelope := range list {
			// What cannot be read is for the next verification to report.
			if st, err := ledger.UnverifiedStatement(envelope); err == nil {
				a.addRecord(st, told{index: first + int64(i)})
			}
		}
		first += int64(len(list))
	}
}

// step follows one link, and reports a gap before it.
func (a *Audit) step(walks map[string]*walk, k sequence.Link) {
	w := walks[k.Writer]
	if w == nil {
		w = &walk{}
		walks[k.Writer] = w
	}
	switch {
	case k.Seq <= w.seq: // signed since it was read, or stored twice
		return
	case k.Seq > w.seq+1:
		a.Problem(linkPlace(k.Writer, w.seq+1), faultGap)
	case !bytes.Equal(k.Prev, w.mac):
		a.Problem(linkPlace(k.Writer, k.Seq), faultAltered)
	}
	w.seq, w.mac = k.Seq, k.MAC
}

// pending checks each record that waits, and returns the links by writer.
func (a *Audit) pending(ctx context.Context) (map[string][]sequence.Link, error) {
	links := map[string][]sequence.Link{}
	err := a.l.s.EachRow(ctx, func(r *sql.Rows) error {
		var p sequence.Pending
		if err := r.Scan(&p.Seq, &p.Record, &p.Link.Writer, &p.Link.Seq, &p.Link.Prev, &p.Link.MAC); err != nil {
			return err
		}
		a.Waiting++
		k := p.Link
		place := "waiting record " + strconv.FormatInt(p.Seq, 10)
		sealed, err := ledger.ReadSealed(bytes.Clone(p.Record))
		if err != nil {
			a.Problem(place, faultUnread)
		} else {
			a.addRecord(sealed.Parsed, told{index: -1, opening: sealed.Opening})
		}
		switch {
		case k.Writer == "":
			a.loose++
			return nil
		case !a.key.Owns(k.Writer):
			a.foreign[k.Writer] = true
		case !a.key.Intact(&p):
			a.Problem(place, faultAltered)
		}
		before := links[k.Writer]
		if n := len(before); n > 0 && before[n-1].Seq >= k.Seq {
			a.Problem(place, faultOrder)
		}
		links[k.Writer] = append(before, sequence.Link{Writer: k.Writer, Seq: k.Seq, Prev: bytes.Clone(k.Prev), MAC: bytes.Clone(k.MAC)})
		return nil
	}, `SELECT seq, record, writer, wseq, prev, mac FROM ledger_pending ORDER BY seq`)
	return links, a.l.s.Fail(ctx, "read what waits", err)
}

// integrated follows the links whose records are in the log.
func (a *Audit) integrated(ctx context.Context, walks map[string]*walk) error {
	err := a.l.s.EachRow(ctx, func(r *sql.Rows) error {
		var k sequence.Link
		var index int64
		var envelope []byte
		if err := r.Scan(&k.Writer, &k.Seq, &index, &k.MAC, &envelope); err != nil {
			return err
		}
		if w := walks[k.Writer]; w != nil {
			k.Prev = w.mac
		}
		w := walks[k.Writer]
		follows := k.Seq == 1 && w == nil || w != nil && k.Seq == w.seq+1
		a.step(walks, k)
		e, err := ledger.ParseEnvelope(envelope)
		switch {
		case !a.key.Owns(k.Writer):
			a.foreign[k.Writer] = true
		case err != nil, follows && !a.key.Holds(k, e.Statement): // behind a gap it cannot be computed
			a.Problem(linkPlace(k.Writer, k.Seq), faultAltered)
		}
		return nil
	}, `SELECT c.writer, c.wseq, c.idx, c.mac, l.envelope FROM ledger_chain c LEFT JOIN ledger_leaves l ON l.idx = c.idx ORDER BY c.writer, c.wseq`)
	return a.l.s.Fail(ctx, "read the chains", err)
}

// beyond finds rows that no record of the log has.
func (a *Audit) beyond(ctx context.Context) error {
	var found []string
	var rows []int64
	for _, table := range []string{"ledger_entries", "ledger_leaves"} {
		err := a.l.s.EachRow(ctx, func(r *sql.Rows) error {
			var index int64
			err := r.Scan(&index)
			found, rows = append(found, table), append(rows, index)
			return err
		}, `SELECT idx FROM `+table+` WHERE idx < 0 OR idx >= ? ORDER BY idx`, a.head.Size)
		if err != nil {
			return a.l.s.Fail(ctx, "read rows", err)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	now, err := a.l.Head(ctx)
	if err != nil && !errors.Is(err, sequence.ErrNoLog) {
		return err
	}
	for i, index := range rows {
		if index < 0 || index >= now.Size {
			a.Problem("table "+found[i]+" at index "+strconv.FormatInt(index, 10), faultRow)
		}
	}
	return nil
}

// tiles finds tiles that the log does not have, and such as are longer than it makes them.
func (a *Audit) tiles(ctx context.Context) error {
	type tile struct{ level, n, size int64 }
	var all []tile
	err := a.l.s.EachRow(ctx, func(r *sql.Rows) error {
		var t tile
		err := r.Scan(&t.level, &t.n, &t.size)
		all = append(all, t)
		return err
	}, `SELECT level, n, length(hashes) FROM ledger_tiles`)
	if err != nil {
		return a.l.s.Fail(ctx, "read tiles", err)
	}
	now, err := a.l.Head(ctx)
	if err != nil && !errors.Is(err, sequence.ErrNoLog) {
		return err
	}
	for _, t := range all {
		least, most := tileWidth(a.head.Size, t.level, t.n), tileWidth(now.Size, t.level, t.n)
		if n := t.size / 32; most == 0 || t.size%32 != 0 || n < least || n > most {
			a.Problem(fmt.Sprintf("table ledger_tiles at level %d, number %d", t.level, t.n), faultRow)
		}
	}
	return nil
}

// tileWidth is how many hashes a tile of a log of that size has; 0: there is no such tile.
func tileWidth(size, level, n int64) int64 {
	if level < 0 || level > 7 || n < 0 {
		return 0
	}
	return min(256, max(0, size>>(8*level)-n*256))
}

// headFits compares the columns of the head with its checkpoint and with the records.
func (a *Audit) headFits(ctx context.Context) error {
	now, err := a.l.Head(ctx)
	if errors.Is(err, sequence.ErrNoLog) {
		if a.Waiting == 0 && len(a.lasts) > 0 || !a.noLog {
			a.Problem("table ledger_head", ledger.FaultMissing)
		}
		return nil
	} else if err != nil {
		return err
	}
	lines := strings.SplitN(string(now.Checkpoint), "\n", 3)
	size := "0"
	if len(lines) == 3 {
		size = lines[1]
	}
	fits := size == strconv.FormatInt(now.Size, 10) && (now.Checkpoint == nil || lines[0] == now.Origin) && ledger.ValidOrigin(now.Origin)
	if k := a.report.Keys; now.Size == a.head.Size && len(k) > 0 && a.report.OK() {
		fits = fits && now.Signer == k[len(k)-1].ID()
	}
	if !fits {
		a.Problem("table ledger_head", faultHead)
	}
	return nil
}
