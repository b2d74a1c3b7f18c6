// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// This program writes the kernel of package deep for AVX2.
package main

import (
	"log"
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A tile is 2 rows of a times 4 rows of b: 8 sums, and a register for each row that is read.
const (
	tileA = 2
	tileB = 4
)

func main() {
	TEXT("dotTiles", NOSPLIT, "func(dst *int32, a, b *int16, pairs, n, k int)")
	Doc("dotTiles multiplies pairs of rows of a with 4 rows of b, each of k numbers, k a multiple",
		"of 16. The sums of the row i go to dst[i*n:i*n+4].")
	Pragma("noescape")
	dst, a, b := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	pairs, n, k := Load(Param("pairs"), GP64()), Load(Param("n"), GP64()), Load(Param("k"), GP64())
	SHLQ(Imm(1), k) // bytes of a row that is read
	SHLQ(Imm(2), n) // bytes of a row of sums
	b2, at := GP64(), GP64()
	LEAQ(Mem{Base: b, Index: k, Scale: 2}, b2)

	Label("pair")
	CMPQ(pairs, Imm(0))
	JE(LabelRef("done"))
	var sums [tileA][tileB]reg.VecVirtual
	for i := range sums {
		for j := range sums[i] {
			sums[i][j] = YMM()
			VPXOR(sums[i][j], sums[i][j], sums[i][j])
		}
	}
	XORQ(at, at)
	other := GP64() // the second row of the pair
	LEAQ(Mem{Base: a, Index: k, Scale: 1}, other)
	third, fourth := GP64(), GP64()
	second := GP64()
	LEAQ(Mem{Base: b, Index: k, Scale: 1}, second)
	MOVQ(b2, third)
	LEAQ(Mem{Base: b2, Index: k, Scale: 1}, fourth)
	Label("step")
	rows := [tileA]reg.VecVirtual{YMM(), YMM()}
	VMOVDQU(Mem{Base: a, Index: at, Scale: 1}, rows[0])
	VMOVDQU(Mem{Base: other, Index: at, Scale: 1}, rows[1])
	for j, base := range [tileB]reg.Register{b, second, third, fourth} {
		col := YMM()
		VMOVDQU(Mem{Base: base, Index: at, Scale: 1}, col)
		for i := range rows {
			product := YMM()
			VPMADDWD(col, rows[i], product)
			VPADDD(product, sums[i][j], sums[i][j])
		}
	}
	ADDQ(Imm(32), at)
	CMPQ(at, k)
	JL(LabelRef("step"))

	for i := range sums {
		s := sums[i]
		VPHADDD(s[1], s[0], s[0])
		VPHADDD(s[3], s[2], s[2])
		VPHADDD(s[2], s[0], s[0])
		upper := XMM()
		VEXTRACTI128(Imm(1), s[0], upper)
		VPADDD(upper, s[0].AsX(), upper)
		VMOVDQU(upper, Mem{Base: dst})
		ADDQ(n, dst)
	}
	LEAQ(Mem{Base: a, Index: k, Scale: 2}, a)
	DECQ(pairs)
	JMP(LabelRef("pair"))
	Label("done")
	VZEROUPPER()
	RET()
	Generate()
	for _, path := range []string{"tiles_amd64.s", "tiles_amd64.go"} {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append([]byte("// SPDX-License-Identifier: Apache-2.0\n\n"), b...), 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}
