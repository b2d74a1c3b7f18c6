// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"iter"
	"slices"
)

// batch handles an array of messages. Nothing of it goes on before all of it
// has been found acceptable.
func (x *exchange) batch(body []byte) {
	version, once := single(x.r.Header, headerVersion)
	if !once || modern(version) {
		x.reject(ID{}, errBatch)
		return
	}
	s, bad := x.session(version, nil)
	if bad == nil && !HasBatches(s.negotiated()) {
		bad = &errBatch
	}
	if bad != nil {
		x.reject(ID{}, *bad)
		return
	}
	all, requests, err := sortBatch(decodeBatch(body, x.f.opt.limits))
	switch {
	case err != nil:
		x.violation(err)
		return
	case slices.ContainsFunc(requests, func(m *Message) bool { return m.Method == methodInitialize }):
		x.reject(ID{}, errBatchInit)
		return
	}
	if len(requests) > 0 && x.f.refuses() {
		x.reject(ID{}, errEnding)
		return
	}
	for _, m := range all {
		m.Caller = x.claimsOf()
		if bad := x.note(s, m); bad != nil {
			x.reject(ID{}, *bad)
			return
		}
	}
	s.enter()
	defer s.leave()
	var st *stream
	if len(requests) > 0 {
		if st, err = s.open(requests...); err != nil {
			x.reject(ID{}, errDuplicateID)
			return
		}
	}
	if st == nil {
		if !x.tell(s, ID{}, all...) {
			x.reject(ID{}, errNoSession)
		}
		return
	}
	p := pump{exchange: x, st: st, turn: 1, stream: true}
	if !p.ask(all...) {
		x.reject(ID{}, errNoSession)
	}
}

func sortBatch(in iter.Seq2[*Message, error]) (all, requests []*Message, err error) {
	for m, err := range in {
		if err != nil {
			return nil, nil, err
		}
		all = append(all, m)
		if m.Kind == Request {
			requests = append(requests, m)
		}
	}
	return all, requests, nil
}
