// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Two numbers of a row of a, at p, times those of 16 columns in Y12 and Y13, into the sums c and d.
#define MADD(p, c, d) \
	VPBROADCASTD p, Y14;         \
	VPMADDWD     Y12, Y14, Y15;  \
	VPADDD       Y15, c, c;      \
	VPMADDWD     Y13, Y14, Y14;  \
	VPADDD       Y14, d, d

// The same as VPDPWSSD of AVX-VNNI, which the assembler does not know. first and second name the sums.
#define DOT(p, high, first, second) \
	VPBROADCASTD p, Y14; \
	BYTE $0xC4; BYTE $high; BYTE $0x0D; BYTE $0x52; BYTE $first; \
	BYTE $0xC4; BYTE $high; BYTE $0x0D; BYTE $0x52; BYTE $second

#define MADDS \
	MADD((R13), Y0, Y1);         \
	MADD((R13)(R10*1), Y2, Y3);  \
	MADD((R13)(R10*2), Y4, Y5);  \
	MADD((R13)(R11*1), Y6, Y7);  \
	MADD((R13)(R10*4), Y8, Y9);  \
	MADD((R13)(R12*1), Y10, Y11)

#define DOTS \
	DOT((R13), 0xC2, 0xC4, 0xCD);         \
	DOT((R13)(R10*1), 0xC2, 0xD4, 0xDD);  \
	DOT((R13)(R10*2), 0xC2, 0xE4, 0xED);  \
	DOT((R13)(R11*1), 0xC2, 0xF4, 0xFD);  \
	DOT((R13)(R10*4), 0x42, 0xC4, 0xCD);  \
	DOT((R13)(R12*1), 0x42, 0xD4, 0xDD)

#define BEGIN6 \
	SHLQ  $2, R8;               \
	LEAQ  (R9)(R9*1), R10;      \
	LEAQ  (R10)(R10*2), R11;    \
	LEAQ  (R10)(R10*4), R12;    \
	SHRQ  $1, R9

#define CLEAR6 \
	VPXOR Y0, Y0, Y0;     \
	VPXOR Y1, Y1, Y1;     \
	VPXOR Y2, Y2, Y2;     \
	VPXOR Y3, Y3, Y3;     \
	VPXOR Y4, Y4, Y4;     \
	VPXOR Y5, Y5, Y5;     \
	VPXOR Y6, Y6, Y6;     \
	VPXOR Y7, Y7, Y7;     \
	VPXOR Y8, Y8, Y8;     \
	VPXOR Y9, Y9, Y9;     \
	VPXOR Y10, Y10, Y10;  \
	VPXOR Y11, Y11, Y11;  \
	MOVQ  SI, R13;        \
	MOVQ  DX, BX;         \
	MOVQ  R9, AX

#define PUT(c, d) \
	VMOVDQU c, (DI);    \
	VMOVDQU d, 32(DI);  \
	ADDQ    R8, DI

#define PUT6 \
	PUT(Y0, Y1);              \
	PUT(Y2, Y3);              \
	PUT(Y4, Y5);              \
	PUT(Y6, Y7);              \
	PUT(Y8, Y9);              \
	PUT(Y10, Y11);            \
	LEAQ (SI)(R11*2), SI;     \
	DECQ CX

#define WEIGHTS6 \
	VPMOVSXBW (BX), Y12;    \
	VPMOVSXBW 16(BX), Y13;  \
	ADDQ      $32, BX

#define NUMBERS6 \
	VMOVDQU (BX), Y12;    \
	VMOVDQU 32(BX), Y13;  \
	ADDQ    $64, BX

#define ARGUMENTS \
	MOVQ dst+0(FP), DI;     \
	MOVQ a+8(FP), SI;       \
	MOVQ b+16(FP), DX;      \
	MOVQ tiles+24(FP), CX;  \
	MOVQ n+32(FP), R8;      \
	MOVQ k+40(FP), R9

// A tile of 6 rows and 16 columns.
#define PANEL6(LOAD, PRODUCTS) \
	ARGUMENTS;     \
	BEGIN6;        \
tile:              \
	CLEAR6;        \
step:              \
	LOAD;          \
	PRODUCTS;      \
	ADDQ $4, R13;  \
	DECQ AX;       \
	JNZ  step;     \
	PUT6;          \
	JNZ  tile;     \
	VZEROUPPER;    \
	RET

// func weightsAVX2(dst *int32, a *int16, b *byte, tiles, n, k int)
TEXT ·weightsAVX2(SB), NOSPLIT, $0-48
	PANEL6(WEIGHTS6, MADDS)

// func numbersAVX2(dst *int32, a *int16, b *int16, tiles, n, k int)
TEXT ·numbersAVX2(SB), NOSPLIT, $0-48
	PANEL6(NUMBERS6, MADDS)

