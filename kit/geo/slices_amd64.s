#include "textflag.h"

// Entries of the table constants, to which R8 points.
#define ZERO     0(R8)
#define ONE      32(R8)
#define TWO      64(R8)
#define FOUR     96(R8)
#define HALF     128(R8)
#define QUARTER  160(R8)
#define QUARTERLOW 192(R8)
#define TOOLARGE 224(R8)
#define TURN     256(R8)
#define TURNS    288(R8)
#define RADIANS  320(R8)
#define A(i)     (352 + 32*i)(R8) // A(0) is a12, A(12) is a0
#define S(i)     (768 + 32*i)(R8) // S(0) is s7, S(7) is s0

// SINE replaces an angle in degrees, from -90 to 90, by its sine.
#define SINE(angle, z, p) \
	VMULPD RADIANS, angle, angle \
	VMULPD angle, angle, z       \
	VMOVUPD S(0), p              \
	VFMADD213PD S(1), z, p       \
	VFMADD213PD S(2), z, p       \
	VFMADD213PD S(3), z, p       \
	VFMADD213PD S(4), z, p       \
	VFMADD213PD S(5), z, p       \
	VFMADD213PD S(6), z, p       \
	VFMADD213PD S(7), z, p       \
	VMULPD angle, z, z           \
	VFMADD231PD p, z, angle

// BEGIN loads the arguments of the two functions below: Y11 to Y14 have the latitude, longitude, sine and cosine of the origin.
#define BEGIN \
	MOVQ y_base+0(FP), DI      \
	MOVQ y_len+8(FP), CX       \
	MOVQ x_base+24(FP), R9     \
	MOVQ from+48(FP), BX       \
	MOVQ lat_base+56(FP), SI   \
	MOVQ lon_base+80(FP), DX   \
	LEAQ ·constants(SB), R8    \
	VBROADCASTSD 0(BX), Y11    \
	VBROADCASTSD 8(BX), Y12    \
	VBROADCASTSD 16(BX), Y13   \
	VBROADCASTSD 24(BX), Y14   \
	VPCMPEQQ Y15, Y15, Y15     \
	VPSLLQ $63, Y15, Y15       \
	XORQ AX, AX                \
	ANDQ $-4, CX

// func cpuid(leaf, part uint32) (a, b, c uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-20
	MOVL leaf+0(FP), AX
	MOVL part+4(FP), CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	RET

// func xgetbv() uint32
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET

// func atan2Vector(dst, y, x []float64) int
//
// Y15 has the sign bits. The comparisons are 0x11 (less) and 0x1E (greater), both false for NaN.
TEXT ·atan2Vector(SB), NOSPLIT, $0-80
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ y_base+24(FP), SI
	MOVQ x_base+48(FP), DX
	LEAQ ·constants(SB), R8
	VPCMPEQQ Y15, Y15, Y15
	VPSLLQ $63, Y15, Y15
	XORQ AX, AX
	ANDQ $-4, CX
	JMP  check

