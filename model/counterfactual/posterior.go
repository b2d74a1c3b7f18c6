// SPDX-License-Identifier: Apache-2.0

package counterfactual

// A posterior is what the answers so far say of where, in an order of units, the
// shortest sufficient prefix ends. Together with a core that is known already, the
// prefix of k units suffices and that of k-1 does not; either because the k-th unit
// suffices with the core alone, or because it takes others before it too. Each
// answer counts for as much as the model's rates say, so that a wrong one is
// outweighed by those that follow and nothing has to begin again.
//
// It computes in integers: a record has to replay on every machine.
type posterior struct {
	prior []uint64
	alone []int // by k-1: the log-likelihood that the unit suffices alone, against no prefix at all
	joint []int // the same, that it takes others before it
}

// What is supposed before the first answer. Half is on the first suspect. The rest
// falls as 1/k: each doubling of the prefix is as likely as the one before, so that
// an order that is worth nothing costs little.
const (
	priorFirst = 1 << 20
	priorJoint = 16  // one place in so many takes others too
	priorNone  = 256 // once in so many no prefix suffices
)

func newPosterior(n int) *posterior {
	p := &posterior{prior: make([]uint64, n), alone: make([]int, n), joint: make([]int, n)}
	var rest uint64
	for k := 1; k < n; k++ {
		p.prior[k] = priorFirst / uint64(k+1)
		rest += p.prior[k]
	}
	for k := 1; k < n; k++ {
		p.prior[k] = max(1, p.prior[k]*priorFirst/rest)
	}
	if n > 0 {
		p.prior[0] = priorFirst
	}
	return p
}

// prefix takes an answer of weight w about the first i units.
func (p *posterior) prefix(i, w int) {
	for k := range i {
		p.alone[k] += w
		p.joint[k] += w
	}
}

// unit takes an answer of weight w about the k-th unit alone.
func (p *posterior) unit(k, w int) { p.alone[k-1] += w }

// refute takes it that the k-th unit takes no others.
func (p *posterior) refute(k int) { p.joint[k-1] = -1 << 40 }

// A belief is a posterior in short. Its weights are in proportion to each other.
type belief struct {
	place        int    // the likeliest, from 1; 0 if there are no units
	alone, joint uint64 // of place
	none         uint64 // no prefix suffices
	total        uint64
	// median is the prefix of which it is least certain whether it suffices.
	median int
}

func (p *posterior) belief() (b belief) {
	top := 0
	for k := range p.alone {
		top = max(top, p.alone[k])
		if k > 0 { // before the first unit there are no others
			top = max(top, p.joint[k])
		}
	}
	var cache [2]struct {
		x int
		e uint64
	}
	weight := func(which int, prior uint64, x int) uint64 {
		c := &cache[which]
		if c.e == 0 || c.x != x {
			c.x, c.e = x, decay(top-x)
		}
		return prior * c.e >> 16
	}
	sums := make([]uint64, len(p.prior))
	b.none = (2 * priorFirst / priorNone) * decay(top) >> 16
	for k, prior := range p.prior {
		alone := weight(0, prior, p.alone[k])
		var joint uint64
		if k > 0 {
			joint = weight(1, prior/priorJoint, p.joint[k])
		}
		if alone+joint > b.alone+b.joint || b.place == 0 {
			b.place, b.alone, b.joint = k+1, alone, joint
		}
		b.total += alone + joint
		sums[k] = b.total
	}
	b.total += b.none
	for k, sum := range sums {
		if 2*sum >= b.total || k == len(sums)-1 {
			b.median = k + 1
			if k > 0 && b.total-min(2*sums[k-1], b.total) < 2*sum-min(b.total, 2*sum) {
				b.median = k
			}
			break
		}
	}
	return b
}

// decay is exp(-x/1000), where 1<<32 is one.
func decay(x int) uint64 {
	if x >= 1<<len(decays) {
		return 0
	}
	e := uint64(1) << 32
	for i := range decays {
		if x>>i&1 == 1 {
			e = e * decays[i] >> 32
		}
	}
	return e
}

// decays are 1<<32 × exp(-1/1000), exp(-2/1000), exp(-4/1000) and so on.
var decays = [...]uint64{
	4290674475, 4286385946, 4277821741, 4260744631, 4226794655,
	4159704096, 4028700796, 3778941489, 3324914438, 2573955809,
	1542560875, 554019132, 71464385, 1189103, 329,
}
