// SPDX-License-Identifier: Apache-2.0

package surface

// A Comparison says what a change of a pin leaves to a reviewer.
type Comparison struct {
	Name     string // what the operator calls the server; "": not known
	Waiting  int    // items that wait
	More     bool   // one of them did not wait before, or is another version
	Rejected bool   // the surface was refused as a whole, for another reason than before
}

// Compare compares two records of a server's pin, as a PinStore keeps them; before is nil for
// the first. A record from before that cannot be read is taken for nil.
func Compare(server string, before, after []byte) (c Comparison, err error) {
	pin, err := ParsePin(server, after)
	if err != nil {
		return c, err
	}
	old, _ := ParsePin(server, before)
	if len(pin.Names) > 0 {
		c.Name = pin.Names[0]
	}
	for i := range pin.Items {
		it := &pin.Items[i]
		if it.State() != Pending {
			continue
		}
		c.Waiting++
		was := old.Item(it.Key)
		c.More = c.More || was == nil || was.Pending != it.Pending
	}
	c.Rejected = pin.Rejected != "" && pin.Rejected != old.Rejected
	return c, nil
}