loop:
	VMOVUPD (SI)(AX*8), Y0 // y
	VMOVUPD (DX)(AX*8), Y1 // x
	VANDNPD Y0, Y15, Y2 // |y|
	VANDNPD Y1, Y15, Y3 // |x|
	VMINPD Y2, Y3, Y4
	VMAXPD Y2, Y3, Y5

	// No element may be NaN or large, and the greater one may not be zero.
	VMOVUPD TOOLARGE, Y6
	VCMPPD $0x11, Y6, Y2, Y7
	VCMPPD $0x11, Y6, Y3, Y8
	VCMPPD $0x1E, ZERO, Y5, Y9
	VANDPD Y7, Y8, Y7
	VANDPD Y7, Y9, Y7
	VMOVMSKPD Y7, BX
	CMPL BX, $15
	JNE  done

	VCMPPD $0x1E, Y3, Y2, Y6 // |y| > |x|
	VMULPD HALF, Y5, Y7
	VCMPPD $0x1E, Y7, Y4, Y7
	VANDPD ONE, Y7, Y8 // the shift: 1 if the tangent is above a half
	VMOVAPD Y4, Y9
	VFNMADD231PD Y5, Y8, Y9
	VMOVAPD Y5, Y10
	VFMADD231PD Y4, Y8, Y10
	VDIVPD Y10, Y9, Y9 // t

	// The angle counted in quarters of π, without the arc tangent of t.
	VMOVUPD TWO, Y2
	VSUBPD Y8, Y2, Y2
	VBLENDVPD Y6, Y2, Y8, Y8
	VMOVUPD FOUR, Y2
	VSUBPD Y8, Y2, Y2
	VBLENDVPD Y1, Y2, Y8, Y8
	VXORPD Y6, Y1, Y6
	VANDPD Y15, Y6, Y6
	VXORPD Y6, Y9, Y9
	VMOVUPD QUARTER, Y3
	VMULPD Y8, Y3, Y2 // high
	VFMSUB213PD Y2, Y8, Y3
	VFMADD231PD QUARTERLOW, Y8, Y3 // low

	VMULPD Y9, Y9, Y10 // z
	VMOVUPD A(0), Y11
	VFMADD213PD A(1), Y10, Y11
	VFMADD213PD A(2), Y10, Y11
	VFMADD213PD A(3), Y10, Y11
	VFMADD213PD A(4), Y10, Y11
	VFMADD213PD A(5), Y10, Y11
	VFMADD213PD A(6), Y10, Y11
	VFMADD213PD A(7), Y10, Y11
	VFMADD213PD A(8), Y10, Y11
	VFMADD213PD A(9), Y10, Y11
	VFMADD213PD A(10), Y10, Y11
	VFMADD213PD A(11), Y10, Y11
	VFMADD213PD A(12), Y10, Y11
	VMULPD Y9, Y10, Y10
	VFMADD231PD Y11, Y10, Y3
	VADDPD Y9, Y2, Y4 // the sum of high and t
	VSUBPD Y4, Y2, Y2
	VADDPD Y9, Y2, Y2 // what the sum lost
	VADDPD Y3, Y2, Y2
	VADDPD Y4, Y2, Y2
	VANDPD Y15, Y0, Y0
	VORPD Y0, Y2, Y2
	VMOVUPD Y2, (DI)(AX*8)
	ADDQ $4, AX

check:
	CMPQ AX, CX
	JLT  loop

done:
	VZEROUPPER
	MOVQ AX, ret+72(FP)
	RET

// func atan2One(y, x float64) float64
//
// It is atan2Vector for one point, with a polynomial in two halves: of even and of odd powers.
TEXT ·atan2One(SB), NOSPLIT, $0-24
	VMOVSD y+0(FP), X0
	VMOVSD x+8(FP), X1
	LEAQ ·constants(SB), R8
	VPCMPEQQ X15, X15, X15
	VPSLLQ $63, X15, X15
	VANDNPD X0, X15, X2 // |y|
	VANDNPD X1, X15, X3 // |x|
	VMINSD X2, X3, X4
	VMAXSD X2, X3, X5
	VCMPSD $0x1E, X3, X2, X6 // |y| > |x|
	VMULSD HALF, X5, X7
	VCMPSD $0x1E, X7, X4, X7
	VANDPD ONE, X7, X8
	VMOVAPD X4, X9
	VFNMADD231SD X5, X8, X9
	VMOVAPD X5, X10
	VFMADD231SD X4, X8, X10
	VDIVSD X10, X9, X9 // t

	VMOVSD TWO, X2
	VSUBSD X8, X2, X2
	VBLENDVPD X6, X2, X8, X8
	VMOVSD FOUR, X2
	VSUBSD X8, X2, X2
	VBLENDVPD X1, X2, X8, X8
	VXORPD X6, X1, X6
	VANDPD X15, X6, X6
	VXORPD X6, X9, X9
	VMOVSD QUARTER, X3
	VMULSD X8, X3, X2 // high
	VFMSUB213SD X2, X8, X3
	VFMADD231SD QUARTERLOW, X8, X3 // low

	VMULSD X9, X9, X10 // z
	VMULSD X10, X10, X12
	VMOVSD A(0), X11
	VMOVSD A(1), X13
	VFMADD213SD A(2), X12, X11
	VFMADD213SD A(3), X12, X13
	VFMADD213SD A(4), X12, X11
	VFMADD213SD A(5), X12, X13
	VFMADD213SD A(6), X12, X11
	VFMADD213SD A(7), X12, X13
	VFMADD213SD A(8), X12, X11
	VFMADD213SD A(9), X12, X13
	VFMADD213SD A(10), X12, X11
	VFMADD213SD A(11), X12, X13
	VFMADD213SD A(12), X12, X11
	VFMADD231SD X13, X10, X11
	VMULSD X9, X10, X10
	VFMADD231SD X11, X10, X3
	VADDSD X9, X2, X4
	VSUBSD X4, X2, X2
	VADDSD X9, X2, X2
	VADDSD X3, X2, X2
	VADDSD X4, X2, X2
	VANDPD X15, X0, X0
	VORPD X0, X2, X2
	VMOVSD X2, ret+16(FP)
	RET