// func weightsVNNI(dst *int32, a *int16, b *byte, tiles, n, k int)
TEXT ·weightsVNNI(SB), NOSPLIT, $0-48
	PANEL6(WEIGHTS6, DOTS)

// func numbersVNNI(dst *int32, a *int16, b *int16, tiles, n, k int)
TEXT ·numbersVNNI(SB), NOSPLIT, $0-48
	PANEL6(NUMBERS6, DOTS)

#define DOT512(p, c, d) \
	VPBROADCASTD p, Z30;        \
	VPDPWSSD     Z28, Z30, c;   \
	VPDPWSSD     Z29, Z30, d

#define DOTS512 \
	DOT512((R12), Z0, Z1);           \
	DOT512((R12)(R10*1), Z2, Z3);    \
	DOT512((R12)(R10*2), Z4, Z5);    \
	DOT512((R12)(R11*1), Z6, Z7);    \
	DOT512((R12)(R10*4), Z8, Z9);    \
	DOT512((R13), Z10, Z11);         \
	DOT512((R13)(R10*1), Z12, Z13);  \
	DOT512((R13)(R10*2), Z14, Z15);  \
	DOT512((R13)(R11*1), Z16, Z17);  \
	DOT512((R13)(R10*4), Z18, Z19);  \
	DOT512((R14), Z20, Z21);         \
	DOT512((R14)(R10*1), Z22, Z23);  \
	DOT512((R14)(R10*2), Z24, Z25);  \
	DOT512((R14)(R11*1), Z26, Z27);  \
	ADDQ $4, R12;                    \
	ADDQ $4, R13;                    \
	ADDQ $4, R14

#define CLEAR512(a, b, c, d) \
	VPXORD a, a, a;  \
	VPXORD b, b, b;  \
	VPXORD c, c, c;  \
	VPXORD d, d, d

#define PUT512(c, d) \
	VMOVDQU32 c, (DI);    \
	VMOVDQU32 d, 64(DI);  \
	ADDQ      R8, DI

#define WEIGHTS512 \
	VPMOVSXBW (BX), Z28;         \
	VPMOVSXBW (BX)(R15*1), Z29;  \
	ADDQ      $32, BX

#define NUMBERS512 \
	VMOVDQU32 (BX), Z28;         \
	VMOVDQU32 (BX)(R15*2), Z29;  \
	ADDQ      $64, BX

// A tile of 14 rows and the 32 columns of two panels, R15 numbers apart.
#define PANEL14(LOAD) \
	ARGUMENTS;                      \
	SHLQ $2, R8;                    \
	LEAQ (R9)(R9*1), R10;           \
	LEAQ (R10)(R10*2), R11;         \
	MOVQ R9, R15;                   \
	SHLQ $4, R15;                   \
	SHRQ $1, R9;                    \
tile:                               \
	CLEAR512(Z0, Z1, Z2, Z3);       \
	CLEAR512(Z4, Z5, Z6, Z7);       \
	CLEAR512(Z8, Z9, Z10, Z11);     \
	CLEAR512(Z12, Z13, Z14, Z15);   \
	CLEAR512(Z16, Z17, Z18, Z19);   \
	CLEAR512(Z20, Z21, Z22, Z23);   \
	CLEAR512(Z24, Z25, Z26, Z27);   \
	MOVQ SI, R12;                   \
	LEAQ (R10)(R10*4), AX;          \
	LEAQ (SI)(AX*1), R13;           \
	LEAQ (SI)(AX*2), R14;           \
	MOVQ DX, BX;                    \
	MOVQ R9, AX;                    \
step:                               \
	LOAD;                           \
	DOTS512;                        \
	DECQ AX;                        \
	JNZ  step;                      \
	PUT512(Z0, Z1);                 \
	PUT512(Z2, Z3);                 \
	PUT512(Z4, Z5);                 \
	PUT512(Z6, Z7);                 \
	PUT512(Z8, Z9);                 \
	PUT512(Z10, Z11);               \
	PUT512(Z12, Z13);               \
	PUT512(Z14, Z15);               \
	PUT512(Z16, Z17);               \
	PUT512(Z18, Z19);               \
	PUT512(Z20, Z21);               \
	PUT512(Z22, Z23);               \
	PUT512(Z24, Z25);               \
	PUT512(Z26, Z27);               \
	IMUL3Q $14, R10, AX;            \
	ADDQ AX, SI;                    \
	DECQ CX;                        \
	JNZ  tile;                      \
	VZEROUPPER;                     \
	RET

// func weightsVNNI512(dst *int32, a *int16, b *byte, tiles, n, k int)
TEXT ·weightsVNNI512(SB), NOSPLIT, $0-48
	PANEL14(WEIGHTS512)

