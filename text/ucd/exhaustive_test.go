// SPDX-License-Identifier: Apache-2.0

package ucd

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"testing"
)

// TestExhaustive runs each function over every scalar value and compares one
// accumulated hash with a golden value. The values were taken while the
// functions agreed with NormalizationTest.txt, x/text, ICU 72 and the generator;
// they hold on a machine that has none of these. A change is a change of what
// Pellucid does to text: it must say so.
func TestExhaustive(t *testing.T) {
	var b Buffer
	var text []byte
	texts := func(f func(dst []byte, s string) []byte) func(hash.Hash) {
		return func(h hash.Hash) {
			for r := range allRunes {
				text = append(f(text[:0], string(r)), 0)
				h.Write(text)
			}
		}
	}
	facts := func(f func(dst []byte, r rune) []byte) func(hash.Hash) {
		return texts(func(dst []byte, s string) []byte {
			r, _, _ := Decode(s)
			return f(dst, r)
		})
	}
	decomposed := func(f Form) func(hash.Hash) {
		return texts(func(dst []byte, s string) []byte {
			b.Reset()
			b.Decompose(f, s, 0)
			return b.AppendTo(dst)
		})
	}
	for _, c := range []struct {
		name, want string
		run        func(hash.Hash)
	}{
		{"nfc", "6e0aaa17a82be5b6f410942f1f99ae77832fb630e98780c6eaf6779ab278235d", texts(func(dst []byte, s string) []byte { return b.Append(dst, NFC, s) })},
		{"nfkc", "44308dc11eaed4c167c9c68f9dad7518efac200b740cbdcb2875118c02b7c040", texts(func(dst []byte, s string) []byte { return b.Append(dst, NFKC, s) })},
		{"nfd", "e47f86d7e3d5f5990095fdb2c04515348d94089ee40333d9c45f403bfe89014b", decomposed(NFC)},
		{"nfkd", "bbe53f3922aa0961d8455768d98f220989d9848875a32135546fe3393692079f", decomposed(NFKC)},
		{"skeleton", "4dca77c948e6bf06b60d0a010322569a606f4df75cfd6830a3fc95949999ad57", texts(b.AppendSkeleton)},
		{"prototype", "5942fc4174c9e471fc909e6dd3efba65d3a5904ece5780c4918b865593620db4", facts(func(dst []byte, r rune) []byte { return append(dst, Prototype(r)...) })},
		{"ascii-prototype", "883390ecb6d3de786f26f285776c097f92f85e2a94699608060af54b266bb033", facts(func(dst []byte, r rune) []byte {
			c, ok := ASCIIPrototype(r)
			return append(dst, c, byte(count(ok)))
		})},
		{"facts", "55c38e45a1a6baed9d2a8cf9084b194416b791ff7ed14f59fbc6e29825ac60b3", facts(func(dst []byte, r rune) []byte { return binary.BigEndian.AppendUint16(dst, uint16(Of(r))) })},
		{"class", "98909266759e26771f5027608e523382b883006f9af93810bb910dd6c4f69fca", facts(func(dst []byte, r rune) []byte {
			return append(append(dst, ClassOf(r).String()...), Substitute(r))
		})},
		{"ccc", "bb1178429be1b1772815c6d987a3e9627abc53cc671aa96dffc0a8945775c5f7", facts(func(dst []byte, r rune) []byte { return append(dst, CCC(r)) })},
		{"script", "62755e6f0ce63ef0fa2097171dd857f716d43feabd5789d8b310ac279db3dbe2", facts(func(dst []byte, r rune) []byte {
			for _, word := range Extensions(r) {
				dst = binary.BigEndian.AppendUint64(dst, word)
			}
			return append(dst, ScriptOf(r).String()...)
		})},
		// The value that the scripts had when they were of Version.
		{"pinned-script", "5be2b12fce2931576aa3879b396dccb3fe7f513a4a16d285faf0f6fb7bddd3f4", facts(func(dst []byte, r rune) []byte {
			for _, word := range PinnedExtensions(r) {
				dst = binary.BigEndian.AppendUint64(dst, word)
			}
			return append(dst, PinnedScript(r).String()...)
		})},
		{"standard-variants", "246200506eb2158af195886e85059c2c3cbd3bafe28986a1d4d197ef19840325", func(h hash.Hash) {
			for r := range allRunes {
				for selector := rune(0xFE00); selector <= 0xFE0F; selector++ {
					if StandardVariant(r, selector) {
						fmt.Fprintf(h, "%X %X\n", r, selector)
					}
				}
			}
		}},
		{"layout", "e860b01724c89bd00074475ef70f491416783d00184e56d560d8dc5f39e87078", facts(func(dst []byte, r rune) []byte { return append(dst, lookupLayout(r)) })},
		{"emoji", "027584bf2d0eb044e6418873e26305146f31dcce82b349db1382f0c31db68fa2", func(h hash.Hash) {
			for s := range allEmoji {
				fmt.Fprintf(h, "%s\n", s)
			}
		}},
		{"composition", "1723a5adf57d4bd8f41a04b639642625c2d5e414d2ca58f735a27f09f026f79b", func(h hash.Hash) {
			// Every character that composes onwards before every one that joins.
			var firsts []rune
			for _, e := range compositions {
				firsts = append(firsts, rune(e.first))
			}
			slices.Sort(firsts)
			firsts = slices.Compact(firsts)
			for r := range allRunes {
				for i := 0; i < len(firsts) && Of(r)&NFCJoins != 0; i++ {
					text = b.Append(text[:0], NFC, string(firsts[i])+string(r))
					h.Write(text)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := sha256.New()
			c.run(h)
			if got := fmt.Sprintf("%x", h.Sum(nil)); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
}