// func legsVector(y, x []float64, from *origin, lat, lon []float64) int
TEXT ·legsVector(SB), NOSPLIT, $0-112
	BEGIN
	JMP check

loop:
	VMOVUPD (SI)(AX*8), Y0
	VMOVUPD (DX)(AX*8), Y1
	VMOVUPD HALF, Y9
	VMOVUPD TURN, Y10
	VADDPD Y11, Y0, Y2
	VMULPD Y9, Y2, Y2 // the mean of the latitudes
	VSUBPD Y11, Y0, Y3
	VMULPD Y9, Y3, Y3 // half the difference of the latitudes
	VANDNPD Y0, Y15, Y0
	VSUBPD Y0, Y10, Y0 // its sine is the cosine of the latitude
	VSUBPD Y12, Y1, Y1
	VMULPD Y9, Y1, Y1
	VANDNPD Y1, Y15, Y1
	VMOVUPD TURNS, Y4
	VSUBPD Y1, Y4, Y4
	VMINPD Y4, Y1, Y1 // half the difference of the longitudes
	VSUBPD Y1, Y10, Y4
	SINE(Y0, Y5, Y6)
	SINE(Y1, Y7, Y8)
	SINE(Y2, Y5, Y6)
	SINE(Y3, Y7, Y8)
	SINE(Y4, Y5, Y6)
	VMULPD Y14, Y0, Y0
	VMULPD Y1, Y1, Y1
	VMULPD Y2, Y2, Y2
	VMULPD Y3, Y3, Y3
	VMULPD Y4, Y4, Y4
	VFMADD231PD Y1, Y0, Y3
	VFMADD231PD Y4, Y0, Y2
	VSQRTPD Y3, Y3
	VSQRTPD Y2, Y2
	VMOVUPD Y3, (DI)(AX*8)
	VMOVUPD Y2, (R9)(AX*8)
	ADDQ $4, AX

check:
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	MOVQ AX, ret+104(FP)
	RET

// func courseVector(y, x []float64, from *origin, lat, lon []float64) int
TEXT ·courseVector(SB), NOSPLIT, $0-112
	BEGIN
	JMP check

loop:
	VMOVUPD (SI)(AX*8), Y0
	VMOVUPD (DX)(AX*8), Y1
	VMOVUPD HALF, Y9
	VMOVUPD TURN, Y10
	VSUBPD Y11, Y0, Y2
	VMULPD Y9, Y2, Y2 // half the difference of the latitudes
	VANDNPD Y2, Y15, Y3
	VSUBPD Y3, Y10, Y3
	VANDNPD Y0, Y15, Y0
	VSUBPD Y0, Y10, Y0 // its sine is the cosine of the latitude
	VSUBPD Y12, Y1, Y1
	VMULPD Y9, Y1, Y1 // half the difference of the longitudes
	VANDPD Y15, Y1, Y9 // and its sign
	VANDNPD Y1, Y15, Y1
	VSUBPD Y1, Y10, Y4
	VMOVUPD TURNS, Y5
	VSUBPD Y1, Y5, Y5
	VMINPD Y5, Y1, Y1
	SINE(Y0, Y5, Y6)
	SINE(Y1, Y7, Y8)
	SINE(Y2, Y5, Y6)
	SINE(Y3, Y7, Y8)
	SINE(Y4, Y5, Y6)
	VMULPD Y1, Y0, Y0 // cosine of the latitude times sine of half the longitudes
	VMULPD Y0, Y4, Y4
	VXORPD Y9, Y4, Y4 // east
	VMULPD Y2, Y3, Y3
	VMULPD Y1, Y0, Y0
	VFMADD231PD Y13, Y0, Y3 // north
	VMOVUPD Y4, (DI)(AX*8)
	VMOVUPD Y3, (R9)(AX*8)
	ADDQ $4, AX

check:
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	MOVQ AX, ret+104(FP)
	RET
