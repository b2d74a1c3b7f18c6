// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/binary"
	"math"
	"slices"
)

// Texts are sorted by what they are written in and by length, since the same logit says more of a
// short text than of a long one, whose worst window is the worst of many, and more of prose than of
// source code: each sort has a calibration of its own.
const (
	longFrom   = 64  // tokens from which a text is long
	longerFrom = 400 // tokens from which it is longer
	lengths    = 3

	// Sorts is how many there are.
	Sorts = 3 * lengths
)

// A Count is what the sort of a text depends on: its tokens, and those of them that hold a character
// beyond ASCII or are a mark of code.
type Count struct{ tokens, foreign, marks int }

// Add counts the token that r has found.
func (c *Count) Add(r *Reader) {
	c.tokens++
	c.foreign += one(r.foreign)
	c.marks += one(r.mark)
}

// one is 1 for true: no branch, since no processor foresees where a text has marks.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Sort is that of the text that was counted.
func (c *Count) Sort() int {
	i := 0
	switch {
	case c.foreign*4 > c.tokens:
		i = lengths
	case c.marks*8 > c.tokens:
		i = 2 * lengths
	}
	switch {
	case c.tokens >= longerFrom:
		return i + 2
	case c.tokens >= longFrom:
		return i + 1
	}
	return i
}

// A Line maps the logit of a worst window to the logit of a probability.
type Line struct{ Slope, Shift float32 }

// Rates are the false alarms, of 10,000 honest texts, for which a model knows the limit.
var Rates = [...]int{10, 20, 50, 100, 200, 500, 1000}

// A Calibration makes a probability of the logit of a text's worst window, and knows which limit
// gives which share of false alarms.
type Calibration struct {
	Lines  [Sorts]Line
	Limits [len(Rates)]float32 // the scores that so many honest texts exceed, as Rates
}

const calibrationSize = Sorts*8 + len(Rates)*4

func (c *Calibration) append(b []byte) []byte {
	for _, l := range c.Lines {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(l.Slope))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(l.Shift))
	}
	for _, p := range c.Limits {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p))
	}
	return b
}

// read sets c from calibrationSize bytes.
func (c *Calibration) read(b []byte) {
	next := func() float32 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(b))
		b = b[4:]
		return x
	}
	for i := range c.Lines {
		c.Lines[i] = Line{next(), next()}
	}
	for i := range c.Limits {
		c.Limits[i] = next()
	}
}

// usable reports whether more likeness always means a higher score, and more false alarms a lower limit.
func (c *Calibration) usable() bool {
	for _, l := range c.Lines {
		if !finite(l.Slope) || !finite(l.Shift) || l.Slope <= 0 || l.Slope > 1e3 || l.Shift < -1e3 || l.Shift > 1e3 {
			return false
		}
	}
	for i, p := range c.Limits {
		if !(p > 0 && p < 1) || i > 0 && p > c.Limits[i-1] {
			return false
		}
	}
	return true
}

// score is the probability that belongs to the logit of a worst window.
func (c *Calibration) score(logit float32, sort int) float32 {
	l := c.Lines[sort]
	return float32(1 / (1 + math.Exp(-float64(l.Slope*logit+l.Shift))))
}

// Calibration is that of the model.
func (m *Model) Calibration() Calibration { return m.calibration }

// LimitFor is the score that so many of 10,000 honest texts exceed, between Rates drawn as a line
// over the logarithm of the rate. What lies beyond them was not measured: it is false then.
func (m *Model) LimitFor(falseAlarms int) (limit float32, ok bool) {
	return Between(Rates[:], m.calibration.Limits[:], falseAlarms)
}

// Between is what LimitFor says of the limits for such rates.
func Between(rates []int, limits []float32, falseAlarms int) (limit float32, ok bool) {
	i, found := slices.BinarySearch(rates, falseAlarms)
	if found {
		return limits[i], true
	}
	if i == 0 || i == len(rates) {
		return 0, false
	}
	low, high := math.Log(float64(rates[i-1])), math.Log(float64(rates[i]))
	share := float32((math.Log(float64(falseAlarms)) - low) / (high - low))
	return limits[i-1] + (limits[i]-limits[i-1])*share, true
}

// Limit is the score from which a text counts as an injection where no setting says otherwise: one of
// 100 honest texts of families that were left out of training exceeds it.
func (m *Model) Limit() float32 {
	l, _ := m.LimitFor(100)
	return l
}