// func numbersVNNI512(dst *int32, a *int16, b *int16, tiles, n, k int)
TEXT ·numbersVNNI512(SB), NOSPLIT, $0-48
	PANEL14(NUMBERS512)

// func widenAVX2(dst *float32, sums *int32, scales, bias *float32, s float32, n int)
TEXT ·widenAVX2(SB), NOSPLIT, $0-48
	MOVQ         dst+0(FP), DI
	MOVQ         sums+8(FP), SI
	MOVQ         scales+16(FP), BX
	MOVQ         bias+24(FP), DX
	VBROADCASTSS s+32(FP), Y0
	MOVQ         n+40(FP), CX
	XORQ         AX, AX

loop:
	VCVTDQ2PS (SI)(AX*4), Y1
	VMULPS    Y0, Y1, Y1
	VMULPS    (BX)(AX*4), Y1, Y1
	VADDPS    (DX)(AX*4), Y1, Y1
	VMOVUPS   Y1, (DI)(AX*4)
	ADDQ      $8, AX
	CMPQ      AX, CX
	JLT       loop
	VZEROUPPER
	RET

// func bendAVX2(x *float32, terms *[15][8]float32, n int)
TEXT ·bendAVX2(SB), NOSPLIT, $0-24
	MOVQ    x+0(FP), DI
	MOVQ    terms+8(FP), SI
	MOVQ    n+16(FP), CX
	VMOVUPS 128(SI), Y4
	VMOVUPS 160(SI), Y5
	VMOVUPS 192(SI), Y6
	VMOVUPS 224(SI), Y7
	VMOVUPS 256(SI), Y8
	VMOVUPS 288(SI), Y9
	VMOVUPS 320(SI), Y10
	VMOVUPS 352(SI), Y11
	VMOVUPS 384(SI), Y12
	VMOVUPS 416(SI), Y13
	VMOVUPS 448(SI), Y14
	VXORPS  Y3, Y3, Y3
	XORQ    AX, AX

loop:
	VMOVUPS (DI)(AX*4), Y0
	VANDPS  (SI), Y0, Y1
	VMINPS  32(SI), Y1, Y1
	VMULPS  64(SI), Y1, Y1
	VSUBPS  96(SI), Y1, Y1
	VMULPS  Y1, Y4, Y2
	VADDPS  Y5, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  Y6, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  Y7, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  Y8, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  Y9, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  Y10, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  Y11, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  Y12, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  Y13, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  Y14, Y2, Y2
	VMAXPS  Y3, Y0, Y0
	VSUBPS  Y2, Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop
	VZEROUPPER
	RET

// func largestAVX2(x *float32, n int) float32
TEXT ·largestAVX2(SB), NOSPLIT, $0-20
	MOVQ     x+0(FP), SI
	MOVQ     n+8(FP), CX
	VPCMPEQD Y3, Y3, Y3
	VPSRLD   $1, Y3, Y3
	VPXOR    Y0, Y0, Y0
	XORQ     AX, AX

loop:
	VPAND        (SI)(AX*4), Y3, Y1
	VPMAXSD      Y1, Y0, Y0
	ADDQ         $8, AX
	CMPQ         AX, CX
	JLT          loop
	VEXTRACTI128 $1, Y0, X1
	VPMAXSD      X1, X0, X0
	VPSHUFD      $0x0E, X0, X1
	VPMAXSD      X1, X0, X0
	VPSHUFD      $0x01, X0, X1
	VPMAXSD      X1, X0, X0
	VMOVSS       X0, ret+16(FP)
	VZEROUPPER
	RET

// func nearestAVX2(dst *int16, x *float32, by float32, n int)
TEXT ·nearestAVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	VBROADCASTSS by+16(FP), Y0
	MOVQ         n+24(FP), CX
	XORQ         AX, AX

loop:
	VMULPS    (SI)(AX*4), Y0, Y1
	VMULPS    32(SI)(AX*4), Y0, Y2
	VCVTPS2DQ Y1, Y1
	VCVTPS2DQ Y2, Y2
	VPACKSSDW Y2, Y1, Y1
	VPERMQ    $0xD8, Y1, Y1
	VMOVDQU   Y1, (DI)(AX*2)
	ADDQ      $16, AX
	CMPQ      AX, CX
	JLT       loop
	VZEROUPPER
	RET

// func addAVX2(x, y *float32, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ n+16(FP), CX
	XORQ AX, AX

loop:
	VMOVUPS (DI)(AX*4), Y0
	VADDPS  (SI)(AX*4), Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop
	VZEROUPPER
	RET

// The sum of the eight numbers of Y0, in X0.
#define FOLD \
	VEXTRACTF128 $1, Y0, X1;      \
	VADDPS       X1, X0, X0;      \
	VPERMILPS    $0x0E, X0, X1;   \
	VADDPS       X1, X0, X0;      \
	VPERMILPS    $0x01, X0, X1;   \
	VADDSS       X1, X0, X0

// func normAVX2(x, gain, bias *float32, epsilon float32, n int)
TEXT ·normAVX2(SB), NOSPLIT, $0-40
	MOVQ       x+0(FP), DI
	MOVQ       gain+8(FP), SI
	MOVQ       bias+16(FP), DX
	MOVQ       n+32(FP), CX
	VCVTSI2SSQ CX, X7, X7
	VXORPS     Y0, Y0, Y0
	XORQ       AX, AX

sum:
	VADDPS       (DI)(AX*4), Y0, Y0
	ADDQ         $8, AX
	CMPQ         AX, CX
	JLT          sum
	FOLD
	VDIVSS       X7, X0, X0
	VBROADCASTSS X0, Y6
	VXORPS       Y0, Y0, Y0
	XORQ         AX, AX

squares:
	VMOVUPS      (DI)(AX*4), Y1
	VSUBPS       Y6, Y1, Y1
	VMOVUPS      Y1, (DI)(AX*4)
	VMULPS       Y1, Y1, Y1
	VADDPS       Y1, Y0, Y0
	ADDQ         $8, AX
	CMPQ         AX, CX
	JLT          squares
	FOLD
	VDIVSS       X7, X0, X0
	VADDSS       epsilon+24(FP), X0, X0
	VSQRTSS      X0, X0, X0
	MOVL         $0x3F800000, AX
	VMOVD        AX, X1
	VDIVSS       X0, X1, X0
	VBROADCASTSS X0, Y6
	XORQ         AX, AX

scale:
	VMULPS  (DI)(AX*4), Y6, Y0
	VMULPS  (SI)(AX*4), Y0, Y0
	VADDPS  (DX)(AX*4), Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     scale
	VZEROUPPER
	RET

// func softenAVX2(dst *int16, sums *int32, step float32, n int, terms *[6][8]float32) int32
TEXT ·softenAVX2(SB), NOSPLIT, $0-44
	MOVQ         dst+0(FP), DI
	MOVQ         sums+8(FP), SI
	VBROADCASTSS step+16(FP), Y5
	MOVQ         n+24(FP), CX
	MOVQ         terms+32(FP), DX
	VMOVDQU      (SI), Y0
	MOVQ         $8, AX
	JMP          more

highest:
	VPMAXSD (SI)(AX*4), Y0, Y0
	ADDQ    $8, AX

more:
	CMPQ         AX, CX
	JLT          highest
	VEXTRACTI128 $1, Y0, X1
	VPMAXSD      X1, X0, X0
	VPSHUFD      $0x0E, X0, X1
	VPMAXSD      X1, X0, X0
	VPSHUFD      $0x01, X0, X1
	VPMAXSD      X1, X0, X0
	VPBROADCASTD X0, Y6
	VMOVUPS      (DX), Y7
	VMOVUPS      32(DX), Y8
	VMOVUPS      64(DX), Y9
	VMOVUPS      96(DX), Y10
	VMOVUPS      128(DX), Y11
	VMOVUPS      160(DX), Y12
	VPXOR        Y13, Y13, Y13
	XORQ         AX, AX

loop:
	VPSUBD       (SI)(AX*4), Y6, Y0
	VCVTDQ2PS    Y0, Y0
	VMULPS       Y5, Y0, Y0
	VMINPS       Y12, Y0, Y0
	VCVTTPS2DQ   Y0, Y1
	VCVTDQ2PS    Y1, Y2
	VSUBPS       Y2, Y0, Y0
	VMULPS       Y0, Y7, Y2
	VADDPS       Y8, Y2, Y2
	VMULPS       Y0, Y2, Y2
	VADDPS       Y9, Y2, Y2
	VMULPS       Y0, Y2, Y2
	VADDPS       Y10, Y2, Y2
	VMULPS       Y0, Y2, Y2
	VADDPS       Y11, Y2, Y2
	VPSLLD       $23, Y1, Y1
	VPSUBD       Y1, Y2, Y2
	VCVTPS2DQ    Y2, Y2
	VPADDD       Y2, Y13, Y13
	VEXTRACTI128 $1, Y2, X1
	VPACKSSDW    X1, X2, X2
	VMOVDQU      X2, (DI)(AX*2)
	ADDQ         $8, AX
	CMPQ         AX, CX
	JLT          loop
	VEXTRACTI128 $1, Y13, X1
	VPADDD       X1, X13, X0
	VPSHUFD      $0x0E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x01, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, AX
	MOVL         AX, ret+40(FP)
	VZEROUPPER
	RET
